package reconciler

import (
	"context"
	"errors"
	"time"
)

// debounce collects the changes of the cluster that arrive together: a pod that
// becomes ready changes itself, its ReplicaSet and its Deployment.
const debounce = 20 * time.Millisecond

// Run makes passes until the context ends: at each interval with a look at Git,
// and in between whenever the cluster changes or a timer of a release is due.
// It returns after the pass in progress. A pass that fails is logged, and the
// next one tries again. The only error is ErrDeposed.
func (r *Reconciler) Run(ctx context.Context, interval time.Duration) error {
	poll := time.NewTimer(0)
	defer poll.Stop()
	for ctx.Err() == nil {
		fetch := false
		var timer <-chan time.Time
		if next := r.nextDue(); !next.IsZero() {
			timer = time.After(time.Until(next))
		}
		if !r.anyDirty() {
			select {
			case <-ctx.Done():
				return nil
			case <-poll.C:
				fetch = true
			case <-timer:
			case <-r.wake:
				sleep(ctx, debounce)
			}
		} else {
			select {
			case <-poll.C:
				fetch = true
			default:
			}
		}
		if err := r.RunOnce(ctx, time.Now(), fetch); errors.Is(err, ErrDeposed) {
			return err
		} else if err != nil && ctx.Err() == nil {
			r.logFailures(err)
		} else if err == nil && fetch {
			r.failing = nil
		}
		if fetch {
			poll.Reset(r.interval(interval))
		}
	}
	return nil
}

// interval is the flag's, or what the configuration in Git asks for.
func (r *Reconciler) interval(flag time.Duration) time.Duration {
	if flag > 0 {
		return flag
	}
	if r.config != nil {
		return r.config.Interval
	}
	return 30 * time.Second
}

func (r *Reconciler) anyDirty() bool {
	for _, a := range r.apps {
		if a.dirty && a.broken == nil {
			return true
		}
	}
	return false
}

// logFailures logs each error of a pass once, not at each pass that meets it
// again.
func (r *Reconciler) logFailures(err error) {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	failing := map[string]bool{}
	for _, err := range all {
		text := err.Error()
		if failing[text] = true; !r.failing[text] {
			r.Log.Error("pass failed", "error", err)
		}
	}
	r.failing = failing
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
