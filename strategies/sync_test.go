package strategies

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// TestResumed checks where a release continues after a change of steps: at the first changed step, or at its present step if that is
// earlier. Users on the new version stay on this version.
func TestResumed(t *testing.T) {
	const gate = -1
	steps := func(weights ...int) []rollout.Step {
		return rollout.Mapped(weights, func(w int) rollout.Step {
			if w == gate {
				return aPause
			}
			return weight(w)
		})
	}
	cases := map[string]struct {
		reason   string
		old, now []rollout.Step
		step     int
		want     int
		kept     bool // the time at which the step began does not change
	}{
		"Same":         {"goes on where it is", steps(20, gate, 40), steps(20, gate, 40), 2, 2, true},
		"Behind":       {"a later step does not matter", steps(20, gate, 40), steps(20, gate, 60, gate), 1, 1, true},
		"Present":      {"the step itself begins anew", steps(20, gate, 40), steps(20, gate, 30), 2, 2, false},
		"Before":       {"back to the changed step", steps(20, gate, 60), steps(10, gate, 30, 100), 1, 0, false},
		"Inserted":     {"a gate that was not there is not passed", steps(20, 40, gate), steps(20, gate, 40, gate), 2, 1, false},
		"Removed":      {"a gate that is gone is not waited at", steps(20, gate, 40), steps(20, 40), 1, 1, false},
		"Longer":       {"one that was through has a step again", steps(20), steps(20, gate), 1, 1, false},
		"Empty":        {"no steps: through", steps(20, gate), nil, 1, 0, false},
		"FirstGate":    {"not a pod has started", steps(gate, 40, gate), steps(gate, 60, gate), 0, 0, true},
		"OnlyTheFirst": {"whatever the weights are", steps(40, gate), steps(40, 40, gate), 1, 1, false},
	}
	for name, tc := range cases {
		old := rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{Steps: tc.old}}
		now := rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{Steps: tc.now}}
		in := Input{Now: noon.Add(time.Hour), Source: &rollout.Render{Specs: []rollout.Spec{old}}, plans: plan.Cache{}}
		in.State.Release = &rollout.Release{}
		pr := plan.Compile(old).Enter(tc.step, noon)
		m := workloads.Staged{Compiled: plan.Compile(now), Progress: pr}
		got := resumed(m, in, changeOf(m, in))
		if got.Step != tc.want || got.Entered.Equal(noon) != tc.kept {
			t.Errorf("%s, %s: got step %d since %s, want %d", name, tc.reason, got.Step, got.Entered, tc.want)
		}
		// The commit with the old list is lost, or another version of gitrollout has compiled the list.
		in.Source.Specs = nil
		if got := resumed(m, in, changeOf(m, in)); got.Step > tc.want {
			t.Errorf("%s: without the old list it goes on at step %d", name, got.Step)
		}
		pr.Plan, in.Source.Specs = "0badcafe", []rollout.Spec{old}
		if m := (workloads.Staged{Compiled: plan.Compile(now), Progress: pr}); resumed(m, in, changeOf(m, in)).Step != tc.want {
			t.Errorf("%s: after an upgrade of the program it goes on elsewhere", name)
		}
	}
}
