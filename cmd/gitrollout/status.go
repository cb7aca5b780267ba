package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// statusCommand reports to scripts how a release ends.
type statusCommand struct {
	streams
	source  sourceOptions
	output  outputOption
	wait    bool
	timeout time.Duration
	every   time.Duration
	until   string
	release string
	commit  string
}

func newStatus(s streams) *cobra.Command {
	c := &statusCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "status APP",
		Short: "Tell scripts where a release stands, and wait for its end",
		Long: `Say in a line where an app stands, with an exit code for scripts. With --wait it
goes on until the release has ended, and prints a line for each transition.

It is about the newest version on your branch when the command starts; with --commit
about the version of that commit, and with --release about a template hash. An older
version that happens to be healthy does not count.

  0  it is healthy, or has reached the goal of --for
  6  it will not be: rejected, reverted, or overtaken by a newer push
  7  not yet: the time is up, or there was no --wait
  8  it is held, and a person has to do something

It reads Git alone. The other exit codes: gitrollout help exit-codes.`,
		Example: `  git push && gitrollout status shop --wait
  gitrollout status shop --wait --commit "$GITHUB_SHA" --timeout 30m
  gitrollout status shop --wait --for paused && ./smoke-test && gitrollout promote shop`,
		Args:              exactlyOne("app"),
		ValidArgsFunction: completeApps(),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.source.register(cmd)
	c.output.register(cmd, "json", "yaml")
	flags := cmd.Flags()
	flags.BoolVar(&c.wait, "wait", false, "wait for the end")
	flags.DurationVar(&c.timeout, "timeout", 10*time.Minute, "with --wait: how long at most")
	flags.DurationVar(&c.every, "refresh", 2*time.Second, "with --wait: time between looks at Git")
	flags.StringVar(&c.until, "for", "healthy", "the goal to wait for: "+strings.Join(status.GoalNames(), ", "))
	flags.StringVar(&c.release, "release", "", "the template `hash` to wait for (default: the newest on the branch)")
	flags.StringVar(&c.commit, "commit", "", "wait for the version of this `commit`")
	complete(cmd, "for", func(*console.Session, []string) []string { return status.GoalNames() })
	complete(cmd, "release", knownHashes)
	return cmd
}

func (c *statusCommand) check() error {
	switch {
	case c.release != "" && c.commit != "":
		return usagef("--release and --commit exclude each other")
	case !slices.Contains(status.GoalNames(), c.until):
		return usagef("--for %q is not supported; supported values: %s", c.until, strings.Join(status.GoalNames(), ", "))
	case c.every < 100*time.Millisecond:
		return usagef("--refresh %s is less than 100ms", c.every)
	case c.timeout <= 0:
		return usagef("--timeout %s is not a time to wait", c.timeout)
	}
	return nil
}

func (c *statusCommand) run(ctx context.Context, name string) error {
	if err := c.check(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	deadline := time.Now().Add(c.timeout)
	w, err := openWorld(ctx, &c.source, c.streams)
	if err != nil {
		return err
	}
	w.Detail = true
	app, err := w.App(name)
	if err != nil {
		return err
	}
	g, err := c.goal(ctx, w, app)
	if err != nil {
		return err
	}
	if text := w.Warning(); text != "" {
		_, _ = fmt.Fprintln(c.err, "warning: "+text)
	}
	lines := c.out
	if c.output.format != "" {
		lines = c.err
	}
	said := ""
	for {
		in, err := w.Input(ctx, app, time.Now())
		if err != nil {
			return fmt.Errorf("app %s: %w", name, err)
		}
		a := status.Of(in, w.Cluster, w.Heads.Proposals)
		if line := terminal.Line(a); line != said {
			said = line
			if _, err := fmt.Fprintf(lines, "%s %s\n", in.Now.UTC().Format(time.RFC3339), line); err != nil {
				return err
			}
		}
		v := g.Judge(in)
		done := v.Ending != status.NotYet
		late := !c.wait || !time.Now().Before(deadline)
		if !done && !late {
			if err := c.again(ctx, w, deadline); err != nil {
				return err
			}
			continue
		}
		if _, err := c.output.write(c.streams, a); err != nil {
			return err
		}
		return c.conclude(lines, w, a, v)
	}
}

var endings = map[status.Ending]exitCode{status.NotYet: exitNotYet, status.Reached: exitOK,
	status.Missed: exitDegraded, status.Stuck: exitHeld}

func (c *statusCommand) conclude(lines io.Writer, w *console.Session, a status.App, v status.Verdict) error {
	done, code := v.Ending != status.NotYet, endings[v.Ending]
	if !done && a.Held != nil && !a.Waits() {
		code = exitHeld
	}
	if done || c.wait {
		text := v.Text
		if !done {
			text = fmt.Sprintf("not %s within %s", c.until, c.timeout)
		}
		if _, err := fmt.Fprintln(lines, a.App+": "+text); err != nil {
			return err
		}
	}
	if code == exitOK {
		return nil
	}
	for _, n := range a.Next {
		_, _ = fmt.Fprintf(lines, "  to %s: %s\n", n.To, w.Command(n.Command))
	}
	return silent(code)
}

func (c *statusCommand) again(ctx context.Context, w *console.Session, deadline time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(min(c.every, max(time.Until(deadline), time.Millisecond))):
	}
	_, err := w.Refresh(ctx)
	if err != nil && ctx.Err() == nil && errors.Is(err, git.ErrUnreachable) && time.Now().Before(deadline) {
		_, _ = fmt.Fprintf(c.err, "%v; trying again\n", err)
		return nil
	}
	return err
}

func (c *statusCommand) goal(ctx context.Context, w *console.Session, app rollout.App) (status.Goal, error) {
	g := status.Goal{Until: c.until}
	switch {
	case c.release != "":
		g.Hash = rollout.Hash(c.release)
		return g, nil
	case c.commit != "":
		id, err := fullCommit(ctx, "--commit", c.commit)
		if err != nil {
			return g, err
		}
		r, err := w.RenderAt(ctx, app, id)
		if err != nil {
			return g, fmt.Errorf("--commit: %w", err)
		}
		g.Hash, g.Digest = r.Release(), r.Digest
	default:
		if head := w.Head(app); head.Render != nil {
			g.Hash, g.Digest = head.Render.Release(), head.Render.Digest
		}
	}
	return g, nil
}
