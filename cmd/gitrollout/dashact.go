package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/dashboard"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// dashActor carries out what people ask for on the page: what promote, hold,
// abort and retry do, under the name of whoever is signed in.
type dashActor struct{ source sourceOptions }

// Act is dashboard.Actor's.
func (d dashActor) Act(ctx context.Context, who dashboard.Person, app string, a dashboard.Action) (string, error) {
	ctx, cancel := outlive(ctx) // a closed page stops no push that has begun
	defer cancel()
	var out bytes.Buffer
	c := &pushCommand{streams: streams{in: strings.NewReader(""), out: &out, err: &bytes.Buffer{}}, source: d.source, author: who.Name + " <" + who.Email + ">"}
	err := c.carryOut(ctx, app, func(in strategies.Input) (order, error) {
		if err := sameRelease(in, a); err != nil {
			return order{}, err
		}
		return decideAction(in, a)
	})
	if err != nil {
		return "", errors.New(message(err))
	}
	return strings.TrimSpace(out.String()), nil
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
