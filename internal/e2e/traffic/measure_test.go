package traffic

import (
	"math"
	"time"

	"gitrollout.dev/gitrollout/internal/proxytest"
	"gitrollout.dev/gitrollout/rollout"
)

// alone is the value of trafficRouting.settle in sequential tests. Parallel tests use `beside`. The proxy must apply new routes within this
// time after gitrollout has recorded them. Traefik needs 0.2s on an idle machine.
const (
	alone  = 3 * time.Second
	beside = 10 * time.Second
)

// enough is the least number of requests for the check of a share. With a weight of 20 %, the share is 12 to 29 % in 999 of 1,000 samples
// of 200 requests.
const enough = 200

// window is a period without changes of any app.
type window struct{ from, to time.Time }

// rest waits until each app's routes have settled, and then until each app has enough requests.
func (w *world) rest(since time.Time) window {
	w.t.Helper()
	from := since.Add(w.settled)
	for _, a := range w.apps {
		a.after(from)
	}
	return window{from, time.Now()}
}

// after waits until the app has enough requests since a time, and returns these requests.
func (a *app) after(from time.Time) proxytest.Results {
	a.w.t.Helper()
	return a.awaitEnough(from, func(proxytest.Result) bool { return true })
}

// afterOf waits until one kind of users has sent enough requests since a time, and returns these requests.
func (a *app) afterOf(from time.Time, kind string) proxytest.Results {
	a.w.t.Helper()
	url := a.person(kind).URL
	return a.awaitEnough(from, func(r proxytest.Result) bool { return r.Request.URL == url })
}

func (a *app) awaitEnough(from time.Time, counts func(proxytest.Result) bool) proxytest.Results {
	a.w.t.Helper()
	for deadline := time.Now().Add(timeout); ; time.Sleep(100 * time.Millisecond) {
		all := a.load.Results().Between(from, time.Now()).Where(counts)
		if len(all) >= enough {
			return all
		}
		if time.Now().After(deadline) {
			a.w.t.Fatalf("%s: %d requests within %s, want %d", a, len(all), timeout, enough)
		}
	}
}

// allFrom returns the time from which all requests must go to a version: the record `switched` plus the settle time. In parallel tests,
// Traefik may be slow, so the time is not before the deletion of old pods.
func (a *app) allFrom(switched record) time.Time {
	from := switched.at.Add(a.w.settled)
	if a.w.settled == alone {
		return from
	}
	promoting := a.await(switched.at, "the old pods go", func(s rollout.State) bool {
		return s.Phase == rollout.Promoting || s.Draining != nil && s.Draining.Progress[0].Step == s.Draining.Progress[0].Of
	})
	if promoting.at.After(from) {
		return promoting.at
	}
	return from
}

// changed estimates when a version's share of the requests changed from `before` to `after`. For a weight of 5, the error is about 20
// requests.
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
	// The first candidate is before all requests. Each iteration moves the candidate past one request.
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
