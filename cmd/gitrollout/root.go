package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/render/worker"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/terminal"
)

// streams are a command's inputs and outputs. If workers is nil, this process renders. If shown is set, a command also
// stores its -o json data there.
type streams struct {
	in       io.Reader
	out, err io.Writer
	workers  *worker.Pool
	shown    *any
	*globalOptions
}

// say prints a text without control characters, because texts from Git may contain some.
func (s streams) say(text string) error {
	_, err := io.WriteString(s.out, terminal.CleanLines(text))
	return err
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	workers := newWorkers()
	defer workers.Close()
	root := newRoot(streams{in: stdin, out: stdout, err: stderr, workers: workers})
	refuseUnknown(root)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if f, is := errors.AsType[*failure](err); err != nil && (!is || f.err != nil) {
		_, _ = io.WriteString(stderr, terminal.CleanLines("gitrollout: "+message(err)))
	}
	return int(codeOf(err))
}

func newRoot(s streams) *cobra.Command {
	s.globalOptions = &globalOptions{}
	root := &cobra.Command{
		Use:   "gitrollout",
		Short: "Progressive delivery for Kubernetes, driven by Git alone",
		Long: `gitrollout releases what a Git repository says to a Kubernetes cluster, step by
step, and writes each step back to Git.

  push to release, merge to promote, revert to roll back

"gitrollout run" is the reconciler; it runs once for each cluster. All other
commands only read Git and the cluster, except:

  promote, abort, hold, retry, restart  push one small file to your branch
  set image                             pushes a changed line to your branch
  undo, mcp                             push proposals to merge
  state                                 mends the record
  remove                                deletes the objects of an app that left Git
  doctor                                tests its push rights
  notify test, sync                     send a sample, and post a webhook
  init, convert                         write files, and push nothing`,
		Example: `  gitrollout validate                  # check a working copy, offline
  gitrollout get shop -w               # watch a release
  gitrollout promote shop              # let it pass the step it waits at
  gitrollout abort shop --reason "checkout is slow"`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       versionOf().text(),

		PersistentPreRunE: refuseUnused,
	}
	parent(root)
	root.SetVersionTemplate("{{.Version}}")
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(badFlag)
	addGlobal(root, s.globalOptions)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddGroup(
		&cobra.Group{ID: "look", Title: "Look:"},
		&cobra.Group{ID: "act", Title: "Decide about a release (pushes to your branch):"},
		&cobra.Group{ID: "serve", Title: "Set up and reconcile:"},
	)
	inGroup(root, "look", newGet(s), newList(s), newFleet(s), newLogs(s), newEvents(s), newHistory(s), newStatus(s),
		newRender(s), newDiff(s), newValidate(s), newSimulate(s), newAnalysis(s), newDashboard(s), newPlan(s), newSchema(s))
	inGroup(root, "act", newPromote(s), newAbort(s), newHold(s), newRetry(s), newRestart(s), newUndo(s),
		parent(&cobra.Command{Use: "set", Short: "Change an app in Git"}, newSetImage(s)), newRemove(s), newState(s))
	inGroup(root, "serve", newInit(s), newVendor(s), newConvert(s), newDoctor(s), newRun(s), newSync(s), newOnce(s),
		newMCP(s),
		parent(&cobra.Command{Use: "notify", Short: "Try the notifications"}, newNotifyTest(s)))
	root.AddCommand(newOptions(s), newVersion(s), newExitCodes(), newEnvironment(), newRenderWorker(s))
	asCalled(root, programName())
	return root
}

func parent(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = unknownCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(commands...)
	return cmd
}

func inGroup(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		root.AddCommand(c)
	}
}

func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				about, rest, err := root.Find(args)
				if about == nil || err != nil || !about.HasSubCommands() {
					return err
				}
				return unknownCommand(about, rest)
			}
		case "completion":
			parent(c)
		}
	}
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	problem := fmt.Sprintf("%q is not a command of %s", args[0], cmd.CommandPath())
	return unknown(cmd, problem, rollout.DidYouMean(args[0], names))
}

var flagLine = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([\w-]+)(?: (\S+))?  `)

func badFlag(cmd *cobra.Command, err error) error {
	near := ""
	if name, isUnknown := strings.CutPrefix(err.Error(), "unknown flag: --"); isUnknown {
		names := rollout.Mapped(flagLine.FindAllStringSubmatch(cmd.Flags().FlagUsages(), -1),
			func(line []string) string { return line[1] })
		near = strings.NewReplacer("mean ", "mean --", " or ", " or --").Replace(rollout.DidYouMean(name, names))
	}
	return unknown(cmd, fmt.Sprintf("%s: %v", cmd.CommandPath(), err), near)
}

func unknown(cmd *cobra.Command, problem, near string) error {
	if near != "" {
		return usagef("%s; %s See: %s --help", problem, near, cmd.CommandPath())
	}
	return usagef("%s; see: %s --help", problem, cmd.CommandPath())
}

func atMostOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usagef("%s takes one %s, not %d; see: %s --help", cmd.CommandPath(), name, len(args), cmd.CommandPath())
		}
		return nil
	}
}

func exactlyOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("%s takes exactly one %s; see: %s --help", cmd.CommandPath(), name, cmd.CommandPath())
		}
		return nil
	}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments, and %q is one; see: %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}
