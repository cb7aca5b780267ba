package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

const maxTries = 5

// RunOnce fetches Git, reconciles the due apps and pushes. After a conflict, it starts again. If fetch is false, the
// first try uses the previous fetch. Each app makes at most one transition.
func (r *Reconciler) RunOnce(ctx context.Context, clock func() time.Time, fetch bool) error {
	r.stats.passes.Add(1)
	r.collects = r.Ends && !fetch
	failed := map[string]error{} // by reconciled app; nil after success
	var errs []error
	for try := 1; ; try++ {
		var looked error
		if fetch || try > 1 {
			looked = errors.Join(r.in.look(ctx), r.peers.refresh(ctx))
		}
		if errors.Is(looked, ErrDeposed) {
			return looked
		}
		due := r.reconcileDue(ctx, clock, failed)
		r.out.retryRefused()
		refused, lost := r.out.flush(ctx, clock())
		errs = []error{looked, due, refused, lost}
		if !errors.Is(lost, rollout.ErrConflict) || try == maxTries {
			break
		}
	}
	for _, app := range sortedKeys(failed) {
		if done, exists := r.out.result(app); exists {
			failed[app] = r.applyRecorded(r.As(ctx, done.app.App), done, clock())
		}
	}
	if errors.Join(errs...) == nil {
		errs = append(errs, r.out.after(ctx, clock()))
	}
	for _, app := range sortedKeys(failed) {
		if err := failed[app]; err != nil {
			errs = append(errs, fmt.Errorf("app %s: %w", app, err))
		}
	}
	return errors.Join(errs...)
}

// Pump names one of the concurrent loops pumpIn, pumpApps and pumpOut.
type Pump string

const (
	PumpIn   Pump = "in"
	PumpApps Pump = "apps"
	PumpOut  Pump = "out"
)

// Turn runs one pump once, for a simulator. Two turns of the same pump must not overlap.
func (r *Reconciler) Turn(ctx context.Context, pump Pump, clock func() time.Time) error {
	switch pump {
	case PumpIn:
		_, failed := r.in.bring(ctx)
		err := errors.Join(failed, r.in.look(ctx), r.peers.refresh(ctx))
		_, failed = r.in.bring(ctx)
		return errors.Join(err, failed)
	case PumpApps:
		r.renders.drain()
		var errs []error
		for _, app := range r.queue.due(clock()) {
			if _, err := r.reconcile(ctx, app, clock); err != nil {
				errs = append(errs, fmt.Errorf("app %s: %w", app, err))
			}
		}
		return errors.Join(errs...)
	default:
		waits, _, _ := r.out.waits(clock())
		if tidy := r.out.nextTidy(); !waits && (tidy.IsZero() || tidy.After(clock())) {
			return nil
		}
		refused, err := r.out.flush(ctx, clock())
		return errors.Join(refused, err, r.out.after(ctx, clock()))
	}
}

// reconcileDue reconciles due apps, and repeats an app's pass when a missing commit or render arrives.
func (r *Reconciler) reconcileDue(
	ctx context.Context, clock func() time.Time, results map[string]error,
) (err error) {
	due := clock()
	var done []string
	defer func() {
		for _, app := range done {
			r.touch(app)
		}
	}()
	for {
		r.renders.drain() // so that the passes see the newest head
		for _, app := range r.queue.due(due) {
			if _, isRepeated := results[app]; isRepeated && r.out.isRecorded(app) {
				done = append(done, app)
				continue
			}
			if decided, err := r.reconcile(ctx, app, clock); decided {
				results[app] = err
			}
		}
		rendered := r.renders.drain()
		brought, failed := r.in.bring(ctx)
		read, unread := r.peers.answer(ctx)
		if err = errors.Join(err, failed, unread); !rendered && !brought && !read || failed != nil {
			return err
		}
	}
}
