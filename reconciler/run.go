package reconciler

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// debounce lets one pass handle the changes of a pod, its ReplicaSet and its Deployment.
const debounce = 20 * time.Millisecond

// pollSpacing is the minimum time between fetches, because many webhooks may call Poll.
const pollSpacing = time.Second

// gathering is how long a push waits for the next transition, because one commit's apps finish rendering at different
// times. mostGathering limits the whole wait.
const (
	gathering     = 30 * time.Millisecond
	mostGathering = 500 * time.Millisecond
)

func until(when time.Time) time.Duration { return time.Until(when) }

// Run runs until the context ends, and then records the decisions of the current passes. It logs and retries failures,
// and returns only ErrDeposed.
func (r *Reconciler) Run(ctx context.Context, interval time.Duration) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	apps := workqueue.NewTypedDelayingQueue[string]()
	r.queue.moveTo(apps)
	var pumps, visits sync.WaitGroup
	pumps.Go(func() { stop(r.pumpIn(ctx, interval)) })
	pumps.Go(func() { r.pumpOut(ctx) })
	pumps.Go(func() { r.pumpPeers(ctx) })
	for range r.Workers {
		visits.Go(func() { r.pumpApps(ctx, apps) })
	}
	for range max(2, runtime.GOMAXPROCS(0)) { // a slow app must not block all renders
		go r.renders.work()
	}
	<-ctx.Done()
	apps.ShutDown()
	r.renders.queue.close()
	visits.Wait()
	pumps.Wait()
	if err := context.Cause(ctx); errors.Is(err, ErrDeposed) {
		return err
	}
	// The next process must know of applied rollbacks.
	r.out.retryRefused()
	r.flush(context.WithoutCancel(ctx))
	return nil
}

func (a *appQueue) moveTo(q queue) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = q
	for app, when := range a.timers {
		q.AddAfter(app, max(0, until(when)))
	}
	for app := range a.now {
		q.AddAfter(app, 0)
	}
	clear(a.timers)
	clear(a.now)
}

// pumpApps gives no app to two workers at once.
func (r *Reconciler) pumpApps(ctx context.Context, apps workqueue.TypedInterface[string]) {
	for {
		app, ended := apps.Get()
		if ended {
			return
		}
		if ctx.Err() == nil {
			r.stats.passes.Add(1)
			decided := true
			err := r.watchdog.during(ctx, "app "+app, func(ctx context.Context) (err error) {
				decided, err = r.reconcile(ctx, app, time.Now)
				return err
			})
			if decided && ctx.Err() == nil && !errors.Is(err, source.ErrNotReady) {
				r.errorLog.about("app "+app, err)
			}
		}
		apps.Done(app)
	}
}

// pumpIn fetches Git at each interval and on request. It also fetches missing commits. Its only error is ErrDeposed.
func (r *Reconciler) pumpIn(ctx context.Context, interval time.Duration) error {
	var looked time.Time
	next := time.NewTimer(0)
	defer next.Stop()
	due, failing, away := time.Now(), time.Time{}, time.Time{} // next look; first failures of bring and of look
	at := func(when time.Time) {
		due = rollout.Later(when, time.Now())
		next.Reset(time.Until(due))
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.wanted:
			err := r.watchdog.during(ctx, "commits of apps", func(ctx context.Context) error {
				_, err := r.in.bring(ctx)
				return err
			})
			if err != nil && ctx.Err() == nil {
				failing, r.in.unreachable = cmp.Or(failing, time.Now()), true
				r.errorLog.about("commits of apps", err)
				// Passes request the missing commits again after the next fetch, even if bring panicked.
				at(rollout.Soonest(due, time.Now().Add(r.Spread(backoff(time.Since(failing))))))
			} else {
				failing = time.Time{}
				r.errorLog.about("commits of apps", nil)
			}
		case now := <-r.asked:
			when := rollout.Later(time.Now(), looked.Add(pollSpacing))
			if now {
				when = time.Now()
			}
			at(rollout.Soonest(due, when))
		case <-next.C:
			err := r.watchdog.during(ctx, "Git", r.in.look)
			if errors.Is(err, ErrDeposed) {
				return err
			}
			offer(r.peers.wanted, struct{}{})
			looked = time.Now()
			wait := r.in.interval(interval)
			switch {
			case err != nil && !rollout.IsInvalid(err): // invalid input must not slow down other apps
				away = cmp.Or(away, looked)
				wait = max(wait, backoff(looked.Sub(away)))
			case !away.IsZero():
				r.out.holdOff(time.Time{})
				fallthrough
			default:
				away = time.Time{}
			}
			if ctx.Err() == nil {
				r.errorLog.about("Git", err)
				r.in.tellProblem(err, away)
			}
			at(looked.Add(max(r.Spread(wait), rollout.RetryAfter(err))))
		}
	}
}

func (l *poller) interval(flag time.Duration) time.Duration {
	return cmp.Or(max(flag, 0), l.current().settings(l.Cluster).Interval)
}

// pumpOut records transitions, at most once in a push interval.
func (r *Reconciler) pumpOut(ctx context.Context) {
	var since, last, pushed time.Time // first and newest arrival, and end of the last push
	var failing time.Time             // pushes have failed since then
	for ctx.Err() == nil {
		var timer <-chan time.Time
		waits, urgent, notYet := r.out.waits(time.Now())
		switch {
		case !waits:
			since = time.Time{}
			if tidy := r.out.nextTidy(); !tidy.IsZero() {
				timer = time.After(time.Until(rollout.Later(notYet, tidy)))
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
		err := r.watchdog.during(ctx, "the record", func(ctx context.Context) error {
			if waits {
				err := r.flush(ctx)
				since, pushed = time.Time{}, time.Now()
				if err != nil {
					return err
				}
			}
			r.errorLog.about("merged proposals", r.out.after(ctx, time.Now()))
			return nil
		})
		if err == nil {
			failing = time.Time{}
			continue
		}
		r.errorLog.about("the record", err)
		now := time.Now()
		failing = cmp.Or(failing, now)
		r.out.holdOff(now.Add(max(r.Spread(backoff(now.Sub(failing))), rollout.RetryAfter(err))))
	}
}

func pushAt(since, last, earliest time.Time, urgent bool) time.Time {
	if urgent {
		return since
	}
	return rollout.Later(rollout.Soonest(last.Add(gathering), since.Add(mostGathering)), earliest)
}

func (r *Reconciler) flush(ctx context.Context) error {
	refused, err := r.out.flush(ctx, time.Now())
	if errors.Is(err, rollout.ErrConflict) {
		offer(r.asked, true)
		err = nil
	}
	r.errorLog.about("the record", errors.Join(refused, err))
	return err
}
