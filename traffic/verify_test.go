package traffic_test

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

// condition returns a condition of a status, in YAML.
func condition(kind, status, reason, message string, generation int) string {
	return fmt.Sprintf("{type: %s, status: %q, reason: %q, message: %q, observedGeneration: %d}", kind, status, reason, message, generation)
}

// parents returns the status of an HTTPRoute with one parent, in YAML.
func parents(controller string, conditions ...string) string {
	return "parents: [{controllerName: " + controller + ", conditions: [" + strings.Join(conditions, ", ") + "]}]"
}

// TestVerify checks the verdict for several statuses of an object whose generation is 2.
func TestVerify(t *testing.T) {
	taken := traffic.Verdict{Taken: true}
	late := func(text string) traffic.Verdict { return traffic.Verdict{Text: text} }
	rejected := func(text string) traffic.Verdict { return traffic.Verdict{Rejected: true, Text: text} }
	accepted, resolved := condition("Accepted", "True", "Accepted", "", 2), condition("ResolvedRefs", "True", "ResolvedRefs", "", 2)
	older := condition("Accepted", "True", "Accepted", "", 1)
	apisix := func(kind, status, reason string, generation int) string {
		return "conditions: [" + condition(kind, status, reason, "why", generation) + "]"
	}
	virtualService := routerOf{"istio", "virtualService: {name: web}"}
	const analysis = "https://istio.io/latest/docs/reference/config/analysis/ist0101/"
	proxy := func(path, value string) routerOf {
		return routerOf{"object", "{apiVersion: projectcontour.io/v1, kind: HTTPProxy, name: web, canaryWeight: spec.weight, " +
			"verify: {path: '" + path + "', value: " + value + "}}"}
	}
	current, valid := proxy("status.currentStatus", "valid"), proxy(`status.conditions[?(@.type=="Valid")].status`, `"True"`)
	for name, c := range map[string]struct {
		router routerOf
		status string
		want   traffic.Verdict
	}{
		"Gateway, no parent yet":   {httpRoute, "parents: []", taken},
		"Gateway, accepted":        {httpRoute, parents("a.example/x", accepted, resolved), taken},
		"Gateway, programming":     {httpRoute, parents("a.example/x", accepted, condition("Programmed", "False", "Pending", "", 1)), taken},
		"Gateway, an older status": {httpRoute, parents("a.example/x", older), late("HTTPRoute/web is not yet accepted by a.example/x")},
		"Gateway, one parent is late": {httpRoute, "parents: [{controllerName: a.example/x, conditions: [" + accepted + "]}, {conditions: [" +
			older + "]}]", late("HTTPRoute/web is not yet accepted by its controller")},
		"Gateway, not accepted": {httpRoute, parents("a.example/x", condition("Accepted", "False", "NoMatchingParent", "no listener", 2)),
			rejected("HTTPRoute/web is rejected by a.example/x: Accepted is False, NoMatchingParent: no listener")},
		"Gateway, a Service is not there": {httpRoute,
			parents("traefik.io/gateway", accepted, condition("ResolvedRefs", "False", "BackendNotFound", "", 2)),
			rejected("HTTPRoute/web is rejected by traefik.io/gateway: ResolvedRefs is False, BackendNotFound")},
		"Gateway, refused an older spec": {httpRoute, parents("a.example/x", condition("Accepted", "False", "NoMatchingParent", "", 1)),
			late("HTTPRoute/web is not yet accepted by a.example/x")},
		"Gateway, a status without sense": {httpRoute, "parents: [x, {conditions: y}, ~]", taken},

		"APISIX 1": {apisixRule, apisix("ResourcesAvailable", "True", "ResourcesSynced", 2), taken},
		"APISIX 1, failed": {apisixRule, apisix("ResourcesAvailable", "False", "ResourceSyncAborted", 2),
			late("ApisixRoute/web has not reached APISIX: ResourceSyncAborted: why")},
		"APISIX 2": {apisixRule, apisix("Accepted", "True", "Accepted", 2), taken},
		"APISIX 2, failed": {apisixRule, apisix("Accepted", "False", "SyncFailed", 2),
			late("ApisixRoute/web has not reached APISIX: SyncFailed: why")},
		"APISIX 2, refused": {apisixRule, apisix("Accepted", "False", "InvalidSpec", 2),
			rejected("ApisixRoute/web is rejected by the APISIX ingress controller: InvalidSpec: why")},
		"APISIX, an older status": {apisixRule, apisix("Accepted", "True", "Accepted", 1),
			late("ApisixRoute/web is not yet seen by the APISIX ingress controller")},
		"APISIX, another condition": {apisixRule, apisix("Programmed", "False", "Pending", 1), taken},

		"Istio, everywhere": {virtualService, `conditions: [{type: Reconciled, status: "True", message: 61/122 complete}]`, taken},
		"Istio, on its way": {virtualService, `conditions: [{type: Reconciled, status: "False", message: 61/122 complete}]`,
			late("VirtualService/web has not reached every proxy: 61/122 complete")},
		"Istio, an analysis that failed alone": {virtualService, `conditions: [{type: PassedAnalysis, status: "False"}]`, taken},
		"Istio, an older status":               {virtualService, "observedGeneration: 1", late("VirtualService/web is not yet seen by istiod")},
		"Istio, broken": {virtualService, `{observedGeneration: "2", validationMessages: [{level: WARNING, type: {code: IST0102}}, ` +
			`{level: ERROR, type: {code: IST0101}, documentationUrl: "` + analysis + `"}]}`,
			rejected("VirtualService/web is rejected by istiod: IST0101 " + analysis)},

		"object, in force":     {current, "currentStatus: valid", taken},
		"object, not in force": {current, "currentStatus: invalid", late(`HTTPProxy/web has status.currentStatus "invalid" and not "valid"`)},
		"object, a number":     {proxy("status.ready", "1"), "ready: 1", taken},
		"object, a condition":  {valid, `conditions: [{type: Valid, status: "True", observedGeneration: 2}]`, taken},
		"object, a condition of an older spec": {valid, `conditions: [{type: Valid, status: "True", observedGeneration: 1}]`,
			late("HTTPProxy/web has a status of an older generation")},
		"object, an older status": {current, "{currentStatus: valid, observedGeneration: 1}",
			late("HTTPProxy/web has a status of an older generation")},
		"object, nothing yet": {valid, "loadBalancer: {}", late("HTTPProxy/web does not yet report that " +
			"the weights are in force: status.conditions does not exist: status has no field conditions")},
		"object, no status at all": {valid, "", taken},
	} {
		t.Run(name, func(t *testing.T) {
			routers := []rollout.Router{c.router.parse(t)}
			refs := traffic.Watched(routers, "shop")
			if len(refs) != 1 {
				t.Fatalf("watches %v", refs)
			}
			seen := map[rollout.Ref]rollout.ObservedRoute{refs[0]: {Generation: 2, Status: read[map[string]any](t, c.status)}}
			compare.Check(t, c.want, traffic.Verify(routers, "shop", seen))
		})
	}
}

