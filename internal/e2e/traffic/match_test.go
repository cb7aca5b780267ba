package traffic

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/proxytest"
	"gitrollout.dev/gitrollout/rollout"
)

// people maps each kind of user to a function that sets the headers or cookies of this kind. Each request's URL names the kind.
var people = map[string]func(*proxytest.Request){
	"plain":  func(*proxytest.Request) {},
	"header": func(r *proxytest.Request) { r.Header = map[string]string{"X-Beta": "yes"} },
	"staff":  func(r *proxytest.Request) { r.Header = map[string]string{"X-Beta": "staff"} },
	"cookie": func(r *proxytest.Request) { r.Cookies = map[string]string{"a": "b", "beta": "always", "c": "d"} },
	"other": func(r *proxytest.Request) {
		r.Header, r.Cookies = map[string]string{"X-Beta": "yess"}, map[string]string{"beta": "alway"}
	},
	"path": func(r *proxytest.Request) {},
}

func (a *app) person(kind string) proxytest.Request {
	r := a.user()
	r.URL = a.shop.url(a.w.World) + map[bool]string{true: "/beta/any", false: "/any"}[kind == "path"] + "?who=" + kind
	people[kind](&r)
	return r
}

// TestMatchedUsers routes matched requests to the canary at weight 0, and then also 20 % of the other requests. At the last step, only
// setHeaderRoute still matches requests, and all other requests are split by weight.
func TestMatchedUsers(t *testing.T) {
	w := newWorld(t, alone, each(func(p provider) shop {
		matches := "{headers: [{name: X-Beta, exact: \"yes\"}]}, {cookies: [{name: beta, exact: always}]}"
		if p.name != ingress.name { // ingress-nginx cannot match paths
			matches += ", {path: {prefix: /beta}}"
		}
		return p.routedShop(append(services, quick...), []string{"managedRoutes: [{name: staff}]"}, []string{
			"match: [" + matches + "]", "pause: {}",
			"setHeaderRoute: {name: staff, match: [{headerName: X-Beta, headerValue: {exact: staff}}]}", "setWeight: 20", "pause: {}",
			"match: []", "pause: {}",
		})
	})...)
	kinds := slices.Sorted(maps.Keys(people))
	for _, a := range w.apps {
		a.load = proxytest.StartLoad(t, 2*rate, func(n int) proxytest.Request {
			return a.person(kinds[rand.New(rand.NewPCG(uint64(n), 0)).IntN(len(kinds))])
		})
	}
	_, at := w.release("v2")
	for _, step := range []struct {
		at     int
		shares map[string]float64
	}{
		{1, map[string]float64{"plain": 0, "other": 0, "staff": 0, "header": 1, "cookie": 1, "path": 1}},
		{4, map[string]float64{"plain": 0.2, "other": 0.2, "staff": 1, "header": 1, "cookie": 1, "path": 1}},
		{6, map[string]float64{"plain": 0.2, "other": 0.2, "staff": 1, "header": 0.2, "cookie": 0.2, "path": 0.2}},
	} {
		w.theirs(w.paused(at, step.at), step.at, step.shares) // each step is paused only after its routes have settled
		at = w.decide(rollout.Promote, fmt.Sprint(step.at+1))
	}
	w.through(at, "v2", 20)
	w.quiet()
}

// TestMatchedUsersOfAStatefulSet routes matched requests to the only new pod. At 50 %, all other requests reach all pods, and half of the
// pods are new. After an abort at the first step, the rejected version gets no requests. Deleted pods still serve their requests in flight.
func TestMatchedUsersOfAStatefulSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, beside, each(func(p provider) shop {
		fields := append([]string{"trafficRouting:", "  settle: SETTLE", "  " + p.router}, services...)
		steps := []string{"match: [{headers: [{name: X-Beta, exact: \"yes\"}]}]", "pause: {}", "setWeight: 50", "pause: {}"}
		text := "    canary:\n" + lines("      ", fields) + "      steps:\n" + lines("      - ", steps)
		return shop{provider: p, version: "v1", replicas: 4, stop: "5s", strategy: text, route: p.routed, set: true}
	})...)
	for _, a := range w.apps {
		a.load = proxytest.StartLoad(t, rate, func(n int) proxytest.Request {
			return a.person([]string{"plain", "header"}[n%2])
		})
	}
	settled := func(at time.Time, step int) time.Time { return w.paused(at, step).Add(w.settled) }
	_, at := w.release("v2")
	w.theirs(settled(at, 1), 1, map[string]float64{"plain": 0, "header": 1})
	at = w.decide(rollout.Promote, "2")
	w.theirs(settled(at, 3), 3, map[string]float64{"plain": 0.5, "header": 1})
	at = w.decide(rollout.Promote, rollout.Full)
	for _, a := range w.apps {
		a.awaitReleased(at)
	}
	_, at = w.release("v3")
	w.theirs(settled(at, 1), 1, map[string]float64{"plain": 0, "header": 1})
	w.aborted(w.decide(rollout.Abort, ""), "v3")
	w.quiet()
}

// theirs checks, for each kind of user, the newest version's share of the requests since a time.
func (w *world) theirs(from time.Time, step int, shares map[string]float64) {
	w.t.Helper()
	for _, a := range w.apps {
		for kind, share := range shares {
			if kind == "path" && a.shop.name == ingress.name { // ingress-nginx cannot match paths
				share = shares["plain"]
			}
			some := a.afterOf(from, kind)
			some.WantShare(w.t, fmt.Sprintf("%s at step %d, %s users", a, step, kind), a.shop.version, share)
			w.t.Logf("%-10s step %d: %-6s users: %5.1f %% of %d requests", a, step, kind, 100*some.Share(a.shop.version), len(some))
		}
	}
}
