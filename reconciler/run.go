package reconciler

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"gitrollout.dev/gitrollout/reconciler/source"
)

// debounce collects the changes of the cluster that arrive together: a pod that becomes ready changes itself, its
// ReplicaSet and its Deployment.
const debounce = 20 * time.Millisecond

// pollSpacing is the least time between two looks at Git that Poll asks for: a flood of webhooks costs one fetch a
// second.
const pollSpacing = time.Second

// gathering is how long the first transition after a quiet time waits for others that are decided at the same moment. A
// retreat does not wait.
const gathering = 30 * time.Millisecond

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
	due, failures := time.Now(), 0
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
				failures++
				r.complain.about("commits that apps are at", err)
				at(soonest(due, time.Now().Add(r.Spread(backoff(failures))))) // who waits asks again after a look
			} else {
				r.complain.about("commits that apps are at", nil)
			}
		case now := <-r.asked:
			when := later(time.Now(), looked.Add(pollSpacing))
			if now {
				when = time.Now()
			}
			at(soonest(due, when))
		case <-next.C:
			var err error
			r.pulse.during(ctx, "Git", func(ctx context.Context) { err = r.in.look(ctx) })
			if errors.Is(err, ErrDeposed) {
				return err
			}
			if ctx.Err() == nil {
				r.complain.about("Git", err)
			}
			if err == nil {
				failures = 0
			}
			looked = time.Now()
			at(looked.Add(r.Spread(r.in.interval(interval))))
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
	var since, pushed time.Time // something waits; the last push ended
	for ctx.Err() == nil {
		var timer <-chan time.Time
		waits, urgent := r.out.waits()
		switch {
		case !waits:
			since = time.Time{}
			if tidy := r.out.nextTidy(); !tidy.IsZero() {
				timer = time.After(time.Until(tidy))
			}
		case since.IsZero():
			since = time.Now()
			fallthrough
		default:
			when := later(since.Add(gathering), pushed.Add(r.in.current().settings(r.Cluster).PushInterval))
			if urgent {
				when = since
			}
			timer = time.After(time.Until(when))
		}
		select {
		case <-ctx.Done():
			return
		case <-r.out.news:
			continue
		case <-timer:
		}
		r.pulse.during(ctx, "the record", func(ctx context.Context) {
			if waits {
				r.flush(ctx)
				since, pushed = time.Time{}, time.Now()
			}
			r.complain.about("merged proposals", r.out.after(ctx, time.Now()))
		})
	}
}

// flush records what waits. When another writer was faster, Git is looked at at once.
func (r *Reconciler) flush(ctx context.Context) {
	defer func() {
		if problem := recover(); problem != nil {
			r.complain.about("the record", fmt.Errorf("panic: %v", problem))
		}
	}()
	err := r.out.flush(ctx, time.Now())
	if errors.Is(err, ErrConflict) {
		select {
		case r.asked <- true:
		default:
			r.Poll()
		}
		err = nil // the next look shows what is there now
	}
	r.complain.about("the record", err)
}
