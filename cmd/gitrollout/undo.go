package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// undoCommand proposes to take an app back in Git.
type undoCommand struct {
	streams
	source sourceOptions
	vouch  vouchOptions
	author string
	undo   undo
	dryRun bool
}

// undo is what somebody wants undone.
type undo struct {
	to     string // a template hash or a commit, "" for the version before
	reason string
	depth  int // how many commits of the state branch to look through at most
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
	c.vouch.register(cmd)
	flags := cmd.Flags()
	registerAuthor(cmd, &c.author)
	flags.StringVar(&c.undo.to, "to", "", "a template `hash` or a commit to go back to (default: the version before)")
	flags.StringVar(&c.undo.reason, "reason", "", "why; it is in the commit's message")
	flags.IntVar(&c.undo.depth, "depth", 20_000, "how many `commits` of the state branch to look through at most")
	flags.BoolVar(&c.dryRun, "dry-run", false, "show what would be proposed, and push nothing")
	complete(cmd, "to", knownHashes)
	return cmd
}

func (c *undoCommand) run(ctx context.Context, name string) error {
	who, err := identity(ctx, c.author)
	if err != nil {
		return err
	}
	w, err := openToSign(ctx, c.source, c.vouch, c.streams)
	if err != nil {
		return err
	}
	o, to, err := w.undo(ctx, name, c.undo)
	if err != nil {
		return err
	}
	said := drawOrder(o)
	if !c.dryRun || len(o.Edits) == 0 {
		err = slowly(c.streams, "pushing to "+w.repo.Remote().String(), func() (err error) {
			said, err = w.pushUndo(ctx, who, name, o, to)
			return err
		})
	}
	if err == nil {
		err = c.say(said)
	}
	return err
}

// undo makes the proposal that takes an app back, and says to which version.
func (w *world) undo(ctx context.Context, name string, u undo) (o propose.Order, to propose.Version, err error) {
	app, err := w.app(name)
	if err != nil {
		return o, to, err
	}
	s, err := w.states.Of(name)
	if err != nil {
		return o, to, err
	}
	if s.Phase == "" {
		return o, to, fmt.Errorf("%s: there is no record of it yet, so nothing to undo; is gitrollout run at work?", name)
	}
	if to, err = w.versionBefore(ctx, app, s, u); err == nil {
		o, err = w.undoOrder(ctx, app, s, to, u.reason)
	}
	if err != nil {
		return o, to, fmt.Errorf("%s: %w", name, err)
	}
	return o, to, nil
}

// versionBefore finds the version to go back to.
func (w *world) versionBefore(
	ctx context.Context, app rollout.App, s rollout.State, u undo,
) (to propose.Version, err error) {
	if u.to == "" || strings.HasPrefix(u.to, "h1-") {
		known := func() ([]propose.Version, error) { return w.versions(ctx, app.Name, u.depth) }
		to, err = propose.Back(s, rollout.Hash(u.to), known)
	} else {
		to, err = w.versionAt(ctx, app, u.to)
	}
	if err != nil {
		return to, err
	}
	if r, rejected := s.IsRejected(to.Hash); rejected {
		return to, fmt.Errorf("%s was itself rejected: %s; to try it again: %s",
			to, r.Reason, w.source.command("gitrollout retry "+app.Name+", once it is what Git asks for"))
	}
	return to, nil
}

// versionAt is what an app was in a commit, as people write one.
func (w *world) versionAt(ctx context.Context, app rollout.App, commit string) (propose.Version, error) {
	id, err := fullCommit(ctx, commit)
	if err != nil {
		return propose.Version{}, usagef("%s", strings.Replace(err.Error(), "--commit", "--to", 1))
	}
	built, err := w.renderAt(ctx, app, id)
	if err != nil {
		return propose.Version{}, fmt.Errorf("--to %s: %w", commit, err)
	}
	return propose.Version{Hash: built.Release(), Commit: id}, nil
}

// versions are the versions of an app on record, newest first.
func (w *world) versions(ctx context.Context, app string, depth int) ([]propose.Version, error) {
	const many = 50
	h, err := w.history(ctx, app, many, depth)
	if err != nil {
		return nil, err
	}
	var all []propose.Version
	for _, p := range h.Releases {
		served := slices.Contains([]status.Outcome{status.Succeeded, status.Recorded, status.Applied}, p.Outcome)
		all = append(all, propose.Version{Hash: p.Hash, Commit: p.Commit, Served: served})
	}
	return all, nil
}

// undoOrder is the commit that makes an app what it was in a version.
func (w *world) undoOrder(
	ctx context.Context, app rollout.App, s rollout.State, to propose.Version, reason string,
) (propose.Order, error) {
	old, err := w.repo.Snapshot(ctx, to.Commit)
	if err != nil {
		return propose.Order{}, fmt.Errorf("read %s (was the branch's history rewritten?): %w",
			rollout.ShortID(to.Commit), err)
	}
	from := w.head(app)
	if from.Render == nil {
		// What cannot be built tells no files: those of the older version are put back.
		from.Render = &rollout.Render{App: app}
	}
	before, err := w.reader.Render(old, app)
	if err != nil {
		return propose.Order{}, fmt.Errorf("%s as of %s: %w", app.Path, rollout.ShortID(to.Commit), err)
	}
	v, err := propose.NewReversion(w.branch.Tree, old, from.Render, before, w.renders())
	if err != nil {
		return propose.Order{}, err
	}
	o := propose.Target{Cluster: w.source.cluster, Branch: w.source.branch}.Undo(s, to, old.Commit().Subject, v,
		terminal.Clean(reason))
	o.When = time.Now()
	return o, nil
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

// drawOrder shows a proposal that is not pushed.
func drawOrder(o propose.Order) string {
	var b strings.Builder
	b.WriteString(o.Message + "\n")
	for _, path := range slices.Sorted(maps.Keys(o.Edits)) {
		what := "M"
		if o.Edits[path] == nil {
			what = "D"
		}
		fmt.Fprintf(&b, "%s %s\n", what, path)
	}
	fmt.Fprintf(&b, "\n%s was not pushed (--dry-run)", o.Branch)
	return b.String()
}

// pushUndo pushes a proposal over the one that there is, and says how to merge it.
func (w *world) pushUndo(
	ctx context.Context, who rollout.Identity, name string, o propose.Order, to propose.Version,
) (said string, err error) {
	if len(o.Edits) == 0 {
		return fmt.Sprintf("nothing to undo: %s asks for what %s was at %s", w.source.branch, name, to), nil
	}
	head, err := w.repo.Repo.Snapshot(ctx, w.heads.Main)
	if err == nil {
		err = w.mayBuildOn(ctx, head)
	}
	if err != nil {
		return "", err
	}
	_, err = w.repo.Push(ctx, []rollout.Update{{
		Branch: o.Branch, Old: w.heads.Proposals[o.Branch], Parent: w.heads.Main,
		Edits: o.Edits, Message: o.Message, When: o.When, Author: who,
	}})
	if errors.Is(err, git.ErrConflict) {
		return "", fmt.Errorf("%s: %s has moved meanwhile; look at it, and try again: %w", name, o.Branch, err)
	}
	if err != nil {
		return "", err
	}
	said = fmt.Sprintf("pushed %s: %s\n", o.Branch, o.Then)
	if page := forge.PagesOf(w.config().Forge, w.repo.Remote().String()).Pull(w.source.branch, o.Branch); page != "" {
		said += "  " + page + "\n"
	}
	return w.warned(said + fmt.Sprintf("  git fetch && git merge origin/%s && git push", o.Branch)), nil
}
