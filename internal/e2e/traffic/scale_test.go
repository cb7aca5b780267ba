package traffic

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/proxytest"
	"gitrollout.dev/gitrollout/rollout"
)

// TestAutoscalerAndAbort changes the replicas during a step, as an autoscaler does, and then aborts at 50 %. Deleted
// pods serve for 5s, as with a preStop hook, since an autoscaler deletes pods with requests in flight.
func TestAutoscalerAndAbort(t *testing.T) {
	w := newWorld(t, alone, each(func(p provider) shop {
		s := p.canary(quick, weights(20, 50))
		s.replicas, s.stop = 0, "5s"
		return s
	})...)
	w.users(rate)
	_, at := w.release("v2")
	w.share(at, 1, 0, 20)
	w.scaled(16, 4)
	w.scaled(8, 2)

	at = w.decide(rollout.Promote, "2")
	w.share(at, 3, 20, 50)
	w.aborted(w.decide(rollout.Abort, ""), "v2")
	for _, a := range w.apps {
		a.awaitPods(map[string]int{"v1": 8})
	}
	w.quiet()
}

// scaled scales each app while v2 gets 20 % of the requests, and checks that the share stays. Until the proxies know all pods, a share of
// 10 to 25 % is allowed.
func (w *world) scaled(n int32, canary int) {
	w.t.Helper()
	began := time.Now()
	for _, a := range w.apps {
		a.scale(n)
	}
	for _, a := range w.apps {
		a.awaitPods(map[string]int{"v1": int(n), "v2": canary})
	}
	there := time.Now()
	quiet := w.rest(there.Add(w.settled)) // the proxies know all pods after the settle time
	for _, a := range w.apps {
		all := a.load.Results()
		during := all.Between(began, there.Add(w.settled))
		some := all.Between(quiet.from, quiet.to)
		some.WantShare(w.t, fmt.Sprintf("%s with %d pods", a, n), "v2", 0.2)
		if share := during.Share("v2"); share < 0.1 || share > 0.25 {
			w.t.Errorf("%s: while it was scaled to %d, %.1f %% of the requests went to v2, want about 20 %%", a, n, 100*share)
		}
		w.t.Logf("%-10s scaled to %2d: %.1f %% of %d requests meanwhile, %.1f %% of %d then", a, n, 100*during.Share("v2"), len(during),
			100*some.Share("v2"), len(some))
	}
}

// aborted waits until each app is rolled back. Once Aborting is recorded and the settle time has passed, the version must get no requests.
func (w *world) aborted(pushed time.Time, version string) {
	w.t.Helper()
	for _, a := range w.apps {
		back := a.await(pushed, "aborting", func(s rollout.State) bool { return s.Phase == rollout.Aborting })
		rest := a.await(back.at, "degraded", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
		some := a.after(back.at.Add(w.settled))
		last := pushed
		if served := a.load.Results().Where(func(r proxytest.Result) bool { return r.Version == version }); len(served) > 0 {
			last = served[len(served)-1].At
		}
		some.WantShare(w.t, a.String()+" after the abort", version, 0)
		w.t.Logf("%-10s aborted: recorded %s after the push, the last request to %s was %s after the push; at rest after %s", a,
			back.at.Sub(pushed).Round(10*time.Millisecond), version, last.Sub(pushed).Round(10*time.Millisecond),
			rest.at.Sub(pushed).Round(10*time.Millisecond))
	}
}

// TestServicesThatTakeTurnsAndStableThatShrinks releases twice with pingPong and twice with dynamicStableScale. dynamicStableScale deletes
// stable pods with requests in flight, so deleted pods serve for 5s.
func TestServicesThatTakeTurnsAndStableThatShrinks(t *testing.T) {
	t.Parallel()
	steps := weights(20, 50)
	ping := gateway.routedShop(append([]string{"pingPong: {pingService: shop-stable, pongService: shop-canary}"}, quick...), nil, steps)
	dynamic := gateway.canary([]string{"dynamicStableScale: true"}, steps)
	dynamic.stop = "5s"
	ping.route = strings.Replace(ping.route, "backendRefs: [{name: shop-stable, port: 80}]",
		"backendRefs: [{name: shop-stable, port: 80}, {name: shop-canary, port: 80}]", 1)
	ping.name, dynamic.name = "pingPong", "dynamic"
	w := newWorld(t, beside, ping, dynamic)
	w.users(slow)
	for _, version := range []string{"v2", "v3"} {
		_, at := w.release(version)
		w.through(w.climb(at, 20, 50), version, 50)
	}
	w.quiet()
}
