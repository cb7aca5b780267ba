package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate"
	"gitrollout.dev/gitrollout/views/terminal"
)

type simulateCommand struct {
	streams
	output outputOption
	dir    string
	commit string
	update bool
}

func newSimulate(s streams) *cobra.Command {
	c := &simulateCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "simulate SCRIPT",
		Short: "Play a release in memory: each transition, and its time",
		Long: `Play a script of a release against your own manifests, with the real
reconciler, a model of Kubernetes and a clock that does not wait. It needs
neither a cluster nor a network, changes nothing, and takes milliseconds.

SCRIPT is a file, or - for the standard input. Commands stand at the margin:

  start                    the reconciler starts (crash: it starts anew)
  push v2                  new image tags for all apps (push shop=v2: for one)
  push files NAME          the files below NAME/ in the script
  revert [APP]             the files of the newest commit with another release
  promote [APP] [STEP]     as the command: the gate that is shut opens, or all up
                           to STEP; also hold, abort, retry, restart; withdraw
                           undoes it
  merge [APP] [promote]    merge the open proposal (or: revert)
  +30s                     time passes, with all that is due on the way
  never v2, slow v2 30s    pods of a version never become ready, or late
  heal v2, kill v1 2       they do become ready; two pods of v1 die
  scale web 5              an autoscaler sets the replicas
  measure errors Failed    what a metric measures from now on: a phase, or a
                           result for its conditions: measure errors [0.2]
  job migrate fails        how the Jobs of a hook end from now on (or: runs)
  git down, api down       and git up, api up

Below a command, indented, may stand expectations:

  commit TEXT              a transition is recorded whose subject has TEXT
  expect PART | PART       the status of an app has all of these parts
  error TEXT               a pass fails with TEXT

The output is the script with everything that happened, in the same form, so
that lines of it can be kept as expectations. v2 is the tag of the first
container's image, #1 the first push after the beginning. The exit code is 1 if
an expectation was not met.

The repository is the one in --dir, a commit with --repo or --commit, or else
the files of the script: it may be a txtar archive, whose timeline is the file
called timeline.`,
		Example: `  printf 'start\npush v2\n+10m\npromote\n' | gitrollout simulate - --dir .
  gitrollout simulate release.txtar
  gitrollout simulate release.txtar --update     # keep what happens as expected`,
		Args: exactlyOne("script"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	c.output.register(cmd, "json", "yaml")
	cmd.Flags().StringVar(&c.dir, "dir", "", "use the files of this `folder` as the repository")
	cmd.Flags().StringVar(&c.commit, "commit", "", "use the repository at this `commit`")
	cmd.Flags().BoolVar(&c.update, "update", false, "rewrite the expectations of the script from this run")
	return cmd
}

func (c *simulateCommand) run(cmd *cobra.Command, file string) error {
	script, err := c.read(file)
	if err != nil {
		return err
	}
	tree, err := c.streams.tree(cmd, "--dir", c.dir, c.commit)
	if err != nil {
		return err
	}
	o, err := script.Options(tree, c.source.cluster)
	switch {
	case rollout.IsInvalid(err):
		return err
	case err != nil:
		return usagef("%v", err)
	}
	o.Options = reconciler.Options{Renderer: newRenderer(streams{}), Log: slog.New(slog.DiscardHandler)}
	story, err := simulate.NewStory(o)
	if err != nil {
		return err
	}
	timeline, err := story.Play(script.Timeline)
	if err != nil {
		return usagef("script %s: %v", file, err)
	}
	switch {
	case c.update && file == "-":
		return usagef("--update needs a script file, but the script is read from standard input")
	case c.update:
		for _, e := range timeline.Events {
			e.Failed = nil // String would print FAILED lines, which a script cannot contain
		}
		return os.WriteFile(file, script.With(timeline.String()), 0o644)
	}
	draw := func() string { return terminal.CleanLines(timeline.String()) }
	err = c.output.show(c.streams, timeline, draw)
	if err == nil && timeline.Failed > 0 {
		err = fmt.Errorf("script %s: %s not met", file, rollout.Count(timeline.Failed, "expectation"))
	}
	return err
}

func (c *simulateCommand) read(file string) (script simulate.Script, err error) {
	var data []byte
	if file == "-" {
		data, err = io.ReadAll(c.in)
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return script, usagef("%v", err)
	}
	if script, err = simulate.ParseScript(data); err != nil {
		return script, usagef("script %s %v", file, err)
	}
	return script, nil
}
