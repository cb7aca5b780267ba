package traffic

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestRefusedRoutes pushes, during a release, an HTTPRoute that the Gateway's controller refuses, and then a route that cannot be split.
// No request fails: the Gateway serves the refused route through another listener, and gitrollout does not apply the second commit.
func TestRefusedRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, beside, gateway.canary(quick, weights(20, 50)))
	w.users(slow)
	a := w.apps[0]
	good := a.shop.route
	route := func(text string) func(shop) shop {
		return func(s shop) shop { s.route = text; return s }
	}
	_, at := w.release("v2")
	w.share(at, 1, 0, 20)

	// A second parentRef of the route names a listener that does not exist.
	const parent = "{name: public, namespace: gateways}"
	_, refused := w.push("a listener that is not there", route(strings.Replace(good, parent,
		"{name: public, namespace: gateways, sectionName: http}, {name: public, namespace: gateways, sectionName: https}", 1)))
	w.decide(rollout.Promote, "2")
	stalled := a.await(refused, "stalled", func(s rollout.State) bool { return s.Phase == rollout.Stalled })
	reason := stalled.states[a.name].Reason
	compare.Contains(t, reason, "HTTPRoute/shop is rejected by traefik.io/gateway-controller: Accepted is False")
	t.Logf("%s after the push: %s", stalled.at.Sub(refused).Round(10*time.Millisecond), reason)
	out, _ := w.gitrollout("get", a.name).CombinedOutput()
	compare.Contains(t, string(out), "Stalled", "is rejected by")
	a.staysAt(refused, 0.2)

	_, mended := w.push("without it", route(good))
	w.share(mended, 3, 20, 50)

	// The route lacks the stable Service, so the app is held at its step.
	_, wrong := w.push("no stable backend", route(strings.Replace(good, "name: shop-stable", "name: shop", 1)))
	w.decide(rollout.Promote, "4")
	held := a.await(wrong, "held", func(s rollout.State) bool { return s.Held != nil })
	if h := held.states[a.name].Held; h.Reason != "InvalidInput" ||
		!strings.Contains(h.Message, "no rule has the stable Service shop-stable as a backend") {
		t.Errorf("held is %+v", h)
	}
	t.Logf("%s after the push: %s", held.at.Sub(wrong).Round(10*time.Millisecond), held.states[a.name].Held.Message)
	a.staysAt(wrong, 0.5)

	_, mended = w.push("with it", route(good))
	w.through(mended, "v2", 50)
	w.quiet()
}

// staysAt waits for enough requests since a time, and checks that v2 has got the given share.
func (a *app) staysAt(since time.Time, share float64) {
	a.w.t.Helper()
	some := a.after(since)
	some.WantShare(a.w.t, a.String()+", while nothing can be done", "v2", share)
	a.w.t.Logf("%-10s meanwhile %.1f %% of %d requests", a, 100*some.Share("v2"), len(some))
}
