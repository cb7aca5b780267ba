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
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// statusCommand tells scripts what became of a release.
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

It is about what your branch asks for when the command starts; with --commit about
what that commit asks for, and with --release about a template hash. So it is not
content with an older version that happens to be healthy.

  0  it is healthy, or what --for says
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
	flags.StringVar(&c.until, "for", "healthy", "what to wait for: "+strings.Join(goalNames(), ", "))
	flags.StringVar(&c.release, "release", "", "the template `hash` to wait for (default: what the branch asks for)")
	flags.StringVar(&c.commit, "commit", "", "wait for what this `commit` asks for")
	complete(cmd, "for", func(*world, []string) []string { return goalNames() })
	complete(cmd, "release", knownHashes)
	return cmd
}

func (c *statusCommand) check() error {
	switch {
	case c.release != "" && c.commit != "":
		return usagef("--release and --commit exclude each other")
	case !slices.Contains(goalNames(), c.until):
		return usagef("--for %q is not one of %s", c.until, strings.Join(goalNames(), ", "))
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
	w, err := openWorld(ctx, c.source, c.streams)
	if err != nil {
		return err
	}
	w.detail = true
	app, err := w.app(name)
	if err != nil {
		return err
	}
	g, err := c.goal(ctx, w, app)
	if err != nil {
		return err
	}
	lines := c.out
	if c.output.format != "" {
		lines = c.err
	}
	said := ""
	for {
		in, err := w.input(ctx, app, time.Now())
		if err != nil {
			return fmt.Errorf("app %s: %w", name, err)
		}
		a := status.Of(in, w.source.cluster, w.heads.Proposals)
		if line := terminal.Line(a); line != said {
			said = line
			if _, err := fmt.Fprintf(lines, "%s %s\n", in.Now.UTC().Format(time.RFC3339), line); err != nil {
				return err
			}
		}
		v := g.judge(in)
		late := !c.wait || !time.Now().Before(deadline)
		if !v.done && !late {
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

// conclude says how it ended.
func (c *statusCommand) conclude(lines io.Writer, w *world, a status.App, v verdict) error {
	if !v.done && a.Held != nil && !a.Waits() {
		v.code = exitHeld
	}
	if v.done || c.wait {
		text := v.text
		if !v.done {
			text = fmt.Sprintf("not %s within %s", c.until, c.timeout)
		}
		if _, err := fmt.Fprintln(lines, a.App+": "+text); err != nil {
			return err
		}
	}
	if v.code == exitOK {
		return nil
	}
	for _, n := range a.Next {
		_, _ = fmt.Fprintf(lines, "  to %s: %s\n", n.To, w.source.command(n.Command))
	}
	return silent(v.code)
}

// again waits for the next look at Git. Git that cannot be reached for a while
// is no end.
func (c *statusCommand) again(ctx context.Context, w *world, deadline time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(min(c.every, max(time.Until(deadline), time.Millisecond))):
	}
	_, err := w.refresh(ctx)
	if err != nil && ctx.Err() == nil && errors.Is(err, git.ErrUnreachable) && time.Now().Before(deadline) {
		_, _ = fmt.Fprintf(c.err, "%v; trying again\n", err)
		return nil
	}
	return err
}

// goal makes one of the flags.
func (c *statusCommand) goal(ctx context.Context, w *world, app rollout.App) (goal, error) {
	g := goal{until: c.until}
	switch {
	case c.release != "":
		g.hash = rollout.Hash(c.release)
		return g, nil
	case c.commit != "":
		id, err := fullCommit(ctx, c.commit)
		if err != nil {
			return g, err
		}
		r, err := w.renderAt(ctx, app, id)
		if err != nil {
			return g, fmt.Errorf("--commit: %w", err)
		}
		g.hash, g.digest = r.Release(), r.Digest
	default:
		if head := w.head(app); head.Render != nil {
			g.hash, g.digest = head.Render.Release(), head.Render.Digest
		}
	}
	return g, nil
}

// goal is what is waited for. An empty hash is an app without stages; an empty
// digest is any content with the hash.
type goal struct {
	until  string // one of goalNames
	hash   rollout.Hash
	digest string // of the render
}

func goalNames() []string { return []string{"healthy", "paused", "started", "degraded"} }

// verdict is what a look has told: done, and with which exit code.
type verdict struct {
	done bool
	code exitCode
	text string
}

// judge compares a goal with where the app stands.
func (g goal) judge(in strategies.Input) verdict {
	s := in.State
	ours := s.Release != nil && (g.hash == "" || s.Release.Hash == g.hash)
	rejection, rejected := s.IsRejected(g.hash)
	down := s.Phase == rollout.Degraded || s.Phase == rollout.Aborting
	switch {
	case g.until == "degraded" && down && (ours || rejected):
		return verdict{true, exitOK, "it was rejected: " + orText(rejection.Reason, s.Reason)}
	case g.serves(in) && g.until == "degraded":
		return verdict{true, exitDegraded, "it is healthy"}
	case g.serves(in):
		return verdict{true, exitOK, "healthy at " + rollout.ShortID(s.Source)}
	case g.until == "paused" && ours && s.Phase == rollout.Paused, g.until == "started" && ours && !down:
		return verdict{true, exitOK, g.until + " at " + rollout.ShortID(s.Release.Commit)}
	case rejected && !ours:
		return verdict{true, exitDegraded, "it was rejected: " + rejection.Reason}
	case ours && s.Phase == rollout.Aborting:
		return verdict{true, exitDegraded, "it goes back to stable: " + s.Reason}
	case g.overtaken(in):
		return verdict{true, exitDegraded, "another version has taken its place: " + rollout.ShortID(s.Source)}
	case g.held(in):
		return verdict{true, exitHeld, "it is held"}
	}
	return verdict{code: exitNotYet}
}

// serves reports whether what is waited for is what the cluster was given, and
// is healthy.
func (g goal) serves(in strategies.Input) bool {
	s := in.State
	if s.Phase != rollout.Healthy || (s.Held != nil && !s.Held.Waits()) {
		return false
	}
	if g.digest != "" {
		return in.Source != nil && in.Source.Digest == g.digest
	}
	return s.Stable != nil && s.Stable.Hash == g.hash
}

// overtaken reports whether the branch asks for something else, and that is what
// the app follows.
func (g goal) overtaken(in strategies.Input) bool {
	head, s := in.Head.Render, in.State
	if head == nil || s.Source == "" || (g.digest != "" && head.Digest == g.digest) || (g.digest == "" && head.Release() == g.hash) {
		return false
	}
	if in.Source != nil && in.Source.Digest == head.Digest {
		return true
	}
	return s.Release != nil && s.Release.Hash == head.Release() && s.Release.Hash != g.hash
}

// held reports whether the app waits for a person. A record of an older commit's
// trouble may be outdated.
func (g goal) held(in strategies.Input) bool {
	h := in.State.Held
	if in.Head.Err != nil {
		return true
	}
	return h != nil && !h.Waits() && (h.Commit == "" || h.Commit == in.Head.Commit.ID)
}

func orText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
