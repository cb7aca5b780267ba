package traffic

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func parent(controller string, conditions ...any) any {
	return map[string]any{"controllerName": controller, "conditions": conditions}
}

func parentCondition(kind, status, reason, message string, seen int64) any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": seen}
}

func TestVerifyParents(t *testing.T) {
	accepted := parentCondition("Accepted", "True", "Accepted", "", 2)
	resolved := parentCondition("ResolvedRefs", "True", "ResolvedRefs", "", 2)
	for name, c := range map[string]struct {
		parents []any
		want    Verdict
	}{
		"no parent yet": {nil, Verdict{Taken: true}},
		"accepted":      {[]any{parent("a.example/x", accepted, resolved)}, Verdict{Taken: true}},
		"programming":   {[]any{parent("a.example/x", accepted, parentCondition("Programmed", "False", "Pending", "", 1))}, Verdict{Taken: true}},
		"an older version": {
			[]any{parent("a.example/x", parentCondition("Accepted", "True", "Accepted", "", 1))},
			Verdict{Text: "is not yet accepted by a.example/x"},
		},
		"one parent is late": {
			[]any{parent("a.example/x", accepted), parent("", parentCondition("Accepted", "True", "Accepted", "", 1))},
			Verdict{Text: "is not yet accepted by its controller"},
		},
		"not accepted": {
			[]any{parent("a.example/x", parentCondition("Accepted", "False", "NoMatchingParent", "no listener", 2))},
			Verdict{Rejected: true, Text: "is rejected by a.example/x: Accepted is False, NoMatchingParent: no listener"},
		},
		"a Service is not there": {
			[]any{parent("traefik.io/gateway", accepted, parentCondition("ResolvedRefs", "False", "BackendNotFound", "", 2))},
			Verdict{Rejected: true, Text: "is rejected by traefik.io/gateway: ResolvedRefs is False, BackendNotFound"},
		},
		"refused an older version": {
			[]any{parent("a.example/x", parentCondition("Accepted", "False", "NoMatchingParent", "", 1))},
			Verdict{Text: "is not yet accepted by a.example/x"},
		},
		"a status without sense": {[]any{"x", map[string]any{"conditions": "y"}, nil}, Verdict{Taken: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&gatewayConfig{}).verify(rollout.Ref{},
				rollout.ObservedRoute{Generation: 2, Status: map[string]any{"parents": c.parents}})
			compare.Check(t, c.want, got)
		})
	}
}

// TestTheWorstVerdictIsTold queries several routers: a refusal is reported before a delay, and a router without a
// verdict does not block.
func TestTheWorstVerdictIsTold(t *testing.T) {
	both := append(
		parsed(t, "gatewayAPI", map[string]any{"httpRoutes": []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}}}),
		parsed(t, "istio", map[string]any{"virtualService": map[string]any{"name": "c"}})...)
	both = append(both, parsed(t, "smi", map[string]any{})...)
	refs := Watched(both, "shop")
	if len(refs) != 3 {
		t.Fatalf("watches %v", refs)
	}
	route := func(condition any) rollout.ObservedRoute {
		return rollout.ObservedRoute{Generation: 2, Status: map[string]any{"parents": []any{parent("x", condition)}}}
	}
	late := route(parentCondition("Accepted", "True", "", "", 1))
	refused := route(parentCondition("Accepted", "False", "No", "no", 2))
	fine := route(parentCondition("Accepted", "True", "", "", 2))
	behind := rollout.ObservedRoute{Generation: 2, Status: map[string]any{"observedGeneration": int64(1)}}
	for name, c := range map[string]struct {
		a, b, c rollout.ObservedRoute
		want    Verdict
	}{
		"all":           {fine, fine, rollout.ObservedRoute{}, Verdict{Taken: true}},
		"late":          {fine, late, behind, Verdict{Text: "HTTPRoute/b is not yet accepted by x"}},
		"the last":      {fine, fine, behind, Verdict{Text: "VirtualService/c is not yet seen by istiod"}},
		"late, refused": {late, refused, behind, Verdict{Rejected: true, Text: "HTTPRoute/b is rejected by x: Accepted is False, No: no"}},
	} {
		seen := map[rollout.Ref]rollout.ObservedRoute{refs[0]: c.a, refs[1]: c.b, refs[2]: c.c}
		compare.CheckNamed(t, name, c.want, Verify(both, "shop", seen))
	}
	if got := Verify(both, "shop", nil); !got.Taken {
		t.Errorf("nothing is seen: %+v", got)
	}
}

