package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// undoCommand proposes to take an app back in Git.
type undoCommand struct {
	streams
	source sourceOptions
	author string
	to     string
	reason string
	depth  int
	dryRun bool
}

func newUndo(s streams) *cobra.Command {
	c := &undoCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "undo APP",
		Short: "Propose to take a release back in Git",
		Long: `Push a branch gitrollout/revert/<cluster>/<app> with one commit on top of yours: the
files that the app is built from, as of the version before. Nothing happens until
you merge it; then the app goes back at once if the release is in flight, and
without pauses if the old version has served here before.

It undoes the release in flight, or else the last one. --to names another version:
its template hash as "gitrollout history" shows it, or a commit of your branch. A
version that was itself rejected is refused.

Unlike git revert it takes back one app and nothing else of a commit, and works over
several commits. To go back this minute, without a review: gitrollout abort.`,
		Example: `  gitrollout undo shop
  gitrollout undo shop --dry-run
  gitrollout undo shop --to h1-2c9d0f1b77 --reason "prices are wrong"`,
		Args:              exactlyOne("app"),
		ValidArgsFunction: completeApps(),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.source.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&c.author, "author", "", `"Name <address>" of the commit (default: git's user.name and user.email)`)
	flags.StringVar(&c.to, "to", "", "a template `hash` or a commit to go back to (default: the version before)")
	flags.StringVar(&c.reason, "reason", "", "why; it is in the commit's message")
	flags.IntVar(&c.depth, "depth", 20_000, "how many `commits` of the state branch to look through at most")
	flags.BoolVar(&c.dryRun, "dry-run", false, "show what would be proposed, and push nothing")
	complete(cmd, "to", knownHashes)
	return cmd
}

// target is a version to go back to.
type target struct {
	hash   rollout.Hash // "" without stages
	commit string
}

func (t target) String() string {
	if t.hash == "" {
		return rollout.ShortID(t.commit)
	}
	return fmt.Sprintf("%s of %s", t.hash, rollout.ShortID(t.commit))
}

func (c *undoCommand) run(ctx context.Context, name string) error {
	who, err := identity(ctx, c.author)
	if err != nil {
		return err
	}
	w, err := openWorld(ctx, c.source, who, c.streams)
	if err != nil {
		return err
	}
	app, err := w.app(name)
	if err != nil {
		return err
	}
	s, err := w.stateOf(name)
	if err != nil {
		return err
	}
	if s.Phase == "" {
		return fmt.Errorf("%s: there is no record of it yet, so nothing to undo; is gitrollout run at work?", name)
	}
	to, err := c.target(ctx, w, app, s)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	u, v, err := c.proposal(ctx, w, app, s, to)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(v.Edits) == 0 {
		_, err := fmt.Fprintf(c.out, "nothing to undo: %s asks for what %s was at %s\n", w.source.branch, name, to)
		return err
	}
	if c.dryRun {
		return c.show(u, v)
	}
	return c.push(ctx, w, u, name, to)
}

// target finds the version to go back to.
func (c *undoCommand) target(ctx context.Context, w *world, app rollout.App, s rollout.State) (target, error) {
	var t target
	switch {
	case strings.HasPrefix(c.to, "h1-"):
		var err error
		if t, err = c.released(ctx, w, app.Name, s, rollout.Hash(c.to)); err != nil {
			return t, err
		}
	case c.to != "":
		id, err := fullCommit(ctx, c.to)
		if err != nil {
			return t, usagef("%s", strings.Replace(err.Error(), "--commit", "--to", 1))
		}
		built, err := w.renderAt(ctx, app, id)
		if err != nil {
			return t, fmt.Errorf("--to %s: %w", c.to, err)
		}
		t = target{built.Release(), id}
	case s.Release != nil && s.Stable == nil:
		return t, errors.New("its first deployment is in flight, and there is nothing to go back to; push a version that works")
	case s.Release != nil || s.Phase == rollout.Degraded:
		t = target{s.Stable.Hash, s.Stable.Commit}
	default:
		var err error
		if t, err = c.released(ctx, w, app.Name, s, ""); err != nil {
			return t, err
		}
	}
	if r, rejected := s.IsRejected(t.hash); rejected {
		return t, fmt.Errorf("%s was itself rejected: %s; to try it again: %s", t, r.Reason, w.source.command("gitrollout retry "+app.Name+", once it is what Git asks for"))
	}
	return t, nil
}

