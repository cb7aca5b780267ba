package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/dashboard"
	"gitrollout.dev/gitrollout/views/plan"
)

// dashRecords looks into Git for the pages of the dashboard, and pushes what people ask for there. It works
// beside the loop, so that whoever reads history delays no pass of a reconciler.
type dashRecords struct {
	streams
	source sourceOptions
	repo   *repository // of the loop

	mu    sync.Mutex
	world *world // nil until it is needed
}

// historyReleases is how many releases of an app are shown, and historyDepth how
// many commits of the state branch are searched for them.
const (
	historyReleases = 20
	historyDepth    = 2000
)

// open reads what is new in Git; the caller holds the lock.
func (r *dashRecords) open(ctx context.Context) (*world, error) {
	if r.world == nil {
		w, err := newWorld(ctx, r.source, &repository{r.repo.Beside()}, r.streams)
		if err != nil {
			return nil, err
		}
		w.detail = true
		if files := r.source.keys.Files(); files.Commits+files.Keyring != "" {
			w.signers, w.unsigned = r.source.keys.Commits(), "nothing is pushed until somebody has signed one on top"
		}
		r.world = w
		return w, nil
	}
	_, err := r.world.refresh(ctx)
	return r.world, err
}

// Diff is dashboard.Records': from what serves to the release in flight, or to
// what was rejected.
func (r *dashRecords) Diff(ctx context.Context, name string) (dashboard.Diff, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, err := r.open(ctx)
	if err != nil {
		return dashboard.Diff{}, err
	}
	app, err := w.app(name)
	if err != nil {
		return dashboard.Diff{}, err
	}
	state, err := w.states.Of(name)
	if err != nil || state.Stable == nil {
		return dashboard.Diff{}, err
	}
	var to *rollout.Render
	switch head := w.head(app); {
	case state.Release != nil:
		if to, err = w.renderAt(ctx, app, state.Release.Commit); err != nil {
			return dashboard.Diff{}, err
		}
	case head.Render != nil && state.Phase == rollout.Degraded:
		to = head.Render
	default:
		return dashboard.Diff{}, nil
	}
	from, err := w.renderAt(ctx, app, state.Stable.Commit)
	if err != nil {
		return dashboard.Diff{}, err
	}
	return diffOf(from, to)
}

func diffOf(from, to *rollout.Render) (dashboard.Diff, error) {
	d := dashboard.Diff{From: from.Commit.ID, To: to.Commit.ID}
	before, after := from.ByRef(), to.ByRef()
	for _, c := range rollout.Changes(from, to) {
		text, err := plan.Compare("stable", before[c.Ref], "release", after[c.Ref])
		if err != nil {
			return d, err
		}
		_, text, _ = strings.Cut(text, "+++ release\n")
		d.Objects = append(d.Objects, dashboard.Object{Name: c.Ref.String(), Verb: c.Verb, Text: text})
	}
	return d, nil
}

// History is dashboard.Records': the newest releases of the app.
func (r *dashRecords) History(ctx context.Context, name string) (dashboard.History, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, err := r.open(ctx)
	if err != nil {
		return dashboard.History{}, err
	}
	pages := forge.PagesOf(w.config().Forge, w.repo.Remote().String())
	h := dashboard.History{Links: dashboard.Links{
		Commit: pages.Commit("{}"),
		// The address is that of a branch named {}, as an address has these two letters.
		Branch: strings.ReplaceAll(pages.Pull(w.source.branch, "{}"), url.QueryEscape("{}"), "{}"),
	}}
	if w.heads.State == "" {
		return h, nil
	}
	if h.History, err = w.history(ctx, name, historyReleases, historyDepth); err != nil {
		return h, fmt.Errorf("the state branch's history: %w", err)
	}
	if h.Note != "" {
		h.Note = "older ones: " + w.source.command("gitrollout history "+name)
	}
	return h, nil
}

// dashActor carries out what people ask for on the page: what promote, hold,
// abort, retry and undo do, under the name of whoever is signed in.
type dashActor struct{ *dashRecords }

// Act is dashboard.Actor's. It refuses to do to one release what was meant for another.
func (d dashActor) Act(ctx context.Context, who dashboard.Person, app string, a propose.Action) (said string,
	err error) {
	ctx, cancel := outlive(ctx) // a closed page stops no push that has begun
	defer cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	w, err := d.open(ctx)
	if err == nil {
		said, err = actFor(ctx, w, rollout.Identity{Name: who.Name, Email: who.Email}, app, a)
	}
	if err != nil {
		return "", errors.New(message(err)) // as the commands print it
	}
	return said, nil
}

// actFor is any verb, about the release that the person sees.
func actFor(ctx context.Context, w *world, who rollout.Identity, app string, a propose.Action) (string, error) {
	if a.Verb != propose.Undo {
		return w.act(ctx, who, app, a, a.StillAbout)
	}
	state, err := w.states.Of(app)
	if err != nil {
		return "", err
	}
	if err := a.StillAbout(strategies.Input{State: state}); err != nil {
		return "", err
	}
	o, to, err := w.undo(ctx, app, undo{reason: a.Reason, depth: historyDepth})
	if err != nil {
		return "", err
	}
	return w.pushUndo(ctx, who, app, o, to)
}
