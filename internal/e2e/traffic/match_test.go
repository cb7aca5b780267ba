package traffic

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/proxytest"
	"gitrollout.dev/gitrollout/rollout"
)

// people has the kinds of users. The path after /any has the kind, and is in each answer.
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

// TestMatchedUsers sends some users to the canary at weight 0, more of them at 20 %, and then only users with a
// setHeaderRoute.
func TestMatchedUsers(t *testing.T) {
	steps := func(p provider) []string {
		matches := "{headers: [{name: X-Beta, exact: \"yes\"}]}, {cookies: [{name: beta, exact: always}]}"
		if p.name != ingress.name { // it cannot match paths
			matches += ", {path: {prefix: /beta}}"
		}
		return []string{
			"match: [" + matches + "]", "pause: {}",
			"setHeaderRoute: {name: staff, match: [{headerName: X-Beta, headerValue: {exact: staff}}]}", "setWeight: 20", "pause: {}",
			"match: []", "pause: {}",
		}
	}
	w := newWorld(t, alone, each(func(p provider) shop {
		return p.routedShop(append([]string{"stableService: shop-stable", "canaryService: shop-canary"}, quick...),
			[]string{"managedRoutes: [{name: staff}]"}, steps(p))
	})...)
	kinds := []string{"plain", "header", "staff", "cookie", "other", "path"}
	for _, a := range w.apps {
		a.load = proxytest.StartLoad(t, 2*rate, func(n int) proxytest.Request {
			return a.person(kinds[rand.New(rand.NewPCG(uint64(n), 0)).IntN(len(kinds))])
		})
	}
	_, at := w.push("v2", func(s shop) shop { return s.at("v2") })
	for _, step := range []struct {
		at, weight int
		matched    map[string]bool
	}{
		{1, 0, map[string]bool{"header": true, "cookie": true, "path": true}},
		{4, 20, map[string]bool{"header": true, "cookie": true, "path": true, "staff": true}},
		{6, 20, map[string]bool{"staff": true}},
	} {
		var last time.Time
		for _, a := range w.apps {
			// It is paused after its routes have settled.
			if paused := a.awaitPaused(at, step.at); paused.at.After(last) {
				last = paused.at
			}
		}
		for _, a := range w.apps {
			for _, kind := range kinds {
				share := float64(step.weight) / 100
				if step.matched[kind] && (kind != "path" || a.shop.name != ingress.name) {
					share = 1
				}
				theirs := a.afterOf(last, kind)
				theirs.WantShare(t, fmt.Sprintf("%s at step %d, %s users", a, step.at, kind), "v2", share)
				t.Logf("%-10s step %d: %-6s users: %5.1f %% of %d requests", a, step.at, kind, 100*theirs.Share("v2"), len(theirs))
			}
		}
		at = w.decide(rollout.Promote, fmt.Sprint(step.at+1))
	}
	w.through(at, "v2", 20)
	w.quiet()
}

// TestMatchedUsersOfAStatefulSet sends some users to the one new pod, and then all users to all pods, half of which are
// new. After an abort at the first step the rejected version gets no requests. Pods with requests in flight are
// deleted, so they serve a while longer.
func TestMatchedUsersOfAStatefulSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, beside, each(func(p provider) shop {
		fields := []string{"trafficRouting:", "  settle: SETTLE", "  " + p.router, "stableService: shop-stable", "canaryService: shop-canary"}
		steps := []string{"match: [{headers: [{name: X-Beta, exact: \"yes\"}]}]", "pause: {}", "setWeight: 50", "pause: {}"}
		text := "    canary:\n" + lines("      ", fields) + "      steps:\n" + lines("      - ", steps)
		return shop{provider: p, version: "v1", replicas: 4, stop: "2s", strategy: text, route: p.routed, set: true}
	})...)
	for _, a := range w.apps {
		a.load = proxytest.StartLoad(t, rate, func(n int) proxytest.Request {
			return a.person([]string{"plain", "header"}[n%2])
		})
	}
	_, at := w.push("v2", func(s shop) shop { return s.at("v2") })
	w.theirs(at, 1, map[string]float64{"plain": 0, "header": 1})
	at = w.decide(rollout.Promote, "2")
	w.theirs(at, 3, map[string]float64{"plain": 0.5, "header": 1})
	at = w.decide(rollout.Promote, rollout.Full)
	for _, a := range w.apps {
		a.awaitReleased(at)
	}
	_, at = w.push("v3", func(s shop) shop { return s.at("v3") })
	w.theirs(at, 1, map[string]float64{"plain": 0, "header": 1})
	at = w.decide(rollout.Abort, "")
	w.aborted(at, "v3")
	w.quiet()
}

// theirs checks the newest version's share of the requests of each kind of users, once it is paused at a step.
func (w *world) theirs(since time.Time, step int, shares map[string]float64) {
	w.t.Helper()
	var last time.Time
	for _, a := range w.apps {
		if paused := a.awaitPaused(since, step); paused.at.After(last) {
			last = paused.at
		}
	}
	for _, a := range w.apps {
		for kind, share := range shares {
			some := a.afterOf(last.Add(w.settled), kind)
			some.WantShare(w.t, fmt.Sprintf("%s at step %d, %s users", a, step, kind), a.shop.version, share)
			w.t.Logf("%-10s step %d: %-6s users: %5.1f %% of %d requests", a, step, kind, 100*some.Share(a.shop.version), len(some))
		}
	}
}
