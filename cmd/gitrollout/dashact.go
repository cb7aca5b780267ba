package main

import (
	"context"
	"errors"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/dashboard"
)

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
