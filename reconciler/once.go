package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// maxTries bounds how often RunOnce decides when it loses the race for the state branch each time. Each loss means
// that another writer made progress.
const maxTries = 5

// RunOnce makes each pump turn once, one after the other: with fetch it looks at Git first; without, it works on what
// is already known, as after a change in the cluster. Each app makes at most one transition. The error joins what
// went wrong, and each app that is not named in it has been handled. The clock is asked anew for each app: what came
// before may have taken long.
func (r *Reconciler) RunOnce(ctx context.Context, clock func() time.Time, fetch bool) error {
	r.stats.passes.Add(1)
	r.collects = r.Ends && !fetch
	var looked error
	if fetch {
		looked = r.in.look(ctx)
	}
	if errors.Is(looked, ErrDeposed) {
		return looked
	}
	visits := map[string]*visit{}
	errs := []error{looked, r.visitDue(ctx, clock, visits)}
	err := r.out.flush(ctx, clock())
	for try := 1; errors.Is(err, rollout.ErrConflict) && try < maxTries; try++ {
		if looked = r.in.look(ctx); errors.Is(looked, ErrDeposed) {
			return looked
		}
		errs = []error{looked, r.visitDue(ctx, clock, visits)}
		err = r.out.flush(ctx, clock())
	}
	errs = append(errs, err)
	for _, app := range sortedKeys(visits) {
		if s := r.out.answer(app); s != nil {
			visits[app] = s
			r.conclude(r.as(ctx, s.app.App), s, clock())
		}
	}
	if errors.Join(errs...) == nil {
		errs = append(errs, r.out.after(ctx, clock()))
	}
	for _, app := range sortedKeys(visits) {
		if s := visits[app]; s.err != nil {
			errs = append(errs, fmt.Errorf("app %s: %w", app, s.err))
		}
	}
	return errors.Join(errs...)
}

// Pump is one of the three that a Reconciler is made of.
type Pump string

// The pumps.
const (
	PumpIn   Pump = "in"   // looks at Git, and brings what visits wait for
	PumpApps Pump = "apps" // visits what is due
	PumpOut  Pump = "out"  // records what visits have handed over
)

// Turn makes one pump do once what there is for it to do, as Run does when all of them run beside each other: a
// scheduler that is not random, as the simulator's, lets turns of different pumps overlap. Turns of the same pump do
// not.
func (r *Reconciler) Turn(ctx context.Context, pump Pump, clock func() time.Time) error {
	switch pump {
	case PumpIn:
		_, failed := r.in.bring(ctx)
		err := errors.Join(failed, r.in.look(ctx))
		_, failed = r.in.bring(ctx)
		return errors.Join(err, failed)
	case PumpApps:
		r.renders.drain()
		var errs []error
		for _, app := range r.agenda.take(clock()) {
			if s := r.attend(ctx, app, clock); s != nil && s.err != nil {
				errs = append(errs, fmt.Errorf("app %s: %w", app, s.err))
			}
		}
		return errors.Join(errs...)
	default:
		if waits, _, _ := r.out.waits(); !waits {
			return nil
		}
		err := r.out.flush(ctx, clock())
		return errors.Join(err, r.out.after(ctx, clock()))
	}
}

// visitDue visits the apps that are due, and those that waited for something that can be had here and now, until none
// is left.
func (r *Reconciler) visitDue(
	ctx context.Context, clock func() time.Time, visits map[string]*visit,
) (err error) {
	due := clock() // what becomes due meanwhile is the next pass's
	var done []string
	defer func() {
		for _, app := range done {
			r.touch(app)
		}
	}()
	for {
		r.renders.drain() // what an app's head asks for now is a better reason than what it asked for before
		for _, app := range r.agenda.take(due) {
			if s := visits[app]; s != nil && s.recorded { // before another app's transition has lost the race
				done = append(done, app)
				continue
			}
			if s := r.attend(ctx, app, clock); s != nil {
				visits[app] = s
			}
		}
		rendered := r.renders.drain()
		brought, failed := r.in.bring(ctx)
		err = errors.Join(err, failed)
		if !rendered && !brought || failed != nil {
			return err
		}
	}
}
