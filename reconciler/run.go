package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// debounce collects the changes of the cluster that arrive together: a pod that becomes ready changes itself, its
// ReplicaSet and its Deployment.
const debounce = 20 * time.Millisecond

// pollSpacing is the least time between two looks at Git that Poll asks for: a flood of webhooks costs one fetch a
// second.
const pollSpacing = time.Second

// gathering is how long a transition waits for another one that is decided at the same moment, and mostGathering how
// long the first of many does: fifty apps that one push changes are rendered one after the other, and the first few of
// them would take the push for which all others then wait an interval. A retreat does not wait.
const (
	gathering     = 30 * time.Millisecond
	mostGathering = 500 * time.Millisecond
)

// until is how long it is to a moment.
func until(when time.Time) time.Duration { return time.Until(when) }

// Run makes the pumps run beside each other until the context ends: Git is looked at at each interval, an app is
// visited when Git, the cluster, a measurement or a timer says so, and what they decide is recorded. It returns after
// the visits and the push in progress. What fails is logged and tried again. The only error is ErrDeposed.
func (r *Reconciler) Run(ctx context.Context, interval time.Duration) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	apps := workqueue.NewTypedDelayingQueue[string]()
	r.agenda.hand(apps)
	var pumps, visits sync.WaitGroup
	pumps.Go(func() { stop(r.pumpIn(ctx, interval)) })
	pumps.Go(func() { r.pumpOut(ctx) })
	for range r.Workers {
		visits.Go(func() { r.pumpApps(ctx, apps) })
	}
	for range max(2, runtime.GOMAXPROCS(0)) { // one app that takes long is never all of them
		go r.renders.work()
	}
	<-ctx.Done()
	apps.ShutDown()
	r.renders.close()
	visits.Wait()
	pumps.Wait()
	if err := context.Cause(ctx); errors.Is(err, ErrDeposed) {
		return err // and records nothing any more
	}
	// What was decided in the last visits: a retreat that was applied is to be known to whoever goes on.
	r.flush(context.WithoutCancel(ctx))
	return nil
}

// hand gives what is due to a queue.
func (a *agenda) hand(q queue) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = q
	for app, when := range a.due {
		q.AddAfter(app, max(0, until(when)))
	}
	for app := range a.now {
		q.AddAfter(app, 0)
	}
	clear(a.due)
	clear(a.now)
}

// pumpApps visits apps. The queue sees to it that nobody else visits the same one.
func (r *Reconciler) pumpApps(ctx context.Context, apps workqueue.TypedInterface[string]) {
	for {
		app, ended := apps.Get()
		if ended {
			return
		}
		if ctx.Err() == nil {
			r.stats.passes.Add(1)
			var s *visit
			r.pulse.during(ctx, "app "+app, func(ctx context.Context) { s = r.attend(ctx, app, time.Now) })
			if s != nil && ctx.Err() == nil && !errors.Is(s.err, source.ErrNotReady) {
				r.complain.about("app "+app, s.err)
			}
		}
		apps.Done(app)
	}
}

// pumpIn looks at Git until the context ends, at each interval and when it is asked to, and fetches what visits wait
// for. The error is ErrDeposed.
func (r *Reconciler) pumpIn(ctx context.Context, interval time.Duration) error {
	var looked time.Time
	next := time.NewTimer(0)
	defer next.Stop()
	due, failing, away := time.Now(), time.Time{}, time.Time{} // away: since when looks fail
	at := func(when time.Time) {
		if due = when; when.Before(time.Now()) {
			due = time.Now()
		}
		next.Reset(time.Until(due))
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.wanted:
			var err error
			r.pulse.during(ctx, "commits that apps are at", func(ctx context.Context) { _, err = r.in.bring(ctx) })
			if err != nil && ctx.Err() == nil {
				if failing.IsZero() {
					failing = time.Now()
				}
				r.complain.about("commits that apps are at", err)
				// who waits asks again after a look
				at(rollout.Soonest(due, time.Now().Add(r.Spread(backoff(time.Since(failing))))))
			} else {
				r.complain.about("commits that apps are at", nil)
			}
		case now := <-r.asked:
			when := rollout.Later(time.Now(), looked.Add(pollSpacing))
			if now {
				when = time.Now()
			}
			at(rollout.Soonest(due, when))
		case <-next.C:
			var err error
			r.pulse.during(ctx, "Git", func(ctx context.Context) { err = r.in.look(ctx) })
			if errors.Is(err, ErrDeposed) {
				return err
			}
			if ctx.Err() == nil {
				r.complain.about("Git", err)
			}
			looked = time.Now()
			wait := r.in.interval(interval)
			switch {
			case err != nil:
				away = cmp.Or(away, looked)
				wait = max(wait, backoff(looked.Sub(away)))
			case !away.IsZero():
				r.out.holdOff(time.Time{})
				fallthrough
			default:
				failing, away = time.Time{}, time.Time{}
			}
			at(looked.Add(max(r.Spread(wait), rollout.RetryAfter(err))))
		}
	}
}

// interval is the flag's, or what the configuration in Git asks for.
func (l *lookout) interval(flag time.Duration) time.Duration {
	if flag > 0 {
		return flag
	}
	return l.current().settings(l.Cluster).Interval
}

// pumpOut records what visits hand over until the context ends. Transitions gather while a push is under way, or is
// younger than the push interval. A retreat waits for no interval.
func (r *Reconciler) pumpOut(ctx context.Context) {
	var since, last, pushed time.Time // something waits; more came; the last push ended
	var failing time.Time             // since when pushes fail
	for ctx.Err() == nil {
		var timer <-chan time.Time
		waits, urgent, notYet := r.out.waits()
		switch {
		case !waits:
			since = time.Time{}
			if tidy := r.out.nextTidy(); !tidy.IsZero() {
				timer = time.After(time.Until(tidy))
			}
		case since.IsZero():
			since, last = time.Now(), time.Now()
			fallthrough
		default:
			earliest := pushed.Add(r.in.current().settings(r.Cluster).PushInterval)
			timer = time.After(time.Until(rollout.Later(notYet, pushAt(since, last, earliest, urgent))))
		}
		select {
		case <-ctx.Done():
			return
		case <-r.out.news:
			last = time.Now()
			continue
		case <-timer:
		}
		r.pulse.during(ctx, "the record", func(ctx context.Context) {
			if waits {
				err := r.flush(ctx)
				since, pushed = time.Time{}, time.Now()
				if err != nil {
					failing = cmp.Or(failing, pushed)
					r.out.holdOff(pushed.Add(max(r.Spread(backoff(pushed.Sub(failing))), rollout.RetryAfter(err))))
					return
				}
				failing = time.Time{}
			}
			r.complain.about("merged proposals", r.out.after(ctx, time.Now()))
		})
	}
}

// pushAt is when transitions are pushed of which the first waits since a time and the last one came at another: not
// before the time that the push interval says, unless one is urgent.
func pushAt(since, last, earliest time.Time, urgent bool) time.Time {
	if urgent {
		return since
	}
	return rollout.Later(rollout.Soonest(last.Add(gathering), since.Add(mostGathering)), earliest)
}

// flush records the transitions that wait. When another writer was faster, Git is looked at at once, and the error is
// nil: the next look shows its record.
func (r *Reconciler) flush(ctx context.Context) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v", problem)
			r.complain.about("the record", err)
		}
	}()
	err = r.out.flush(ctx, time.Now())
	if errors.Is(err, rollout.ErrConflict) {
		select {
		case r.asked <- true:
		default:
			r.Poll()
		}
		err = nil
	}
	r.complain.about("the record", err)
	return err
}