// released looks for a version in what was recorded; "" is the one before that
// which serves.
func (c *undoCommand) released(ctx context.Context, w *world, app string, s rollout.State, hash rollout.Hash) (target, error) {
	if s.Stable != nil && hash == s.Stable.Hash {
		return target{hash, s.Stable.Commit}, nil
	}
	for _, r := range s.Rejected {
		if r.Hash == hash {
			return target{hash, r.Commit}, nil
		}
	}
	const many = 50
	h, err := w.history(ctx, app, many, c.depth)
	if err != nil {
		return target{}, err
	}
	for _, p := range h.Releases {
		served := slices.Contains([]status.Outcome{status.Succeeded, status.Recorded, status.Applied}, p.Outcome)
		_, rejected := s.IsRejected(p.Hash)
		current := s.Source == p.Commit || (s.Stable != nil && p.Hash == s.Stable.Hash)
		if hash != "" && p.Hash == hash || hash == "" && served && !rejected && !current {
			return target{p.Hash, p.Commit}, nil
		}
	}
	what := "no version before the one that serves is recorded"
	if hash != "" {
		what = fmt.Sprintf("--to %s: no release of this hash is recorded", hash)
	}
	return target{}, fmt.Errorf("%s; name a commit with --to", what)
}

// proposal is the commit that takes the app back.
func (c *undoCommand) proposal(ctx context.Context, w *world, app rollout.App, s rollout.State, to target) (git.Update, reconciler.Reversion, error) {
	var u git.Update
	old, err := w.repo.Snapshot(ctx, to.commit)
	if err != nil {
		return u, reconciler.Reversion{}, fmt.Errorf("read %s (was the branch's history rewritten?): %w", rollout.ShortID(to.commit), err)
	}
	from := w.head(app)
	if from.Render == nil {
		// What cannot be built tells no files: those of the older version are put back.
		from.Render = &rollout.Render{App: app}
	}
	before, err := w.renderer.Render(old, app, old.Commit())
	if err != nil {
		return u, reconciler.Reversion{}, fmt.Errorf("%s as of %s: %w", app.Path, rollout.ShortID(to.commit), err)
	}
	v, err := reconciler.NewReversion(w.main, old, from.Render, before, w.renders())
	if err != nil {
		return u, v, err
	}
	message := fmt.Sprintf("%s in %s: back to %s\n\n", reconciler.UndoSubject(s), w.source.cluster, to)
	if r := s.Release; r != nil {
		message += fmt.Sprintf("Release %s of %s by %s is in flight:\n%s\n", r.Hash, rollout.ShortID(r.Commit), r.Author, r.Subject)
	} else if r := s.Stable; r != nil {
		message += fmt.Sprintf("Release %s of %s by %s serves:\n%s\n", r.Hash, rollout.ShortID(r.Commit), r.Author, r.Subject)
	}
	message += fmt.Sprintf("\nThis makes the files of %s what they were in %s:\n%s\n", app.Name, rollout.ShortID(to.commit), old.Commit().Subject)
	if reason := clean(c.reason); reason != "" {
		message += "\nReason: " + reason + "\n"
	}
	branch := rollout.ProposalBranch(rollout.ProposeRevert, w.source.cluster, app.Name)
	base := w.heads.Proposals[branch]
	return git.Update{
		Ref: branch, Base: base, Parent: w.heads.Main, Edits: v.Edits, Message: message + v.Caution(), When: time.Now(), Force: base != "",
	}, v, nil
}

// renders are what the branch asks for of each app, as far as it can be built.
func (w *world) renders() []*rollout.Render {
	var all []*rollout.Render
	for _, name := range w.names() {
		if r := w.head(w.apps[name]).Render; r != nil {
			all = append(all, r)
		}
	}
	return all
}

func (c *undoCommand) show(u git.Update, v reconciler.Reversion) error {
	var b strings.Builder
	b.WriteString(u.Message + "\n")
	paths := make([]string, 0, len(v.Edits))
	for path := range v.Edits {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		what := "M"
		if v.Edits[path] == nil {
			what = "D"
		}
		fmt.Fprintf(&b, "%s %s\n", what, path)
	}
	fmt.Fprintf(&b, "\n%s was not pushed (--dry-run)\n", u.Ref)
	_, err := fmt.Fprint(c.out, b.String())
	return err
}

func (c *undoCommand) push(ctx context.Context, w *world, u git.Update, name string, to target) error {
	err := slowly(c.streams, "pushing to "+w.repo.mirror().Remote().String(), func() error {
		_, err := w.repo.mirror().Push(ctx, u)
		return err
	})
	if errors.Is(err, git.ErrConflict) {
		return fmt.Errorf("%s: %s has moved meanwhile; look at it, and try again: %w", name, u.Ref, err)
	}
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "pushed %s: %s goes back to %s when it is merged\n", u.Ref, name, to)
	if page := forge.Page(w.config.Forge, w.repo.mirror().Remote().String(), w.source.branch, u.Ref); page != "" {
		fmt.Fprintf(&b, "  %s\n", page)
	}
	fmt.Fprintf(&b, "  git fetch && git merge origin/%s && git push\n", u.Ref)
	_, err = fmt.Fprint(c.out, b.String())
	return err
}
