package traffic

import (
	"fmt"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// rate is the number of requests per second to each app in sequential tests. Parallel tests send `slow` requests per second, and check only
// large shares, because other tests disturb small shares.
const (
	rate = 150
	slow = 50
)

// each returns one test app per provider.
func each(of func(provider) shop) []shop { return rollout.Mapped(providers, of) }

// TestCanary releases at 5, 20, 50 and 100 %, and reverts the completed release in Git. A pod stops 200ms after its
// deletion, and must get no later requests.
func TestCanary(t *testing.T) {
	w := newWorld(t, alone, each(func(p provider) shop { return p.canary(quick, weights(5, 20, 50)) })...)
	w.users(rate)
	commit, at := w.release("v2")
	at = w.climb(at, 5, 20, 50)
	w.through(at, "v2", 50)
	for _, a := range w.apps { // otherwise the revert would use terminating pods
		a.await(at, "the old pods are gone", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Draining == nil })
	}

	reverted := time.Now()
	w.repo.Revert(commit)
	w.through(reverted, "v1", 0)
	w.quiet()
}

// climb checks the new version's share at the pause of each weight, and then promotes. It returns the time of the last promotion.
func (w *world) climb(at time.Time, weights ...int) time.Time {
	w.t.Helper()
	before := 0
	for i, weight := range weights {
		w.share(at, 2*i+1, before, weight)
		at, before = w.decide(rollout.Promote, fmt.Sprint(2*i+2)), weight
	}
	return at
}

// share waits until all apps are paused with a weight and have enough requests at this step. Once the recorded routes have settled, the
// newest version's share of the requests must match the weight.
func (w *world) share(since time.Time, step, before, weight int) {
	w.t.Helper()
	var last time.Time
	for _, a := range w.apps {
		a.awaitPaused(since, step)
		if routed := a.awaitRouted(since, weight); routed.at.After(last) {
			last = routed.at
		}
		w.AwaitWeight(w.t, a.name, weight)
	}
	quiet := w.rest(last)
	for _, a := range w.apps {
		routed := a.awaitRouted(since, weight)
		all := a.load.Results()
		took := changed(all.Between(routed.at, quiet.to), a.shop.version, float64(before)/100, float64(weight)/100).Sub(routed.at)
		some := all.Between(routed.at.Add(w.settled), quiet.to)
		some.WantShare(w.t, fmt.Sprintf("%s with weight %d", a, weight), a.shop.version, float64(weight)/100)
		w.t.Logf("%-10s %3d -> %3d %%: %5.2f %% of %d requests; from the state's commit to the change %s", a, before, weight,
			100*some.Share(a.shop.version), len(some), took.Round(10*time.Millisecond))
	}
}

// through waits for the end of a release. Once weight 100 is recorded and the settle time has passed, the version must get all requests.
func (w *world) through(since time.Time, version string, before int) {
	w.t.Helper()
	w.allTo(version, since, before, func(a *app) record { return a.awaitRouted(since, 100) })
}

// allTo waits for the end of a release. The function `recorded` returns an app's record. Once the settle time after this record has passed,
// the version must get all requests.
func (w *world) allTo(version string, since time.Time, before int, recorded func(*app) record) {
	w.t.Helper()
	for _, a := range w.apps {
		a.awaitHealthy(since)
	}
	for _, a := range w.apps {
		r := recorded(a)
		healthy, some := a.awaitHealthy(r.at), a.after(a.allFrom(r))
		took := changed(a.load.Results().Between(r.at, r.at.Add(2*w.settled)), version, float64(before)/100, 1).Sub(r.at)
		some.WantShare(w.t, fmt.Sprintf("%s with all requests", a), version, 1)
		w.t.Logf("%-10s %3d -> 100 %%: %5.2f %% of %d requests; from the state's commit to the change %s; from the push %s, healthy after %s",
			a, before, 100*some.Share(version), len(some), took.Round(10*time.Millisecond),
			(r.at.Sub(since) + took).Round(10*time.Millisecond), healthy.at.Sub(since).Round(10*time.Millisecond))
	}
}
