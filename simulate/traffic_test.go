package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/traffic"
)

// randomTraffic adds a router and routed steps to a canary that has both Services.
func (w *workloadSource) randomTraffic(rng *rand.Rand) {
	c := w.canary
	c["scaling"], c["trafficRouting"] = "surge", w.randomRouting(rng)
	if rng.IntN(3) == 0 {
		c["dynamicStableScale"] = true
		delete(c, "scaleDownDelaySeconds")
		c["abortScaleDownDelaySeconds"] = rng.IntN(3) * 15
	} else {
		c["abortScaleDownDelaySeconds"], c["scaleDownDelaySeconds"] = rng.IntN(3)*15, rng.IntN(3)*15
	}
	if rng.IntN(4) == 0 {
		c["pingPong"] = map[string]any{"pingService": c["stableService"], "pongService": c["canaryService"]}
		delete(c, "stableService")
		delete(c, "canaryService")
	}
	c["steps"] = routedSteps(rng, randomSteps(rng, "surge"))
}

// randomMatches adds a router and routed steps to a StatefulSet or similar kind that has both Services, in half of the cases.
func (w *workloadSource) randomMatches(rng *rand.Rand) {
	if w.services == nil || rng.IntN(2) == 0 {
		return
	}
	w.canary["trafficRouting"] = w.randomRouting(rng)
	w.canary["steps"] = routedSteps(rng, w.steps())
}

func (w *workloadSource) randomRouting(rng *rand.Rand) map[string]any {
	return map[string]any{
		"gatewayAPI":    map[string]any{"httpRoute": w.name},
		"settle":        fmt.Sprintf("%ds", rng.IntN(6)),
		"managedRoutes": []any{map[string]any{"name": "staff"}},
	}
}

// routedSteps replaces some steps by steps that route only matching requests.
func routedSteps(rng *rand.Rand, steps []any) []any {
	for i, step := range steps {
		if rng.IntN(6) > 0 {
			continue
		}
		routed := randomRoute(rng)
		if name, named := step.(map[string]any)["name"]; named {
			routed["name"] = name
		}
		steps[i] = routed
	}
	return steps
}

// randomRoute returns a step that sets or removes a header route, a mirror route or a match.
func randomRoute(rng *rand.Rand) map[string]any {
	yes := map[string]any{"headerName": "X-Staff", "headerValue": map[string]any{"exact": "yes"}}
	header := map[string]any{"name": "staff", "match": []any{yes}}
	mirror := map[string]any{"name": "staff", "percentage": 50, "match": []any{map[string]any{"path": map[string]any{"prefix": "/"}}}}
	match := []any{map[string]any{"headers": []any{map[string]any{"name": "X-Beta", "exact": "1"}}}}
	if ends := rng.IntN(3) == 0; ends {
		delete(header, "match")
		delete(mirror, "match")
		match = []any{}
	}
	return []map[string]any{{"setHeaderRoute": header}, {"setMirrorRoute": mirror}, {"match": match}}[rng.IntN(3)]
}

// isRouted reports whether the workload's Rollout document has a router.
func (w workloadSource) isRouted() bool { return w.canary["trafficRouting"] != nil }

// route returns the HTTPRoute of a workload with a router, as in Git.
func (w workloadSource) route() map[string]any {
	backends := []any{map[string]any{"name": w.services[0], "port": 80}, map[string]any{"name": w.services[1], "port": 80, "weight": 0}}
	spec := map[string]any{"rules": []any{map[string]any{"backendRefs": backends}}}
	return manifest("gateway.networking.k8s.io/v1", "HTTPRoute", w.name, map[string]any{"spec": spec})
}

// routeRef returns the reference of a workload's HTTPRoute.
func routeRef(w rollout.Workload) rollout.Ref {
	return rollout.Ref{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute", Namespace: w.Namespace, Name: w.Name}
}

func httpRoute(name string) rollout.Router {
	r, err := traffic.Parse("gatewayAPI", map[string]any{"httpRoute": name}, nil)
	if err != nil {
		panic(err)
	}
	return r
}

// traffic sets the canary's fields that the real renderer derives from trafficRouting.
func (w workloadSource) traffic(c *rollout.Canary) {
	if !w.isRouted() {
		return
	}
	routing := w.canary["trafficRouting"].(map[string]any)
	c.Traffic = &rollout.Traffic{
		MaxWeight: 100, Settle: durationOf(routing["settle"]), ManagedRoutes: []string{"staff"},
		Routers: []rollout.Router{httpRoute(w.name)},
	}
	c.DynamicStableScale = w.canary["dynamicStableScale"] == true
	if w.canary["pingPong"] != nil {
		c.PingPong = &rollout.PingPong{PingService: w.services[0], PongService: w.services[1]}
	}
}

// routeOf returns the route that the real renderer reads from a step, nil for steps without a route.
func routeOf(step map[string]any) *rollout.ManagedRoute {
	var matches rollout.Match
	name, mirror, isMatched := "staff", (*int)(nil), false
	switch {
	case step["setHeaderRoute"] != nil:
		isMatched = step["setHeaderRoute"].(map[string]any)["match"] != nil
		matches.Headers = []rollout.NamedMatch{{Name: "X-Staff", StringMatch: rollout.StringMatch{Exact: "yes"}}}
	case step["setMirrorRoute"] != nil:
		isMatched, mirror = step["setMirrorRoute"].(map[string]any)["match"] != nil, new(50)
		matches.Path = &rollout.StringMatch{Prefix: "/"}
	case step["match"] != nil:
		isMatched, name = len(step["match"].([]any)) > 0, rollout.MatchRoute
		matches.Headers = []rollout.NamedMatch{{Name: "X-Beta", StringMatch: rollout.StringMatch{Exact: "1"}}}
	default:
		return nil
	}
	route := &rollout.ManagedRoute{Name: name, Mirror: mirror}
	if isMatched {
		route.Matches = []rollout.Match{matches}
	}
	return route
}

// checkRoutes checks, when no event is due, that each HTTPRoute has only the user's rule and sends all requests to the stable Service.
func (u *universe) checkRoutes() {
	for _, a := range u.head().apps {
		for _, source := range a.workloads {
			if source.gone || source.plain || !source.isRouted() { // gitrollout does not manage the routes of such a workload
				continue
			}
			w, stable := source.workload(), source.services[0]
			if slices.Contains(u.oracle.states[a.name].Pong, w) {
				stable = source.services[1]
			}
			route := u.kube.Routes[routeRef(w)]
			rules, _ := route.Map("spec")["rules"].([]any)
			if len(rules) != 1 || rules[0].(map[string]any)["matches"] != nil {
				u.fail("at rest HTTPRoute %s matches users: %s", source.name, dump(route))
				continue
			}
			for _, b := range kube.Backends(route)[0] {
				if want := map[bool]int64{true: 100}[b.Service == stable]; b.Weight != want {
					u.fail("at rest HTTPRoute %s sends %d to Service %s, want %d", source.name, b.Weight, b.Service, want)
				}
			}
		}
	}
}
