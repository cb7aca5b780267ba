package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git/program"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
)

type pushCommand struct {
	streams
	vouch  vouchOptions
	apps   appOptions
	author string
	dryRun bool
	all    bool // act on all apps that wait for a named app's shared change
}

const aboutSeveral = `

For several apps, it pushes one commit. If an app that you name refuses, it pushes
nothing; --selector skips such apps, and lists them.`

func (c *pushCommand) register(cmd *cobra.Command) {
	c.registerPush(cmd)
	c.apps.register(cmd)
	cmd.Long, cmd.ValidArgsFunction = cmd.Long+aboutSeveral, c.completeSeveral()
}

func (c *pushCommand) registerPush(cmd *cobra.Command) {
	c.vouch.register(cmd)
	registerAuthor(cmd, &c.author)
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show the commit and its files, and push nothing")
}

func (c *pushCommand) run(ctx context.Context, args []string, a propose.Action,
	change func(w *console.Session, app string) (propose.Change, error)) error {
	who, err := identity(ctx, c.author)
	if err != nil {
		return err
	}
	w, err := openToSign(ctx, &c.source, c.vouch, c.streams)
	if err != nil {
		return err
	}
	names, unknown, err := c.apps.pick(ctx, w, args)
	if err != nil {
		return err
	}
	if c.all {
		if names, err = console.Sharing(ctx, w, names); err != nil {
			return err
		}
	}
	w.Detail = true
	var notes []string
	all, err := slowly(c.streams, "rendering the change", func() (all []propose.Change, err error) {
		all, notes, err = c.apps.changes(names, unknown, func(app string) (propose.Change, error) { return change(w, app) })
		return all, err
	})
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return c.say(strings.Join(notes, "\n"))
	}
	o, err := propose.Target{Cluster: w.Cluster, Branch: w.Branch}.Together(a, all)
	if err != nil {
		return err
	}
	if c.all {
		o.Effect = "no cohort delays the shared change in " + rollout.Count(len(all), "app") + "; watch: gitrollout list -w"
	}
	said := ""
	if c.dryRun {
		said, err = drawChange(w.Tip.Tree, o)
	} else {
		said, err = slowly(c.streams, "pushing to "+w.Repo.Remote().String(),
			func() (string, error) { return w.Push(ctx, who, o) })
	}
	if err != nil {
		return err
	}
	return c.say(strings.Join(append([]string{said}, notes...), "\n"))
}

func drawChange(tree rollout.Tree, o propose.Change) (string, error) {
	var b strings.Builder
	b.WriteString(o.Message + "\n")
	for _, path := range slices.Sorted(maps.Keys(o.Edits)) {
		old, found, err := source.ReadFile(tree, path)
		if err != nil {
			return "", err
		}
		switch content := o.Edits[path]; {
		case !found && content != nil:
			fmt.Fprintf(&b, "A %s\n", path)
		case found && content == nil:
			fmt.Fprintf(&b, "D %s\n", path)
		case found && !bytes.Equal(old, content):
			fmt.Fprintf(&b, "M %s\n", path)
			if o.Again != nil {
				_, hunks, _ := bytes.Cut(diff.Diff("", old, path, content), []byte("+++ "+path+"\n"))
				b.Write(hunks)
			}
		}
	}
	fmt.Fprintf(&b, "\nnothing was pushed to %s (--dry-run)", o.Branch)
	return b.String(), nil
}

func newAct(s streams, cmd *cobra.Command, verb rollout.Verb) (*cobra.Command, *propose.Action) {
	c, a := &pushCommand{streams: s}, &propose.Action{Verb: verb}
	c.register(cmd)
	if verb == rollout.Promote {
		cmd.Flags().BoolVar(&c.all, "all", false, "with --through entry: all apps that wait for the same shared change")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if a.Full && a.Through != "" {
			return usagef("--full and --through exclude each other")
		}
		if c.all && a.Through != rollout.ThroughEntry {
			return usagef("--all needs --through %s", rollout.ThroughEntry)
		}
		return c.run(cmd.Context(), args, *a, func(w *console.Session, app string) (propose.Change, error) {
			return w.Change(cmd.Context(), app, *a, nil)
		})
	}
	return cmd, a
}

func registerAuthor(cmd *cobra.Command, author *string) {
	cmd.Flags().StringVar(author, "author", "",
		`the commit's author, "Name <address>" (default: git's user.name and user.email)`)
}

