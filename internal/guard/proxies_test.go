package guard

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/traffic"
)

// TestProxiesOfTheFormerVersion moves the users' Service from v1 to v2 and then deletes the only pod of v1. Until the settle time is over,
// the Guard reports the deletion, because proxies may still send requests to the pod. If the Rollout document was missing during the move,
// the Guard has forgotten these proxies.
func TestProxiesOfTheFormerVersion(t *testing.T) {
	router, err := traffic.Parse("gatewayAPI", map[string]any{"httpRoute": "web"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	web, settle := rollout.Workload{Namespace: "shop", Name: "web"}, 5*time.Second
	service := rollout.Ref{Kind: "Service", Namespace: "shop", Name: "web"}
	staged := rollout.Spec{Workload: web, Scaling: rollout.Surge, MaxSurge: rollout.Amount{Value: 1}, Canary: &rollout.Canary{
		StableService: "web", CanaryService: "web-canary", Traffic: &rollout.Traffic{Settle: settle, Routers: []rollout.Router{router}}}}
	backend := map[string]any{"backendRefs": []any{map[string]any{"name": "web", "weight": int64(100)}}}
	route := rollout.Ref{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute", Namespace: "shop", Name: "web"}
	for name, c := range map[string]struct {
		unguarded *rollout.Spec // if not nil, the Guard only follows this document during the move (Up is false)
		wait      time.Duration
		bad       bool
	}{
		"a stable version, at once":          {nil, 0, true},
		"a stable version, later":            {nil, settle, false},
		"no stable version, at once":         {&staged, 0, true},
		"no stable version, later":           {&staged, settle, false},
		"no document, and again, at once":    {&rollout.Spec{}, 0, false},
		"no document, and again, soon after": {&rollout.Spec{}, time.Second, false},
	} {
		k := kube.New(nil, time.Unix(0, 0))
		pod := func(version string) *kube.ReplicaSet {
			return &kube.ReplicaSet{Name: version, PodHash: version, Template: `{"version":"` + version + `"}`, Replicas: 1,
				Pods: []*kube.Pod{{Ready: true, Since: k.Now}}}
		}
		d := &kube.Deployment{Workload: web, Sets: []*kube.ReplicaSet{pod("v1"), pod("v2")}}
		d.Replicas, k.Deployments[web] = 1, d
		k.Routes[route] = rollout.Object{"spec": map[string]any{"rules": []any{backend}}}
		k.Pins[service] = "v1"
		g := Guard{Up: true}
		look := func(spec *rollout.Spec) string {
			if g.Up = spec == nil; !g.Up {
				g.Follow(k, d, *spec)
				return ""
			}
			return g.Trouble(k, d, staged, Leave{})
		}
		if got := look(nil); got != "" {
			t.Errorf("%s: at first %q", name, got)
		}
		g.Excused = 0
		k.Now = k.Now.Add(time.Minute)
		k.Pins[service] = ""
		look(c.unguarded)
		k.Pins[service] = "v2"
		look(c.unguarded)
		k.Now = k.Now.Add(c.wait)
		d.Sets = d.Sets[1:]
		if got := look(nil); strings.Contains(got, "no pod of v1 is ready, and a proxy may still send") != c.bad {
			t.Errorf("%s: %q", name, got)
		}
	}
}
