package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// Undo holds the settings of an undo.
type Undo struct {
	To     string // version to restore: template hash or full commit id; "": previous
	Reason string
	Depth  int // maximum number of state commits to read
}

// UndoOrder returns the proposal to undo a release. If the proposal has no edits, its Effect says why.
func (w *Session) UndoOrder(ctx context.Context, name string, u Undo) (o propose.Change, err error) {
	app, err := w.App(name)
	if err != nil {
		return o, err
	}
	s, err := w.States.Of(name)
	if err != nil {
		return o, err
	}
	if s.Phase == "" {
		return o, fmt.Errorf("%s: it has no record yet: nothing to undo; check that gitrollout run is running", name)
	}
	back := undoing{w, app, s}
	to, err := back.to(ctx, u)
	if err == nil {
		o, err = back.order(ctx, to, u.Reason)
	}
	if err != nil {
		return o, fmt.Errorf("%s: %w", name, err)
	}
	if len(o.Edits) == 0 {
		o.Effect = fmt.Sprintf("nothing to undo: %s already has %s at %s", w.Branch, name, to)
	}
	return o, nil
}

type undoing struct {
	*Session
	app   rollout.App
	state rollout.State
}

func (b undoing) to(ctx context.Context, u Undo) (to propose.Version, err error) {
	if u.To == "" || rollout.IsHash(u.To) {
		known := func() ([]propose.Version, error) {
			const many = 50
			h, err := b.Session.History(ctx, b.app.Name, many, u.Depth)
			return rollout.Mapped(h.Releases, func(p status.Past) propose.Version {
				served := slices.Contains([]status.Outcome{status.Succeeded, status.Recorded, status.Applied}, p.Outcome)
				return propose.Version{Hash: p.Hash, Commit: p.Commit, Served: served}
			}), err
		}
		to, err = propose.Back(b.state, rollout.Hash(u.To), known)
	} else if built, failed := b.RenderAt(ctx, b.app, u.To); failed != nil {
		err = fmt.Errorf("--to %s: %w", rollout.ShortID(u.To), failed)
	} else {
		to = propose.Version{Hash: built.Release(), Commit: u.To}
	}
	if err != nil {
		return to, err
	}
	if r, rejected := b.state.IsRejected(to.Hash); rejected {
		return to, fmt.Errorf("%s was rejected too: %s; once Git has that version, retry it: %s",
			to, r.Reason, b.Command("gitrollout retry "+b.app.Name))
	}
	return to, nil
}

func (b undoing) order(ctx context.Context, to propose.Version, reason string) (propose.Change, error) {
	old, err := b.Repo.Snapshot(ctx, to.Commit)
	if err != nil {
		return propose.Change{}, fmt.Errorf("read %s (was the branch's history rewritten?): %w",
			rollout.ShortID(to.Commit), err)
	}
	from := b.Head(b.app)
	if from.Render == nil {
		// The head cannot be rendered, so all files of the older render are restored.
		from.Render = &rollout.Render{App: b.app}
	}
	before, err := b.reader.Render(old, b.app)
	if err != nil {
		return propose.Change{}, fmt.Errorf("%s as of %s: %w", b.app.Path, rollout.ShortID(to.Commit), err)
	}
	var all []*rollout.Render // at the newest commit
	for _, name := range b.Names() {
		if r := b.Head(b.Apps[name]).Render; r != nil {
			all = append(all, r)
		}
	}
	v, err := propose.NewReversion(b.Tip.Tree, old, from.Render, before, all)
	if err != nil {
		return propose.Change{}, err
	}
	o := propose.Target{Cluster: b.Cluster, Branch: b.Branch}.Undo(b.state, to, old.Commit().Subject, v,
		terminal.Clean(reason))
	o.When = b.Now()
	return o, nil
}

func (w *Session) pushProposal(ctx context.Context, who rollout.Identity, o propose.Change) (said string, err error) {
	head, err := w.Repo.Snapshot(ctx, w.Heads.Main)
	if err == nil {
		err = w.mayBuildOn(ctx, head)
	}
	if err != nil {
		return "", err
	}
	heads, err := w.Repo.Push(ctx, []rollout.Update{{
		Branch: o.Branch, Old: w.Heads.Proposals[o.Branch], Parent: w.Heads.Main,
		Edits: o.Edits, Message: o.Message, When: o.When, Author: who,
	}})
	if errors.Is(err, git.ErrConflict) {
		return "", fmt.Errorf("%s: %s exists, or another push has changed it; check the branch, and try again: %w",
			o.App, o.Branch, err)
	}
	if err == nil && heads[o.Branch] == "" {
		err = fmt.Errorf("nothing to propose: %s already has this change of %s", w.Branch, o.App)
	}
	if err != nil {
		return "", err
	}
	said = fmt.Sprintf("pushed %s: %s\n", o.Branch, o.Effect)
	if page := forge.PagesOf(w.Config().Forge, w.Repo.Remote().String()).Pull(w.Branch, o.Branch); page != "" {
		said += "  " + page + "\n"
	}
	said += "  " + fmt.Sprintf(propose.MergeCommand, o.Branch)
	if strings.Contains(o.Branch, "+") { // the reconciler never removes a branch for several apps
		said += " && git push --delete origin " + o.Branch
	}
	return w.warned(said), nil
}
