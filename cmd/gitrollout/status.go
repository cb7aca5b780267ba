package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

type statusCommand struct {
	streams
	output  outputOption
	apps    appOptions
	wait    bool
	timeout time.Duration
	every   time.Duration
	until   string
	release string
	commit  string
	skipped bool
}

func newStatus(s streams) *cobra.Command {
	c := &statusCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "status APP...",
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

For several apps, --wait ends when all releases have ended, and the exit code is the
worst: 6 before 8, 8 before 7. With -o, it prints a list, as "gitrollout list" does.

It reads Git alone. The other exit codes: gitrollout help exit-codes.`,
		Example: `  git push && gitrollout status shop --wait
  gitrollout status shop --wait --commit "$GITHUB_SHA" --timeout 30m
  gitrollout status shop --wait --for paused && ./smoke-test && gitrollout promote shop
  gitrollout status -l team=pay --wait`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	c.apps.register(cmd)
	cmd.ValidArgsFunction = s.completeSeveral()
	c.output.register(cmd, "json", "yaml")
	flags := cmd.Flags()
	flags.BoolVar(&c.wait, "wait", false, "wait for the end of each release")
	flags.DurationVar(&c.timeout, "timeout", 10*time.Minute, "with --wait: how long at most")
	flags.DurationVar(&c.every, "refresh", 2*time.Second, "with --wait: time between looks at Git")
	flags.StringVar(&c.until, "for", "healthy", "the goal to wait for: "+strings.Join(status.GoalNames(), ", "))
	flags.StringVar(&c.release, "release", "", "the template `hash` to wait for (default: the newest on the branch)")
	flags.StringVar(&c.commit, "commit", "", "wait for the version of this `commit`")
	s.complete(cmd, "for", func(*console.Session, []string) []string { return status.GoalNames() })
	s.complete(cmd, "release", knownHashes)
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
		return usagef("--timeout %s must be above 0", c.timeout)
	}
	return nil
}

type followed struct {
	app     rollout.App
	goal    status.Goal
	seen    status.App
	said    string
	verdict status.Verdict
	err     error
}

func (f *followed) ended() bool { return f.verdict.Ending != status.NotYet }

func (c *statusCommand) run(ctx context.Context, args []string) error {
	if err := c.check(); err != nil {
		return err
	}
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	deadline := time.Now().Add(c.timeout)
	w, err := openWorld(ctx, &c.source, c.streams)
	if err != nil {
		return err
	}
	all, err := c.follow(ctx, w, args)
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
	for {
		for _, f := range all {
			f.err = c.look(ctx, w, f, lines)
		}
		if all, err = c.readable(all); err != nil {
			return err
		}
		haveEnded := !slices.ContainsFunc(all, func(f *followed) bool { return !f.ended() })
		if late := !c.wait || !time.Now().Before(deadline); haveEnded || late {
			break
		}
		if err := c.again(ctx, w, deadline); err != nil {
			return err
		}
	}
	var data any = status.Listing{Cluster: w.Cluster,
		Apps: rollout.Mapped(all, func(f *followed) status.App { return f.seen })}
	if len(all) == 1 && c.apps.matches == nil {
		data = all[0].seen
	}
	if _, err := c.output.write(c.streams, data); err != nil {
		return err
	}
	return c.conclude(lines, w, all)
}

func (c *statusCommand) follow(ctx context.Context, w *console.Session, args []string) (all []*followed, err error) {
	names, unknown, err := c.apps.pick(ctx, w, args)
	if err != nil {
		return nil, err
	}
	if c.release != "" && len(names) > 1 {
		return nil, usagef("--release is the hash of one app, and %d apps are selected; use --commit", len(names))
	}
	if c.commit != "" {
		if c.commit, err = fullCommit(ctx, "--commit", c.commit); err != nil {
			return nil, err
		}
	}
	w.Detail = true
	for _, name := range names {
		f := &followed{}
		f.app, f.err = w.App(name)
		all = append(all, f)
	}
	return c.readable(all, unknown...)
}

// readable drops the apps that cannot be read, and prints a line for each. Without a selector, or if Git is
// unreachable, it returns the errors instead.
func (c *statusCommand) readable(all []*followed, failed ...error) ([]*followed, error) {
	failed = append(failed, rollout.Mapped(all, func(f *followed) error { return f.err })...)
	if err := errors.Join(failed...); c.apps.matches == nil || !isOfOneApp(err) {
		return all, err
	}
	for _, err := range failed {
		if err != nil {
			c.skipped = true
			_, _ = fmt.Fprintf(c.err, "skipped %v\n", err)
		}
	}
	return slices.DeleteFunc(all, func(f *followed) bool { return f.err != nil }), nil
}

func (c *statusCommand) look(ctx context.Context, w *console.Session, f *followed, lines io.Writer) error {
	if f.ended() {
		return nil
	}
	in, err := w.Input(ctx, f.app, time.Now())
	if err == nil && f.goal.Until == "" {
		f.goal, err = c.goal(ctx, w, in)
	}
	if err != nil {
		return fmt.Errorf("app %s: %w", f.app.Name, err)
	}
	f.seen, f.verdict = status.Of(in, w.Cluster, w.Heads.Proposals), f.goal.Judge(in)
	line := terminal.Line(f.seen)
	if line == f.said {
		return nil
	}
	f.said = line
	_, err = fmt.Fprintf(lines, "%s %s\n", in.Now.UTC().Format(time.RFC3339), line)
	return err
}

// For several apps, the exit code is the first code in `worst` that an app has.
var (
	endings = map[status.Ending]exitCode{status.NotYet: exitNotYet, status.Reached: exitOK,
		status.Missed: exitDegraded, status.Stuck: exitHeld}
	worst = []exitCode{exitDegraded, exitHeld, exitNotYet, exitOK}
)

func (c *statusCommand) conclude(lines io.Writer, w *console.Session, all []*followed) error {
	least := slices.Index(worst, map[bool]exitCode{false: exitOK, true: exitHeld}[c.skipped])
	for _, f := range all {
		code := endings[f.verdict.Ending]
		if !f.ended() && f.seen.Held != nil && !f.seen.Waits() {
			code = exitHeld
		}
		least = min(least, slices.Index(worst, code))
		text := f.verdict.Text
		if !f.ended() {
			text = fmt.Sprintf("not %s within %s", c.until, c.timeout)
		}
		if f.ended() || c.wait {
			if _, err := fmt.Fprintln(lines, f.app.Name+": "+text); err != nil {
				return err
			}
		}
		if code == exitOK {
			continue
		}
		for _, n := range f.seen.Next {
			_, _ = fmt.Fprintf(lines, "  to %s: %s\n", n.To, w.Command(n.Command))
		}
	}
	return silentIf(worst[least] != exitOK, worst[least])
}

func (c *statusCommand) again(ctx context.Context, w *console.Session, deadline time.Time) error {
	if !sleep(ctx, min(c.every, max(time.Until(deadline), time.Millisecond))) {
		return ctx.Err()
	}
	_, err := w.Refresh(ctx)
	if err != nil && ctx.Err() == nil && errors.Is(err, git.ErrUnreachable) && time.Now().Before(deadline) {
		_, _ = fmt.Fprintf(c.err, "%v; trying again\n", err)
		return nil
	}
	return err
}

func (c *statusCommand) goal(ctx context.Context, w *console.Session, in strategies.Input) (g status.Goal, err error) {
	r := in.Head.Render
	switch {
	case c.release != "":
		return status.Goal{Until: c.until, Hash: rollout.Hash(c.release)}, nil
	case c.commit != "":
		if r, err = w.RenderAt(ctx, in.App, c.commit); err != nil {
			return g, fmt.Errorf("--commit: %w", err)
		}
	case r == nil:
		return status.Goal{Until: c.until}, nil
	}
	g = status.Goal{Until: c.until, Hash: r.Release(), Digest: r.Digest, Commit: cmp.Or(c.commit, w.Heads.Main)}
	return g, nil
}
