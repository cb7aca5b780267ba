package reconciler

import (
	"context"
	"errors"
	"time"
)

// debounce collects the changes of the cluster that arrive together: a pod that
// becomes ready changes itself, its ReplicaSet and its Deployment.
const debounce = 20 * time.Millisecond

// pollSpacing is the least time between two looks at Git that Poll asks for: a
// flood of webhooks costs one fetch a second.
const pollSpacing = time.Second

// Run makes passes until the context ends: at each interval with a look at Git,
// and in between whenever the cluster changes or a timer of a release is due.
// It returns after the pass in progress. A pass that fails is logged, and the
// next one tries again. The only error is ErrDeposed.
func (r *Reconciler) Run(ctx context.Context, interval time.Duration) error {
	poll := time.NewTimer(0)
	defer poll.Stop()
	var polled, next time.Time // the last look at Git, and the next one
	sooner := func() {
		if at := later(time.Now(), polled.Add(pollSpacing)); at.Before(next) {
			next = at
			poll.Reset(time.Until(at))
		}
	}
	for ctx.Err() == nil {
		fetch := false
		var timer <-chan time.Time
		if due := r.NextDue(); !due.IsZero() {
			timer = time.After(time.Until(due))
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
			case <-r.asked:
				sooner()
				continue
			}
		} else {
			select {
			case <-poll.C:
				fetch = true
			case <-r.asked:
				sooner()
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
			polled = time.Now()
			next = polled.Add(r.interval(interval))
			poll.Reset(time.Until(next))
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

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
