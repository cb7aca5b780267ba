package strategies

import (
	"fmt"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// halves is a strategy known only to the table: half of the pods, a promotion, then the user's own rolling update.
type halves struct{}

func (halves) compiles(spec rollout.Spec) bool { return spec.Canary == nil && spec.BlueGreen == nil }

func (halves) compile(rollout.Spec) plan {
	s := stage{weight: 50, counts: func(n int) counts { return counts{canary: n / 2, stable: n - n/2} }}
	return plan{
		strategy: "halves", passed: 2, oldRole: "old", freshRole: "new", main: "web", side: "web-new", pins: canaryPins,
		stages: []stage{s.with("half", "half of the pods", podsWait{}), s.with("", "somebody's word", promotionWait{})},
	}
}

// TestAThirdStrategy releases, promotes, explains and forecasts with a strategy that is one row of the table.
func TestAThirdStrategy(t *testing.T) {
	known := table
	table = append(table, halves{})
	defer func() { table = known }()
	h := oneWeb(func(s *rollout.Spec) { s.Canary = nil })
	h.push(version("v2"))
	in := world(h)
	began := Decide(in)
	if p := began.State.Progress; len(p) != 1 || p[0].Name != "half of the pods" || p[0].Of != 2 {
		t.Fatalf("a release begins as %s", dump(began.State))
	}
	stable, fresh := set(h, commitID(0), 5, 5), set(h, commitID(1), 5, 5)
	in = inFlight(h, 0, stable, fresh)
	objects := mustDesired(in.State, View{Now: in.Now, Source: in.Source, Observed: in.Observed})
	selects := map[string]string{}
	for _, o := range objects {
		if o.Kind() == "Service" {
			pin, _ := o.Map("spec", "selector")[rollout.LabelPodHash].(string)
			selects[o.Name()] = pin
		}
	}
	if diff := compare.Diff(map[string]string{"web": commitID(0), "web-new": commitID(1)}, selects); diff != "" {
		t.Errorf("Services select (-want +got):\n%s", diff)
	}
	in.State = Decide(in).State
	if step, shut := Gate(in); step != 1 || !shut {
		t.Errorf("the gate is at step %d, shut %t: %s", step, shut, dump(in.State))
	}
	e := Explain(in)[0]
	got := fmt.Sprintf("%s %s/%s step %d, %d%%", e.Strategy, e.Revisions[0].Role, e.Revisions[1].Role, e.Step, e.Real)
	if want := "halves old/new step 1, 50%"; got != want {
		t.Errorf("it is explained as %q, want %q", got, want)
	}
	in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Promote, Through: rollout.Full,
		Author: "Bob"}
	if d := Decide(in); d.State.Phase != rollout.Promoting || d.State.Progress[0].Opened != "Bob" {
		t.Errorf("a promotion of everything leads to %s", dump(d.State))
	}
	f := Predict(Planned{Spec: in.Source.Specs[0], Replicas: 10, Now: noon})
	if f.Strategy != "halves" || f.Gates != 1 || f.Stages[0].Canary != 5 {
		t.Errorf("it is forecast as %s", dump(f))
	}
}

// TestPlanDigestsAreInRecords fixes the digests of steps. A change would return each release in flight to the start
// of its step after an upgrade.
func TestPlanDigestsAreInRecords(t *testing.T) {
	metrics := &rollout.Analysis{Metrics: []rollout.Metric{{Name: "errors", Interval: time.Minute, Count: 3}}}
	cases := map[string]struct {
		spec rollout.Spec
		want string
	}{
		"Pauses": {rollout.Spec{Scaling: rollout.InPlace, Canary: &rollout.Canary{Steps: []rollout.Step{
			{SetWeight: new(20)}, {Pause: &rollout.Pause{}}, {Pause: &rollout.Pause{Duration: new(time.Hour)}},
			{Pause: &rollout.Pause{Timeout: new(time.Minute), OnTimeout: rollout.TimeoutAbort}},
			{Pause: &rollout.Pause{Until: "0 9 * * 1-5", TimeZone: "Europe/Berlin"}},
		}}}, "00a2523f"},
		"Measured": {rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{
			StableService: "web", CanaryService: "web-canary", ScaleDownDelaySeconds: 30, Steps: []rollout.Step{
				{SetCanaryScale: &rollout.CanaryScale{Replicas: new(1)}}, {Analysis: metrics},
				{Experiment: &rollout.Experiment{Templates: []rollout.ExperimentTemplate{{Name: "canary", Replicas: 1}}}},
			}}}, "e6af35f8"},
		"Routed": {rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{
			StableService: "web", CanaryService: "web-canary", ScaleDownDelaySeconds: 30,
			Traffic: &rollout.Traffic{MaxWeight: 100, Settle: 3 * time.Second, ManagedRoutes: []string{"staff"}},
			Steps: []rollout.Step{{SetWeight: new(20)}, {Route: &rollout.ManagedRoute{Name: "staff", Matches: []rollout.Match{
				{Headers: []rollout.NamedMatch{{Name: "X-Staff", StringMatch: rollout.StringMatch{Exact: "yes"}}}},
			}}}},
		}}, "11ff242d"},
		"BlueGreen": {rollout.Spec{Scaling: rollout.Surge, BlueGreen: &rollout.BlueGreen{
			PrePromotion: metrics, PostPromotion: metrics, PreviewReplicaCount: new(2), ScaleDownDelaySeconds: 30,
		}}, "a027da6d"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := compile(tc.spec).digest(); got != tc.want {
				t.Errorf("the digest is %s, want %s", got, tc.want)
			}
		})
	}
}
