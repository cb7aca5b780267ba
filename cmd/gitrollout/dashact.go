package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/dashboard"
)

// dashActor carries out what people ask for on the page: what promote, hold,
// abort, retry and undo do, under the name of whoever is signed in.
type dashActor struct{ source sourceOptions }

// Act is dashboard.Actor's.
func (d dashActor) Act(ctx context.Context, who dashboard.Person, app string, a dashboard.Action) (string, error) {
	ctx, cancel := outlive(ctx) // a closed page stops no push that has begun
	defer cancel()
	var out bytes.Buffer
	s := streams{in: strings.NewReader(""), out: &out, err: &bytes.Buffer{}}
	author := who.Name + " <" + who.Email + ">"
	if a.Verb == "undo" {
		err := d.undo(ctx, s, author, app, a)
		return strings.TrimSpace(out.String()), plainly(err)
	}
	c := &pushCommand{streams: s, source: d.source, author: author}
	err := c.carryOut(ctx, app, func(in strategies.Input) (order, error) {
		if err := sameRelease(in, a); err != nil {
			return order{}, err
		}
		return decideAction(in, a)
	})
	return strings.TrimSpace(out.String()), plainly(err)
}

// plainly is an error as the commands print it.
func plainly(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(message(err))
}

// undo proposes to take the release in flight or the last one back.
func (d dashActor) undo(ctx context.Context, s streams, author, app string, a dashboard.Action) error {
	w, err := openWorld(ctx, d.source, git.Identity{}, s)
	if err != nil {
		return err
	}
	state, err := w.stateOf(app)
	if err != nil {
		return err
	}
	if err := sameRelease(strategies.Input{State: state}, a); err != nil {
		return err
	}
	c := &undoCommand{streams: s, source: d.source, author: author, reason: a.Reason, depth: historyDepth}
	return c.run(ctx, app)
}

// sameRelease refuses to do to one release what was meant for another.
func sameRelease(in strategies.Input, a dashboard.Action) error {
	now := rollout.Hash("")
	switch {
	case a.Verb == "retry" && in.Head.Render != nil:
		now = in.Head.Render.Release()
	case in.State.Release != nil:
		now = in.State.Release.Hash
	}
	if a.Release != now {
		return fmt.Errorf("the page shows release %q and it is now %q; look again", a.Release, now)
	}
	return nil
}

func decideAction(in strategies.Input, a dashboard.Action) (order, error) {
	switch a.Verb {
	case "promote":
		switch {
		case a.Full:
			return promoteFully(in)
		case a.Through != "":
			return promoteThrough(in, a.Through)
		}
		return promoteGate(in)
	case "hold":
		if a.Off {
			return holdOff(in)
		}
		return hold(in, a.Reason)
	case "abort":
		return abort(in, a.Reason)
	case "retry":
		return retry(in)
	}
	return order{}, fmt.Errorf("there is no verb %q", a.Verb)
}
