package reconciler

import (
	"slices"
	"sync"
	"time"
)

// agenda is when which app is to be visited. For RunOnce it is a list; Run has a work queue take it over.
type agenda struct {
	mu    sync.Mutex
	due   map[string]time.Time // the zero time is now
	queue queue                // nil while RunOnce is called
}

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
	a.due[app] = time.Time{}
}

// at makes an app due at a time, if it is not due before. The zero time is never.
func (a *agenda) at(app string, when time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.queue != nil {
		if !when.IsZero() {
			a.queue.AddAfter(app, until(when))
		}
		return
	}
	now, isDue := a.due[app]
	switch {
	case isDue && now.IsZero():
	case when.IsZero():
		delete(a.due, app)
	default:
		a.due[app] = when
	}
}

// take returns the apps that are due, and forgets that they are.
func (a *agenda) take(now time.Time) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var apps []string
	for app, when := range a.due {
		if !now.Before(when) {
			apps = append(apps, app)
			delete(a.due, app)
		}
	}
	slices.Sort(apps)
	return apps
}

// next is when the next app is due, zero if none is or if one is now.
func (a *agenda) next() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	var next time.Time
	for _, when := range a.due {
		next = soonest(next, when)
	}
	return next
}
