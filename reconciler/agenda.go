package reconciler

import (
	"sync"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// agenda is when which app is to be visited. For RunOnce it is two lists; Run has a work queue take them over.
type agenda struct {
	mu    sync.Mutex
	now   map[string]bool      // apps that something has happened to
	due   map[string]time.Time // timers
	queue queue                // nil while RunOnce is called
}

func newAgenda() *agenda { return &agenda{now: map[string]bool{}, due: map[string]time.Time{}} }

// queue is what Run works on.
type queue interface {
	AddAfter(app string, wait time.Duration)
}

// after makes an app due in a while, as Run's clock says. For RunOnce it is due at once.
func (a *agenda) after(app string, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.queue != nil {
		a.queue.AddAfter(app, wait)
		return
	}
	a.now[app] = true
}

// at makes an app due at a time, instead of the one before. The zero time is never.
func (a *agenda) at(app string, when time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.queue == nil && when.IsZero():
		delete(a.due, app)
	case a.queue == nil:
		a.due[app] = when
	case !when.IsZero():
		a.queue.AddAfter(app, until(when))
	}
}

// take returns the apps that are due, and forgets that they are.
func (a *agenda) take(now time.Time) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for app, when := range a.due {
		if !now.Before(when) {
			a.now[app] = true
		}
	}
	apps := sortedKeys(a.now)
	for _, app := range apps {
		delete(a.due, app)
	}
	clear(a.now)
	return apps
}

// next is when the first timer ends, zero if there is none.
func (a *agenda) next() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	var next time.Time
	for _, when := range a.due {
		next = rollout.Soonest(next, when)
	}
	return next
}