// TestTheWorstVerdictIsTold checks the common verdict for several routers. A rejection has precedence over a delay. The route of a router
// without a status counts as in force.
func TestTheWorstVerdictIsTold(t *testing.T) {
	routers := []rollout.Router{routerOf{"gatewayAPI", "httpRoutes: [{name: a}, {name: b}]"}.parse(t),
		routerOf{"istio", "virtualService: {name: c}"}.parse(t), routerOf{"smi", "{}"}.parse(t)}
	refs := traffic.Watched(routers, "shop")
	if len(refs) != 3 {
		t.Fatalf("watches %v", refs)
	}
	late, refused := parents("x", condition("Accepted", "True", "", "", 1)), parents("x", condition("Accepted", "False", "No", "no", 2))
	fine := parents("x", condition("Accepted", "True", "", "", 2))
	const behind = "observedGeneration: 1"
	for name, c := range map[string]struct {
		a, b, c string
		want    traffic.Verdict
	}{
		"all":      {fine, fine, "", traffic.Verdict{Taken: true}},
		"late":     {fine, late, behind, traffic.Verdict{Text: "HTTPRoute/b is not yet accepted by x"}},
		"the last": {fine, fine, behind, traffic.Verdict{Text: "VirtualService/c is not yet seen by istiod"}},
		"late, refused": {late, refused, behind,
			traffic.Verdict{Rejected: true, Text: "HTTPRoute/b is rejected by x: Accepted is False, No: no"}},
	} {
		seen := map[rollout.Ref]rollout.ObservedRoute{}
		for i, status := range []string{c.a, c.b, c.c} {
			seen[refs[i]] = rollout.ObservedRoute{Generation: 2, Status: read[map[string]any](t, status)}
		}
		compare.CheckNamed(t, name, c.want, traffic.Verify(routers, "shop", seen))
	}
	if got := traffic.Verify(routers, "shop", nil); !got.Taken {
		t.Errorf("nothing is seen: %+v", got)
	}
}

