package traffic

import (
	"fmt"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// rate is each app's number of requests per second, and slow the number in parallel tests. Their shares are so large
// that other tests do not matter.
const (
	rate = 150
	slow = 50
)

// each returns one shop for each provider.
func each(make func(provider) shop) []shop {
	var all []shop
	for _, p := range providers {
		all = append(all, make(p))
	}
	return all
}

// TestCanary releases at 5, 20, 50 and 100 % and reverts the completed release in Git. A pod stops 200ms after its
// deletion, and must get no requests by then.
func TestCanary(t *testing.T) {
	w := newWorld(t, alone, each(func(p provider) shop { return p.canary(quick, weights(5, 20, 50)) })...)
	w.users(rate)
	commit, at := w.push("v2", func(s shop) shop { return s.at("v2") })
	before := 0
	for i, weight := range []int{5, 20, 50} {
		window := w.atStep(at, 2*i+1, weight)
		w.share(window, at, before, weight)
		at, before = w.decide(rollout.Promote, fmt.Sprint(2*i+2)), weight
	}
	w.through(at, "v2", before)
	for _, a := range w.apps { // otherwise the rollback would use terminating pods
		a.await(at, "the old pods are gone", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Draining == nil })
	}

	reverted := time.Now()
	w.repo.Revert(commit)
	w.through(reverted, "v1", 0)
	w.quiet()
}

// atStep waits until all apps are paused with a weight and have enough requests there.
func (w *world) atStep(since time.Time, step, weight int) window {
	w.t.Helper()
	var last time.Time
	for _, a := range w.apps {
		a.awaitPaused(since, step)
		if routed := a.awaitRouted(since, weight); routed.at.After(last) {
			last = routed.at
		}
		w.AwaitWeight(w.t, a.name, weight)
	}
	return w.rest(last)
}

func (w *world) share(quiet window, since time.Time, before, weight int) {
	w.t.Helper()
	w.shareOf("v2", quiet, since, before, weight)
}

// shareOf checks each app's share after its routes were recorded and settled.
func (w *world) shareOf(version string, quiet window, since time.Time, before, weight int) {
	w.t.Helper()
	for _, a := range w.apps {
		routed := a.awaitRouted(since, weight)
		all := a.load.Results()
		took := changed(all.Between(routed.at, quiet.to), version, float64(before)/100, float64(weight)/100).Sub(routed.at)
		some := all.Between(routed.at.Add(w.settled), quiet.to)
		some.WantShare(w.t, fmt.Sprintf("%s with weight %d", a, weight), version, float64(weight)/100)
		w.t.Logf("%-10s %3d -> %3d %%: %5.2f %% of %d requests; from the state's commit to the change %s", a, before, weight,
			100*some.Share(version), len(some), took.Round(10*time.Millisecond))
	}
}

// through waits for the end of a release and checks that it got all requests after that was recorded and settled.
func (w *world) through(since time.Time, version string, before int) {
	w.t.Helper()
	for _, a := range w.apps {
		a.awaitHealthy(since)
	}
	for _, a := range w.apps {
		routed, healthy := a.awaitRouted(since, 100), a.awaitHealthy(since)
		some := a.after(a.allFrom(routed))
		all := a.load.Results()
		took := changed(all.Between(routed.at, routed.at.Add(2*w.settled)), version, float64(before)/100, 1).Sub(routed.at)
		some.WantShare(w.t, fmt.Sprintf("%s with all requests", a), version, 1)
		w.t.Logf("%-10s %3d -> 100 %%: %5.2f %% of %d requests; from the state's commit to the change %s; from the push %s, healthy after %s", a,
			before,
			100*some.Share(version), len(some), took.Round(10*time.Millisecond), (routed.at.Sub(since) +
				took).Round(10*time.Millisecond), healthy.at.Sub(since).Round(10*time.Millisecond))
	}
}
