package reconciler

import (
	"sync"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// appQueue stores when each app is due. RunOnce uses the maps, and Run uses the queue.
type appQueue struct {
	mu     sync.Mutex
	now    map[string]bool
	timers map[string]time.Time
	queue  queue
}

func newAppQueue() *appQueue {
	return &appQueue{now: map[string]bool{}, timers: map[string]time.Time{}}
}

type queue interface {
	AddAfter(app string, wait time.Duration)
}

func (a *appQueue) after(app string, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.queue != nil {
		a.queue.AddAfter(app, wait)
		return
	}
	a.now[app] = true
}

func (a *appQueue) at(app string, when time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// With RunOnce, the last call for an app sets the app's time. With Run, the earliest time counts. A zero time means
	// never.
	switch {
	case a.queue == nil && when.IsZero():
		delete(a.timers, app)
	case a.queue == nil:
		a.timers[app] = when
	case !when.IsZero():
		a.queue.AddAfter(app, until(when))
	}
}

func (a *appQueue) due(now time.Time) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for app, when := range a.timers {
		if !now.Before(when) {
			a.now[app] = true
		}
	}
	apps := sortedKeys(a.now)
	for _, app := range apps {
		delete(a.timers, app)
	}
	clear(a.now)
	return apps
}

func (a *appQueue) next() (next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, when := range a.timers {
		next = rollout.Soonest(next, when)
	}
	return next
}
