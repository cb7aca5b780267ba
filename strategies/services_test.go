package strategies_test

import (
	"fmt"
	"slices"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/routes"
)

func serviceRef(name string) rollout.Ref {
	return rollout.Ref{Kind: "Service", Namespace: testApp.Namespace, Name: name}
}

// TestServiceThatLostItsRole checks that a Service that has lost its role selects the same version as the main Service. A Service whose
// selector in Git does not match the workload's pods is not changed.
func TestServiceThatLostItsRole(t *testing.T) {
	cases := map[string]struct {
		reason   string
		selector map[string]any
		want     bool
	}{
		"Same":    {"it selects the workload's pods", map[string]any{"app": "web"}, true},
		"Another": {"it is another workload's now: a pin would leave it without endpoints", map[string]any{"app": "api"}, false},
		"More":    {"it asks for a label that the pods lack", map[string]any{"app": "web", "tier": "front"}, false},
		"None":    {"it has no selector: its endpoints are made by hand", nil, false},
	}
	for name, tc := range cases {
		h, in := routedAt(0)
		in.State.Progress[0].Left = []string{"web-preview", "web-gone"}
		service := object("v1", "Service", "web-preview")
		service.Set(tc.selector, "spec", "selector")
		v := viewOf(in, h)
		source := *v.Source
		source.Objects = append(slices.Clone(source.Objects), service)
		v.Source = &source
		pins := routes.Pins(in.State, v)
		if got := pins[service.Ref()] != (rollout.Pin{}); got != tc.want {
			t.Errorf("%s, %s: it is pinned: %t; %v", name, tc.reason, got, pins)
		}
		if tc.want && pins[service.Ref()] != pins[serviceRef("web")] {
			t.Errorf("%s: it selects another version than the Service that users come through: %v", name, pins)
		}
	}
}

// TestServiceSelectsNoPodsThatGo checks an edit that lowers a step's weight after the step removed all stable pods. While the controller
// may still delete the last ready stable pods, no Service may select only these pods.
func TestServiceSelectsNoPodsThatGo(t *testing.T) {
	cases := map[string]struct {
		reason        string
		scaling       rollout.Scaling
		replicas      int
		stable, fresh int // ready pods of each version
		synced        bool
		want          bool // whether the Service selects stable
	}{
		"Going":  {"2 of 10 are to be seen, and the controller has yet to act on a target of none", rollout.InPlace, 10, 2, 10, false, false},
		"Stay":   {"the controller has acted, and 2 are there", rollout.InPlace, 10, 2, 10, true, true},
		"Fewer":  {"on the way to a larger share", rollout.InPlace, 10, 8, 2, false, true},
		"Surge":  {"the spec asks for 20 pods, of which 10 are to be new, beside all stable ones", rollout.Surge, 20, 10, 5, false, true},
		"Scaled": {"the spec asks for 20 pods: none goes", rollout.InPlace, 20, 5, 5, false, true},
	}
	for name, tc := range cases {
		h := twoVersions(func(s *rollout.Spec) {
			s.Replicas, s.Scaling, s.Canary.StableService = nil, tc.scaling, "web"
			s.Canary.Steps = []rollout.Step{weight(50), aPause}
		})
		in := inFlight(h, 0, set(h, commitID(1), tc.fresh, tc.fresh), set(h, commitID(0), tc.stable, tc.stable))
		changeLive(&in, web, func(live *rollout.ObservedWorkload) { live.Replicas, live.Synced = tc.replicas, tc.synced })
		pin := routes.Pins(in.State, viewOf(in, h))[serviceRef("web")]
		if got := pin == rollout.PodHash(commitID(0)); got != tc.want {
			t.Errorf("%s, %s: the stable Service selects %+v", name, tc.reason, pin)
		}
	}
}

// TestServiceOfPodsThatComeAgain checks an edit that removes all steps while the present step has no new pods. While the Deployment has the
// stable template, the controller deletes the remaining new pods, so no Service may select only new pods.
func TestServiceOfPodsThatComeAgain(t *testing.T) {
	h := routedWeb(func(s *rollout.Spec) { s.Canary.Steps = nil })
	h.push(version("v2"))
	in := inFlight(h, 0, set(h, commitID(1), 0, 2), set(h, commitID(0), 10, 10))
	for hash, want := range map[rollout.Hash]rollout.Pin{
		in.State.StableHash(web):        {},
		in.State.Release.Templates[web]: rollout.PodHash(commitID(1)),
	} {
		changeLive(&in, web, func(live *rollout.ObservedWorkload) { live.Hash = hash })
		compare.CheckNamed(t, "with template "+string(hash), want, routes.Pins(in.State, viewOf(in, h))[serviceRef("web-canary")])
	}
}

// TestServiceAfterAnotherProcess checks a state that another process recorded. The controller has not seen the stable template yet, so it
// will delete the new pods. Proxies may still use the last route, so the canary Service must select stable pods.
func TestServiceAfterAnotherProcess(t *testing.T) {
	h := routedWeb(func(s *rollout.Spec) {
		s.Scaling, s.Canary.Steps = rollout.InPlace, []rollout.Step{weight(50), weight(0), aPause}
	})
	h.push(version("v2"))
	in := inFlight(h, 1, set(h, commitID(1), 5, 5), set(h, commitID(0), 5, 5))
	changeLive(&in, web, func(live *rollout.ObservedWorkload) { live.Hash, live.Synced = in.State.StableHash(web), false })
	for _, weight := range []int{0, 50} { // 50: the push of a rollback was refused, and the process restarts
		in.State.Progress[0].Routed = &rollout.Routing{Weight: weight, At: in.Now}
		pin := routes.Pins(in.State, viewOf(in, h))[serviceRef("web-canary")]
		compare.CheckNamed(t, fmt.Sprintf("at weight %d", weight), rollout.PodHash(commitID(0)), pin)
	}
}

// TestServiceOfAWayBackFromNoWeight checks a rollback to a commit whose first step has weight 100. If the release was at a step of weight
// 0, the Service selects only stable pods. If the release was at weight 100, the Service must not select only stable pods.
func TestServiceOfAWayBackFromNoWeight(t *testing.T) {
	for name, steps := range map[string][]rollout.Step{
		"AnotherList": {weight(0), weight(50), aPause}, "SameList": {weight(100), aPause},
	} {
		h := oneWeb(func(s *rollout.Spec) {
			s.Replicas, s.Canary = nil, &rollout.Canary{StableService: "web", Steps: []rollout.Step{weight(100), aPause}}
		})
		h.push(func(s *source) {
			version("v2")(s)
			s.workloads[0].editCanary(func(c *rollout.Canary) { c.Steps = steps })
		})
		in := inFlight(h, 0, set(h, commitID(1), 8, 8), set(h, commitID(0), 2, 2))
		h.push(version("v1"))
		in.Head = h.headInput()
		d := strategies.Decide(in)
		if d.State.Phase != rollout.Aborting {
			t.Fatalf("%s: it is %s", name, d.State.Phase)
		}
		in.State, in.State.Source = d.State, commitID(0)
		pin := routes.Pins(in.State, viewOf(in, h))[serviceRef("web")]
		if got, want := pin == rollout.PodHash(commitID(0)), name == "AnotherList"; got != want {
			t.Errorf("%s: the Service that users come through selects %+v", name, pin)
		}
	}
}
