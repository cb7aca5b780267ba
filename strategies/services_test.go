package strategies

import (
	"slices"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestServiceThatLostItsRole: a Service that users came through is kept from pods that nobody has approved, for as
// long as it is this workload's.
func TestServiceThatLostItsRole(t *testing.T) {
	service := rollout.Ref{Kind: "Service", Namespace: testApp.Namespace, Name: "web-preview"}
	cases := map[string]struct {
		reason   string
		selector map[string]any
		want     bool
	}{
		"Same":    {"it selects the workload's pods", map[string]any{"app": "web"}, true},
		"Another": {"it is another workload's now: a pin would leave it without endpoints", map[string]any{"app": "api"}, false},
		"More":    {"it asks for what the pods do not have", map[string]any{"app": "web", "tier": "front"}, false},
		"None":    {"it has no selector: its endpoints are made by hand", nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := routedWeb(nil)
			h.push(version("v2"))
			in := inFlight(h, 0, set(h, commitID(1), 5, 5), set(h, commitID(0), 10, 10))
			in.State.Progress[0].Left = []string{"web-preview", "web-gone"}
			v := viewOf(in, h)
			source := *v.Source
			source.Objects = slices.Clone(source.Objects)
			source.Objects = append(source.Objects, rollout.Object{"apiVersion": "v1", "kind": "Service",
				"metadata": map[string]any{"name": service.Name, "namespace": service.Namespace},
				"spec":     map[string]any{"selector": tc.selector}})
			v.Source = &source
			pins := pinsOf(in.State, v)
			if got := pins[service] != (rollout.Pin{}); got != tc.want {
				t.Errorf("%s: it is pinned: %t; %v", tc.reason, got, pins)
			}
			if tc.want && pins[service] != pins[rollout.Ref{Kind: "Service", Namespace: testApp.Namespace, Name: "web"}] {
				t.Errorf("it selects another version than the Service that users come through: %v", pins)
			}
		})
	}
}