func TestWatched(t *testing.T) {
	const gateway, istio = "gateway.networking.k8s.io/", "networking.istio.io/"
	for _, c := range []struct{ kind, config, want string }{
		{"gatewayAPI", "{httpRoute: a, grpcRoutes: [{name: b}, {name: c}], namespace: edge}",
			gateway + "HTTPRoute/edge/a " + gateway + "GRPCRoute/edge/b " + gateway + "GRPCRoute/edge/c"},
		{"istio", "{virtualService: {name: shop.edge}, destinationRule: {name: shop}}",
			istio + "VirtualService/shop/shop.edge " + istio + "VirtualService/edge/shop " + istio + "DestinationRule/shop/shop"},
		{"istio", "{virtualServices: [{name: a.b.c}, {name: d}]}", istio + "VirtualService/shop/a.b.c " + istio + "VirtualService/shop/d"},
		{"apisix", "{route: {name: a}}", "apisix.apache.org/ApisixRoute/shop/a"},
		{"object", "{apiVersion: v1, kind: Switch, name: a}", ""},
		{"object", "{apiVersion: v1, kind: Switch, name: a, verify: {path: status.x, value: up}}", "core/Switch/shop/a"},
		{"nginx", "{stableIngress: a}", ""},
		{"alb", "{ingress: a}", ""},
		{"traefik", "{weightedTraefikServiceName: a}", ""},
		{"smi", "{}", ""},
		{"ambassador", "{mappings: [a]}", ""},
	} {
		refs := traffic.Watched([]rollout.Router{routerOf{c.kind, c.config}.parse(t)}, "shop")
		got := strings.Join(rollout.Mapped(refs, rollout.Ref.String), " ")
		compare.CheckNamed(t, c.kind+" "+c.config, c.want, got)
	}
}

func TestNeedsServices(t *testing.T) {
	for router, want := range map[routerOf]bool{
		httpRoute:                                true,
		{"istio", "{virtualService: {name: a}}"}: true,
		{"istio", "{virtualService: {name: a}, destinationRule: {name: b}}"}: false,
		{"object", "[]"}: true,
		{"object", "[{name: a, canaryHash: spec.a}]"}:            false,
		{"object", "[{name: a, canaryHash: spec.a}, {name: b}]"}: true,
	} {
		if got := traffic.NeedsServices(router.parse(t)); got != want {
			t.Errorf("%v: %v", router, got)
		}
	}
	if !traffic.NeedsServices(rollout.Router{Kind: "haproxy"}) || !traffic.NeedsServices(rollout.Router{Kind: "smi", Config: "x"}) {
		t.Error("a router that cannot be read needs no Services")
	}
}
