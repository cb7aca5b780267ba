package strategies_test

import (
	"fmt"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// halves is a strategy that only Table names. It releases half of the pods, waits for a promotion, then uses the user's rolling update.
type halves struct{}

func (halves) Compiles(spec rollout.Spec) bool { return spec.Canary == nil && spec.BlueGreen == nil }

func (halves) Compile(rollout.Spec) plan.Compiled {
	s := plan.Stage{Weight: 50, Counts: func(n int) plan.Counts { return plan.Counts{Canary: n / 2, Stable: n - n/2} }}
	return plan.Compiled{
		Strategy: "halves", Passed: 2, OldRole: "old", FreshRole: "new", Main: "web", Side: "web-new", Pins: plan.CanaryPins,
		Stages: []plan.Stage{s.With("half", "half of the pods", plan.PodsWait{}), s.With("", "somebody's word", plan.PromotionWait{})},
	}
}

// TestAThirdStrategy checks releases, promotions, explanations and forecasts with a strategy that is one entry of Table.
func TestAThirdStrategy(t *testing.T) {
	known := plan.Table
	plan.Table = append(plan.Table, halves{})
	defer func() { plan.Table = known }()
	h := twoVersions(func(s *rollout.Spec) { s.Canary = nil })
	in := world(h)
	began := strategies.Decide(in)
	if p := began.State.Progress; len(p) != 1 || p[0].Name != "half of the pods" || p[0].Of != 2 {
		t.Fatalf("a release begins as %s", dump(began.State))
	}
	stable, fresh := set(h, commitID(0), 5, 5), set(h, commitID(1), 5, 5)
	in = inFlight(h, 0, stable, fresh)
	objects := mustDesired(in.State, workloads.View{Now: in.Now, Source: in.Source, Observed: in.Observed})
	selects := map[string]string{}
	for _, o := range objects {
		if o.Kind() == "Service" {
			pin, _ := o.Map("spec", "selector")[rollout.LabelPodHash].(string)
			selects[o.Name()] = pin
		}
	}
	compare.CheckNamed(t, "Services select", map[string]string{"web": commitID(0), "web-new": commitID(1)}, selects)
	in.State = strategies.Decide(in).State
	if step, shut := strategies.Gate(in); step != 1 || !shut {
		t.Errorf("the gate is at step %d, shut %t: %s", step, shut, dump(in.State))
	}
	e := strategies.Explain(in)[0]
	got := fmt.Sprintf("%s %s/%s step %d, %d%%", e.Strategy, e.Revisions[0].Role, e.Revisions[1].Role, e.Step, e.Real)
	compare.CheckNamed(t, "it is explained as", "halves old/new step 1, 50%", got)
	in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Promote, Through: rollout.Full, Author: "Bob"}
	if d := strategies.Decide(in); d.State.Phase != rollout.Promoting || d.State.Progress[0].Opened != "Bob" {
		t.Errorf("a promotion of everything leads to %s", dump(d.State))
	}
	f := strategies.Predict(strategies.Planned{Spec: in.Source.Specs[0], Replicas: 10, Now: noon})
	if f.Strategy != "halves" || f.Gates != 1 || f.Stages[0].Canary != 5 {
		t.Errorf("it is forecast as %s", dump(f))
	}
}
