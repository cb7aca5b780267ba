package traffic

import (
	"math"
	"time"

	"gitrollout.dev/gitrollout/internal/proxytest"
	"gitrollout.dev/gitrollout/rollout"
)

// How long after a record its routes must be in force everywhere, which is what the
// Rollouts are told of their proxies. Traefik takes 0.2s here, if it is let: tests
// that run beside each other on two cores give it more.
const (
	alone  = time.Second
	beside = 3 * time.Second
)

// window is a time in which nothing changes for any app.
type window struct{ from, to time.Time }

// rest waits until each app's routes are settled, and then for a while.
func (w *world) rest(since time.Time, d time.Duration) window {
	time.Sleep(time.Until(since.Add(w.settled)))
	from := time.Now()
	time.Sleep(d)
	return window{from, time.Now()}
}

// allFrom is when all requests must go to a version, after the record that says so:
// when proxies have learnt of it or, in tests that run beside each other and may
// starve Traefik, when the old pods go.
func (a *app) allFrom(switched record) time.Time {
	from := switched.at.Add(a.w.settled)
	if a.w.settled == alone {
		return from
	}
	promoting := a.await(switched.at, "the old pods go", func(s rollout.State) bool {
		return s.Phase == rollout.Promoting || s.Former != nil && s.Former.Progress[0].Step == s.Former.Progress[0].Of
	})
	if promoting.at.After(from) {
		return promoting.at
	}
	return from
}

// changed is when a version's share went from one to another, by the requests of
// a window: the moment that makes what was seen most likely. The answers of
// weight 5 come at a distance of 20 requests, so it is no nearer than that.
func changed(results proxytest.Results, version string, before, after float64) time.Time {
	if len(results) == 0 {
		return time.Time{}
	}
	weigh := func(p float64, hit bool) float64 {
		p = min(max(p, 1e-6), 1-1e-6)
		if hit {
			return math.Log(p)
		}
		return math.Log(1 - p)
	}
	// All of them after the change, and then one more before it at a time.
	likelihood := 0.0
	best, at := 0.0, results[0].At
	for i, r := range results {
		hit := r.Version == version
		likelihood += weigh(before, hit) - weigh(after, hit)
		if likelihood > best && i+1 < len(results) {
			best, at = likelihood, results[i+1].At
		}
	}
	return at
}