func TestWatched(t *testing.T) {
	ref := func(group, kind, namespace, name string) rollout.Ref {
		return rollout.Ref{Group: group, Kind: kind, Namespace: namespace, Name: name}
	}
	names := func(all ...string) []any {
		var list []any
		for _, name := range all {
			list = append(list, map[string]any{"name": name})
		}
		return list
	}
	for _, c := range []struct {
		kind   string
		config map[string]any
		want   []rollout.Ref
	}{
		{"gatewayAPI", map[string]any{"httpRoute": "a", "grpcRoutes": names("b", "c"), "namespace": "edge"}, []rollout.Ref{
			ref(gatewayGroup, "HTTPRoute", "edge", "a"), ref(gatewayGroup, "GRPCRoute", "edge", "b"), ref(gatewayGroup, "GRPCRoute", "edge", "c"),
		}},
		{"istio", map[string]any{"virtualService": map[string]any{"name": "shop.edge"}, "destinationRule": map[string]any{"name": "shop"}},
			[]rollout.Ref{
				ref(istioGroup, "VirtualService", "shop", "shop.edge"), ref(istioGroup, "VirtualService", "edge", "shop"),
				ref(istioGroup, "DestinationRule", "shop", "shop"),
			}},
		{"istio", map[string]any{"virtualServices": names("a.b.c", "d")}, []rollout.Ref{
			ref(istioGroup, "VirtualService", "shop", "a.b.c"), ref(istioGroup, "VirtualService", "shop", "d"),
		}},
		{"apisix", map[string]any{"route": map[string]any{"name": "a"}}, []rollout.Ref{ref(apisixGroup, "ApisixRoute", "shop", "a")}},
		{"object", map[string]any{"apiVersion": "v1", "kind": "Switch", "name": "a"}, nil},
		{"object", map[string]any{"apiVersion": "v1", "kind": "Switch", "name": "a", "verify": map[string]any{"path": "status.x", "value": "y"}},
			[]rollout.Ref{ref("", "Switch", "shop", "a")}},
		{"nginx", map[string]any{"stableIngress": "a"}, nil},
		{"alb", map[string]any{"ingress": "a"}, nil},
		{"traefik", map[string]any{"weightedTraefikServiceName": "a"}, nil},
		{"smi", map[string]any{}, nil},
		{"ambassador", map[string]any{"mappings": []any{"a"}}, nil},
	} {
		if diff := compare.Diff(c.want, Watched(parsed(t, c.kind, c.config), "shop")); diff != "" {
			t.Errorf("%s %v: %s", c.kind, c.config, diff)
		}
	}
}

func TestNeedsServices(t *testing.T) {
	for _, c := range []struct {
		kind   string
		config any
		want   bool
	}{
		{"gatewayAPI", map[string]any{"httpRoute": "a"}, true},
		{"istio", map[string]any{"virtualService": map[string]any{"name": "a"}}, true},
		{"istio", map[string]any{"virtualService": map[string]any{"name": "a"}, "destinationRule": map[string]any{"name": "b"}}, false},
		{"object", []any{}, true},
		{"object", []any{map[string]any{"name": "a", "canaryHash": "spec.a"}}, false},
		{"object", []any{map[string]any{"name": "a", "canaryHash": "spec.a"}, map[string]any{"name": "b"}}, true},
	} {
		if got := NeedsServices(parsed(t, c.kind, c.config)[0]); got != c.want {
			t.Errorf("%s %v: %v", c.kind, c.config, got)
		}
	}
	if !NeedsServices(rollout.Router{Kind: "haproxy"}) || !NeedsServices(rollout.Router{Kind: "smi", Config: "x"}) {
		t.Error("a router that cannot be read needs no Services")
	}
}