func newPromote(s streams) *cobra.Command {
	cmd, a := newAct(s, &cobra.Command{
		Use:   "promote APP...",
		Short: "Let a release pass the step that it waits at",
		Long: `Let a release pass the step that it waits at.

It pushes the app's promotion file to your branch. A merge of the proposal
gitrollout/promote/<cluster>/<app> does the same. The file names the release by its
hash: it approves this release and no other.

--through takes a step's name or its number as "gitrollout get" shows it; the
release then passes every gate up to and including that step, and skips timed
pauses, analyses and experiments on the way. --full does so to the end, and skips
the weights that are left. It waits for pods in any case.

--through entry lets an app take a shared change before the app's cohort may. With
--all, all apps that wait for the same change take it, in one commit.

--adopt-anyway is for an app that has no record yet and is held as
ForeignController: gitrollout takes it over from Argo Rollouts, Flagger or another
controller. The approval is only for this version, and is used once.`,
		Example: `  gitrollout promote shop
  gitrollout promote shop --through 6
  gitrollout promote shop --full
  gitrollout promote shop cart
  gitrollout promote shop --through entry --all
  gitrollout promote -l team=pay --dry-run`,
	}, rollout.Promote)
	cmd.Flags().BoolVar(&a.Full, "full", false, "open all gates and skip the remaining weights")
	cmd.Flags().BoolVar(&a.AdoptAnyway, "adopt-anyway", false,
		"adopt the app even if another controller manages its objects")
	cmd.Flags().StringVar(&a.Through, "through", "",
		"open all gates up to this `step`: its name, or its number in gitrollout get")
	s.complete(cmd, "through", stepNames)
	return cmd
}

func newHold(s streams) *cobra.Command {
	cmd, a := newAct(s, &cobra.Command{
		Use:   "hold APP...",
		Short: "Keep a release where it is",
		Long: `Keep a release at the step that it has reached, until the hold is taken off,
the release is promoted or aborted, or another version is pushed.

It pushes the app's promotion file to your branch; --off removes the file.`,
		Example: `  gitrollout hold shop --reason "waiting for the database"
  gitrollout hold shop --off`,
	}, rollout.Hold)
	cmd.Flags().StringVar(&a.Reason, "reason", "", "why")
	cmd.Flags().BoolVar(&a.Off, "off", false, "end the hold")
	return cmd
}

func newAbort(s streams) *cobra.Command {
	cmd, a := newAct(s, &cobra.Command{
		Use:   "abort APP...",
		Short: "Roll a release back to the stable version and reject the release",
		Long: `Take a release back to stable at once, and do not try it again.

It pushes the app's promotion file to your branch. Git still asks for the
release afterwards, so the app is Degraded until you revert the commit (there
will be a branch gitrollout/revert/<cluster>/<app> to merge), push another
version, or run retry. If you can, revert the commit instead: a revert
rolls the release back, and Git then no longer asks for it.

While Git is unreachable, --break-glass annotates the app's workload in the cluster,
with your rights there. The reconciler rolls back at once, and records the abort when
Git answers. The annotation can only abort this attempt to release this version.

While no reconciler runs either, --now rolls back from a clone on this machine (the
current folder, or --repo) that has fetched the release's last step. The annotation
stays, and a reconciler records the abort when it runs again.`,
		Example: `  gitrollout abort shop --reason "checkout is slow"
  gitrollout abort -l team=pay
  gitrollout abort shop --break-glass --reason "checkout is slow, and GitHub is down"
  gitrollout abort shop --break-glass --now --reason "no reconciler runs, either"`,
	}, rollout.Abort)
	cmd.Flags().StringVar(&a.Reason, "reason", "", "the reason, which is shown with the rejected release")
	(&breakGlass{streams: s}).register(cmd, &a.Reason)
	return cmd
}

func newRetry(s streams) *cobra.Command {
	cmd, _ := newAct(s, &cobra.Command{
		Use:   "retry APP...",
		Short: "Try a rejected release again, from its first step",
		Long: `Try a rejected release again, from its first step. It must still be the version that
Git asks for.

It pushes the app's promotion file to your branch.`,
		Example: `  gitrollout retry shop`,
	}, rollout.Retry)
	return cmd
}

func newRestart(s streams) *cobra.Command {
	cmd, _ := newAct(s, &cobra.Command{
		Use:   "restart APP...",
		Short: "Replace the pods of an app that has no release in flight",
		Long: `Replace the pods of an app that has no release in flight by new pods of the same
version.

It pushes the app's promotion file to your branch, with restartAt. The reconciler
then deletes the pods that were created before this time, at most maxUnavailable at
once, and always at least one. The reconciler needs the right to delete pods.`,
		Example: `  gitrollout restart shop
  gitrollout restart -l team=pay --dry-run`,
	}, rollout.Restart)
	return cmd
}

func identity(ctx context.Context, flag string) (rollout.Identity, error) {
	if flag != "" {
		name, rest, ok := strings.Cut(flag, "<")
		address, tail, closed := strings.Cut(rest, ">")
		who := rollout.Identity{Name: strings.TrimSpace(name), Email: strings.TrimSpace(address)}
		if !ok || !closed || who.Name == "" || who.Email == "" || strings.TrimSpace(tail) != "" {
			return who, usagef(`--author %q is not "Name <address>"`, flag)
		}
		return who, nil
	}
	who := rollout.Identity{}
	who.Name, who.Email = program.Author(ctx, os.Getenv)
	if who.Name == "" || who.Email == "" {
		return who, usagef(`the commit has no author: set --author "Name <address>", or git config user.name and user.email`)
	}
	return who, nil
}
