package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/crds"
	"gitrollout.dev/gitrollout/rollout"
)

const twoRoutes = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: seen, namespace: NS}
spec: {rules: [{backendRefs: [{name: web, port: 80, weight: %d}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: other, namespace: NS}
spec: {rules: [{backendRefs: [{name: web, port: 80}]}]}
`

// TestObservedRoutes checks that Observe returns a route's status and generation. OnChange is called after a new status
// only if a release observes the route, because controllers write statuses all the time.
func TestObservedRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.ns // unique, because the client also sees other tests' apps
	crds.Apply(t, w.cluster.Config, crds.GatewayAPI)
	w.apply(app, fmt.Sprintf(twoRoutes, 1))
	ref := w.ref("gateway.networking.k8s.io", "HTTPRoute", "seen")
	look := func() (rollout.ObservedRoute, bool) {
		route, ok := w.Observe(app, nil, []rollout.Ref{ref}).Routes[ref]
		return route, ok
	}
	if route, ok := look(); !ok || route.Generation != 1 || len(route.Status) > 0 {
		t.Fatalf("right after Apply it is %+v, %v", route, ok)
	}
	if gone := w.Observe(app, nil, []rollout.Ref{w.ref("gateway.networking.k8s.io", "HTTPRoute", "gone")}).Routes; len(gone) > 0 {
		t.Errorf("a route that does not exist is %+v", gone)
	}
	w.apply(app, fmt.Sprintf(twoRoutes, 2))
	if route, _ := look(); route.Generation != 2 {
		t.Errorf("after a change of its spec its generation is %d", route.Generation)
	}

	before := w.changes.of(app)
	w.accept("other", 1)
	w.accept("seen", 2)
	w.until("the status being shown", func() (bool, string) {
		route, _ := look()
		return len(route.Status) > 0, fmt.Sprintf("%+v", route)
	})
	route, _ := look()
	parents, _ := route.Status["parents"].([]any)
	if route.Generation != 2 || len(parents) != 1 {
		t.Errorf("it is %+v", route)
	}
	// A watch keeps the order of events, so this route's event comes after all earlier events.
	w.until("OnChange", func() (bool, string) { return w.changes.of(app) > before, "it was not called" })
	if n := w.changes.of(app) - before; n != 1 {
		t.Errorf("OnChange was called %d times, want once: the other route is not observed", n)
	}
	w.accept("other", 3)
	w.accept("seen", 2) // the status that the route already has
	w.accept("seen", 3)
	w.until("the last status being shown", func() (bool, string) {
		route, _ := look()
		return w.changes.of(app) > before+1 && strings.Contains(fmt.Sprint(route.Status), "observedGeneration:3"), fmt.Sprintf("%+v", route)
	})
	if n := w.changes.of(app) - before; n != 2 {
		t.Errorf("OnChange was called %d times, want twice: the status has changed once more", n)
	}
	w.wantWrites(0, "a pass after that", func() { w.apply(app, fmt.Sprintf(twoRoutes, 2)) })
}

// accept writes a route's status, as the controller of a Gateway does.
func (w *world) accept(name string, generation int64) {
	w.t.Helper()
	status := fmt.Sprintf(`{"status": {"parents": [{"controllerName": "example.com/gateway", "parentRef": {"name": "public"},
		"conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "observedGeneration": %d,
			"lastTransitionTime": "2026-11-20T12:00:00Z"}]}]}}`, generation)
	w.kubectl("", "patch", "httproutes.gateway.networking.k8s.io", name, "--subresource=status", "--field-manager=gateway",
		"--type=merge", "-p", status)
}
