package plan_test

import (
	"fmt"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// TestApproximateIsArgosArithmetic compares Approximate with results of CalculateReplicaCountsForBasicCanary, taken from runs of Argo
// Rollouts. A canary must keep its numbers of pods when its app moves from Argo Rollouts to gitrollout.
func TestApproximateIsArgosArithmetic(t *testing.T) {
	for _, tc := range []struct {
		n     int
		surge bool
		want  map[plan.Counts][]int // counts -> the weights with these counts
	}{
		{1, false, map[plan.Counts][]int{{0, 1}: span(1, 49), {1, 0}: span(50, 100)}},
		{1, true, map[plan.Counts][]int{{1, 1}: span(1, 99)}},
		{2, false, map[plan.Counts][]int{{1, 1}: {25, 50, 66, 90}}},
		{2, true, map[plan.Counts][]int{{1, 2}: {10, 33}, {1, 1}: {50}, {2, 1}: {66, 90}}},
		{3, false, map[plan.Counts][]int{{1, 2}: {10, 33}, {2, 1}: {50, 66, 90}}},
		{3, true, map[plan.Counts][]int{{1, 3}: {10}, {1, 2}: {33}, {2, 2}: {50}, {2, 1}: {66}, {3, 1}: {75}}},
		{4, false, map[plan.Counts][]int{{1, 3}: {10, 25, 33}, {2, 2}: {50}, {3, 1}: {66, 75, 90}}},
		{4, true, map[plan.Counts][]int{{1, 4}: {10}, {1, 3}: {25}, {2, 3}: {33}, {2, 2}: {50}, {3, 2}: {66}, {3, 1}: {75}, {4, 1}: {90}}},
		{5, false, map[plan.Counts][]int{{1, 4}: {20}, {2, 3}: {33}, {3, 2}: {50}, {4, 1}: {75}}},
		{5, true, map[plan.Counts][]int{{1, 5}: {10}, {1, 4}: {20}, {2, 4}: {33}, {3, 3}: {50}, {4, 2}: {66}, {5, 1}: {90}}},
		{10, false, map[plan.Counts][]int{{1, 9}: {5, 10}, {2, 8}: {20}, {3, 7}: {25}, {5, 5}: {50}, {8, 2}: {75}, {9, 1}: {90}}},
		{10, true, map[plan.Counts][]int{{1, 10}: {5}, {1, 9}: {10}, {3, 8}: {25}, {7, 4}: {66}, {8, 3}: {75}, {10, 1}: {95}}},
	} {
		for want, weights := range tc.want {
			for _, w := range weights {
				compare.CheckNamed(t, fmt.Sprintf("n=%d weight=%d surge=%t", tc.n, w, tc.surge), want, plan.Approximate(tc.n, w, tc.surge))
			}
		}
	}
}

func span(from, to int) []int {
	var all []int
	for i := from; i <= to; i++ {
		all = append(all, i)
	}
	return all
}

// TestApproximateDeviatesFromArgoOnlyHere lists the only cases up to 100 replicas in which Approximate differs from Argo Rollouts. In these
// cases, Argo Rollouts gives no canary pod. In each case, the exact number of canary pods lies halfway between n-1 and n.
func TestApproximateDeviatesFromArgoOnlyHere(t *testing.T) {
	for n, weight := range map[int]int{2: 75, 5: 90, 10: 95, 25: 98, 50: 99} {
		compare.CheckNamed(t, fmt.Sprintf("n=%d weight=%d", n, weight), plan.Counts{Canary: n - 1, Stable: 1}, plan.Approximate(n, weight, false))
	}
}

func TestApproximateProperties(t *testing.T) {
	for n := range 101 {
		for _, surge := range []bool{false, true} {
			last := 0
			for w := range 101 {
				c := plan.Approximate(n, w, surge)
				total := c.Canary + c.Stable
				switch {
				case c.Canary < 0 || c.Stable < 0:
					t.Errorf("n=%d w=%d surge=%t: negative counts %v", n, w, surge, c)
				case total != n && (!surge || total != n+1):
					t.Errorf("n=%d w=%d surge=%t: %v is %d pods", n, w, surge, c, total)
				case w == 0 && n > 0 && c != (plan.Counts{0, n}), w == 100 && n > 0 && c != (plan.Counts{n, 0}):
					t.Errorf("n=%d w=%d surge=%t: got %v", n, w, surge, c)
				case n > 1 && w > 0 && c.Canary == 0:
					t.Errorf("n=%d w=%d surge=%t: a canary without a pod", n, w, surge)
				case n > 1 && w < 100 && c.Stable == 0:
					t.Errorf("n=%d w=%d surge=%t: nothing of stable is left", n, w, surge)
				case c.Canary < last:
					t.Errorf("n=%d w=%d surge=%t: %d canary pods, at a smaller weight there were %d", n, w, surge, c.Canary, last)
				}
				last = c.Canary
			}
		}
	}
}

func TestCanaryCounts(t *testing.T) {
	canary := func(scaling rollout.Scaling, floor int) rollout.Spec {
		return rollout.Spec{
			Scaling: scaling, MaxSurge: rollout.Amount{Value: 25, Percent: true},
			Canary: &rollout.Canary{MinPodsPerReplicaSet: floor},
		}
	}
	replicas := func(n int) *rollout.CanaryScale { return &rollout.CanaryScale{Replicas: &n} }
	quarter := &rollout.CanaryScale{Weight: new(25)}
	cases := map[string]struct {
		reason string
		spec   rollout.Spec
		weight int
		scale  *rollout.CanaryScale
		n      int
		want   plan.Counts
	}{
		"SurgeRoundsUp":      {"5 % of 10 is one pod, stable stays whole", canary(rollout.Surge, 0), 5, nil, 10, plan.Counts{1, 10}},
		"SurgeZero":          {"no weight, no pods", canary(rollout.Surge, 0), 0, nil, 10, plan.Counts{0, 10}},
		"SurgeAll":           {"all beside all", canary(rollout.Surge, 0), 100, nil, 10, plan.Counts{10, 10}},
		"SurgeFloor":         {"a lone pod is no high availability", canary(rollout.Surge, 2), 5, nil, 10, plan.Counts{2, 10}},
		"SurgeFloorCapped":   {"the floor is at most n", canary(rollout.Surge, 20), 5, nil, 10, plan.Counts{10, 10}},
		"FloorOfNothing":     {"the floor starts no pod", canary(rollout.Surge, 2), 0, nil, 10, plan.Counts{0, 10}},
		"ScaleReplicas":      {"a fixed number", canary(rollout.Surge, 0), 5, replicas(3), 10, plan.Counts{3, 10}},
		"ScaleReplicasMany":  {"at most n", canary(rollout.Surge, 0), 5, replicas(30), 10, plan.Counts{10, 10}},
		"ScaleReplicasFloor": {"an explicit number is not raised", canary(rollout.Surge, 5), 5, replicas(3), 10, plan.Counts{3, 10}},
		"ScaleWeight":        {"a share apart from the weight", canary(rollout.Surge, 0), 5, quarter, 10, plan.Counts{3, 10}},
		"ScaleWeightFloor":   {"which is raised", canary(rollout.Surge, 5), 5, quarter, 10, plan.Counts{5, 10}},
		"InPlace":            {"with a surge, the nearer of n and n+1", canary(rollout.InPlace, 0), 25, nil, 10, plan.Counts{3, 8}},
		"InPlaceFloor":       {"both are raised", canary(rollout.InPlace, 2), 5, nil, 3, plan.Counts{2, 3}},
		"InPlaceAll":         {"at 100 % nothing of stable is left", canary(rollout.InPlace, 2), 100, nil, 10, plan.Counts{10, 0}},
		"ScaleInPlaceAll": {"no stable pod is left", canary(rollout.InPlace, 0), 5, &rollout.CanaryScale{Weight: new(100)}, 10,
			plan.Counts{10, 0}},
		"NoPods":      {"nothing of nothing", canary(rollout.InPlace, 2), 50, nil, 0, plan.Counts{0, 0}},
		"NoPodsSurge": {"nothing of nothing", canary(rollout.Surge, 2), 50, nil, 0, plan.Counts{0, 0}},
	}
	for name, tc := range cases {
		compare.CheckNamed(t, name+", "+tc.reason, tc.want, plan.CanaryCounts(tc.spec, tc.weight, tc.scale, false)(tc.n))
	}
}

// row holds the fields of a stage that the test compares.
type row struct {
	Name, Text     string
	Weight         int
	Canary, Stable int // pods for 10 replicas
	Wait           plan.Wait
	Switched       bool
}

func rowsOf(p *plan.Compiled) []row {
	var rows []row
	for _, s := range p.Stages {
		c := s.Counts(10)
		rows = append(rows, row{s.Name, s.Text, s.Weight, c.Canary, c.Stable, s.Wait, s.Switched})
	}
	return rows
}

func TestPlans(t *testing.T) {
	weight := func(n int) rollout.Step { return rollout.Step{SetWeight: &n} }
	scale := func(s rollout.CanaryScale) rollout.Step { return rollout.Step{SetCanaryScale: &s} }
	surge := func(steps ...rollout.Step) rollout.Spec {
		return rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{Steps: steps}}
	}
	delayed := func(scaling rollout.Scaling, steps ...rollout.Step) rollout.Spec {
		return rollout.Spec{Scaling: scaling, Canary: &rollout.Canary{StableService: "web", ScaleDownDelaySeconds: 30, Steps: steps}}
	}
	scaledUp := row{Name: "scale-up", Text: "scale up", Canary: 10, Stable: 10, Wait: plan.PodsWait{}}
	switched := row{Name: "switch", Text: "switch", Weight: 100, Canary: 10, Stable: 10, Wait: plan.NoWait{}, Switched: true}
	kept := row{Name: "scale-down-delay", Text: "keep the old version 30s", Weight: 100, Canary: 10, Stable: 10,
		Wait: plan.DelayWait{30 * time.Second}, Switched: true}
	cases := map[string]struct {
		reason string
		spec   rollout.Spec
		want   []row
	}{
		"NoSteps": {"the user's own rolling update", delayed(rollout.Surge), nil},
		"Weights": {"a step's index is the stage's; before the first weight it is 0", surge(rollout.Step{Pause: &rollout.Pause{}}, weight(20),
			rollout.Step{Name: "soak", Pause: &rollout.Pause{Duration: new(time.Minute)}}, weight(100)),
			[]row{
				{Text: "pause", Stable: 10, Wait: plan.PromotionWait{}},
				{Text: "setWeight 20", Weight: 20, Canary: 2, Stable: 10, Wait: plan.PodsWait{}},
				{Name: "soak", Text: "pause 1m0s", Weight: 20, Canary: 2, Stable: 10, Wait: plan.TimerWait{Duration: time.Minute}},
				{Text: "setWeight 100", Weight: 100, Canary: 10, Stable: 10, Wait: plan.PodsWait{}},
			}},
		"Scale": {"where weights are shares of pods, setCanaryScale holds until the next setWeight",
			surge(scale(rollout.CanaryScale{Replicas: new(3)}), weight(20), scale(rollout.CanaryScale{Weight: new(50)}), weight(30),
				scale(rollout.CanaryScale{MatchTrafficWeight: true}), weight(40)),
			[]row{
				{Text: "setCanaryScale replicas 3", Canary: 3, Stable: 10, Wait: plan.PodsWait{}},
				{Text: "setWeight 20", Weight: 20, Canary: 2, Stable: 10, Wait: plan.PodsWait{}},
				{Text: "setCanaryScale weight 50", Weight: 20, Canary: 5, Stable: 10, Wait: plan.PodsWait{}},
				{Text: "setWeight 30", Weight: 30, Canary: 3, Stable: 10, Wait: plan.PodsWait{}},
				{Text: "setCanaryScale matchTrafficWeight", Weight: 30, Canary: 3, Stable: 10, Wait: plan.PodsWait{}},
				{Text: "setWeight 40", Weight: 40, Canary: 4, Stable: 10, Wait: plan.PodsWait{}},
			}},
		"NoPods": {"without pods a weight waits for a step with pods",
			rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{Traffic: &rollout.Traffic{MaxWeight: 100}, Steps: []rollout.Step{
				scale(rollout.CanaryScale{Replicas: new(0)}), weight(20), scale(rollout.CanaryScale{Replicas: new(3)}),
			}}},
			[]row{
				{Text: "setCanaryScale replicas 0", Stable: 10, Wait: plan.PodsWait{}},
				{Text: "setWeight 20", Stable: 10, Wait: plan.PodsWait{}},
				{Text: "setCanaryScale replicas 3", Weight: 20, Canary: 3, Stable: 10, Wait: plan.PodsWait{}},
				{Name: "route-all", Text: "send all requests to the new version", Weight: 100, Canary: 10, Stable: 10, Wait: plan.PodsWait{}},
				{Name: "switch", Text: "switch", Weight: 100, Canary: 10, Stable: 10, Wait: plan.DelayWait{}, Switched: true},
			}},
		"Handover": {"with a Service and a delay, a full set and the switch follow the steps", delayed(rollout.Surge, weight(20)),
			[]row{
				{Text: "setWeight 20", Weight: 20, Canary: 2, Stable: 10, Wait: plan.PodsWait{}},
				{Name: "scale-up", Text: "scale up", Weight: 20, Canary: 10, Stable: 10, Wait: plan.PodsWait{}},
				switched, kept,
			}},
		"NoHandoverInPlace": {"in place there is no second set", delayed(rollout.InPlace, weight(20)),
			[]row{{Text: "setWeight 20", Weight: 20, Canary: 2, Stable: 8, Wait: plan.PodsWait{}}}},
		"BlueGreen": {"preview, switch, delay",
			rollout.Spec{Scaling: rollout.Surge, BlueGreen: &rollout.BlueGreen{AutoPromotionEnabled: true, ScaleDownDelaySeconds: 30}},
			[]row{{Name: "preview", Text: "preview", Canary: 10, Stable: 10, Wait: plan.PodsWait{}}, switched, kept}},
		"BlueGreenGated": {"a small preview is scaled up only after the gate",
			rollout.Spec{Scaling: rollout.Surge, BlueGreen: &rollout.BlueGreen{PreviewReplicaCount: new(1), AutoPromotionSeconds: 60}},
			[]row{
				{Name: "preview", Text: "preview", Canary: 1, Stable: 10, Wait: plan.PodsWait{}},
				{Name: "promotion", Text: "wait for promotion", Canary: 1, Stable: 10, Wait: plan.PromotionWait{}},
				scaledUp, switched,
			}},
		"BlueGreenTimed": {"a preview of nothing is one pod; the clock opens the gate",
			rollout.Spec{Scaling: rollout.Surge,
				BlueGreen: &rollout.BlueGreen{PreviewReplicaCount: new(0), AutoPromotionEnabled: true, AutoPromotionSeconds: 60}},
			[]row{
				{Name: "preview", Text: "preview", Canary: 1, Stable: 10, Wait: plan.PodsWait{}},
				{Name: "promotion", Text: "wait for promotion", Canary: 1, Stable: 10, Wait: plan.TimerWait{Duration: time.Minute}},
				scaledUp, switched,
			}},
	}
	for name, tc := range cases {
		compare.CheckNamed(t, name+", "+tc.reason, tc.want, rowsOf(plan.Compile(tc.spec)))
	}
}

func TestPlanDigestSeesEveryField(t *testing.T) {
	base := func() rollout.Spec {
		return rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{Steps: []rollout.Step{
			{SetWeight: new(20)}, {Name: "soak", Pause: &rollout.Pause{Duration: new(time.Minute)}},
		}}}
	}
	same := plan.Compile(base()).Digest()
	if got := plan.Compile(base()).Digest(); got != same {
		t.Fatalf("two digests of one plan: %s, %s", same, got)
	}
	unrelated := base()
	unrelated.ProgressDeadlineSeconds, unrelated.MinReadySeconds, unrelated.Paused = 7, 7, true
	if got := plan.Compile(unrelated).Digest(); got != same {
		t.Error("a change outside the steps changes the digest")
	}
	changes := map[string]func(*rollout.Spec){
		"Weight":   func(s *rollout.Spec) { s.Canary.Steps[0].SetWeight = new(30) },
		"Name":     func(s *rollout.Spec) { s.Canary.Steps[1].Name = "rest" },
		"Duration": func(s *rollout.Spec) { s.Canary.Steps[1].Pause.Duration = new(time.Hour) },
		"Gate":     func(s *rollout.Spec) { s.Canary.Steps[1].Pause.Duration = nil },
		"Order":    func(s *rollout.Spec) { s.Canary.Steps[0], s.Canary.Steps[1] = s.Canary.Steps[1], s.Canary.Steps[0] },
		"Shorter":  func(s *rollout.Spec) { s.Canary.Steps = s.Canary.Steps[:1] },
		"Scaling":  func(s *rollout.Spec) { s.Scaling = rollout.InPlace },
		"Floor":    func(s *rollout.Spec) { s.Canary.MinPodsPerReplicaSet = 30 },
		"Handover": func(s *rollout.Spec) { s.Canary.StableService, s.Canary.ScaleDownDelaySeconds = "web", 1 },
		"Strategy": func(s *rollout.Spec) { s.Canary, s.BlueGreen = nil, &rollout.BlueGreen{} },
	}
	for name, change := range changes {
		spec := base()
		change(&spec)
		if got := plan.Compile(spec).Digest(); got == same {
			t.Errorf("the digest does not see %s", name)
		}
	}
}

// TestCanaryScaleCountsDown checks that a smaller setCanaryScale removes pods. If weights are shares of pods, setCanaryScale applies until
// the next setWeight. With a router, setCanaryScale applies until matchTrafficWeight, as in Argo Rollouts.
func TestCanaryScaleCountsDown(t *testing.T) {
	steps := []rollout.Step{
		{SetWeight: new(40)}, {SetCanaryScale: &rollout.CanaryScale{Replicas: new(2)}}, {SetWeight: new(60)},
		{SetCanaryScale: &rollout.CanaryScale{MatchTrafficWeight: true}}, {SetWeight: new(5)},
	}
	cases := map[string]struct {
		traffic *rollout.Traffic
		want    []int
	}{
		"Pods":   {nil, []int{4, 2, 6, 6, 1}},
		"Router": {&rollout.Traffic{MaxWeight: 100}, []int{4, 2, 2, 6, 1}},
	}
	for name, tc := range cases {
		p := plan.Compile(rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{Steps: steps, Traffic: tc.traffic}})
		var got []int
		for i := range steps {
			got = append(got, p.CountsAt(i, 10).Canary)
		}
		compare.CheckNamed(t, name, tc.want, got)
	}
}

func TestRoutedCounts(t *testing.T) {
	atLeast := func(pods int) func(*rollout.Canary) {
		return func(c *rollout.Canary) { c.MinPodsPerReplicaSet = pods }
	}
	dynamic := func(c *rollout.Canary) { c.DynamicStableScale = true }
	replicas := func(n int) *rollout.CanaryScale { return &rollout.CanaryScale{Replicas: &n} }
	cases := map[string]struct {
		reason string
		change func(*rollout.Canary)
		weight int
		scale  *rollout.CanaryScale
		routed bool
		n      int
		want   plan.Counts
	}{
		"Weight":       {"the canary is as large as its share, stable is whole", nil, 20, nil, false, 10, plan.Counts{2, 10}},
		"RoundedUp":    {"never less than its share", nil, 5, nil, false, 10, plan.Counts{1, 10}},
		"Zero":         {"no requests, no pods", nil, 0, nil, false, 10, plan.Counts{0, 10}},
		"Matched":      {"matched users need a pod", nil, 0, nil, true, 10, plan.Counts{1, 10}},
		"MatchedNone":  {"of a workload that has any", nil, 0, nil, true, 0, plan.Counts{0, 0}},
		"Replicas":     {"an explicit number is taken as it is", atLeast(4), 20, replicas(3), false, 10, plan.Counts{3, 10}},
		"ScaleWeight":  {"also as a percentage of the pods", nil, 20, &rollout.CanaryScale{Weight: new(50)}, false, 10, plan.Counts{5, 10}},
		"MinPods":      {"each version has at least so many", atLeast(3), 5, nil, false, 10, plan.Counts{3, 10}},
		"PerMille":     {"of another total", func(c *rollout.Canary) { c.Traffic.MaxWeight = 1000 }, 5, nil, false, 10, plan.Counts{1, 10}},
		"Dynamic":      {"stable shrinks with its share", dynamic, 30, nil, false, 10, plan.Counts{3, 7}},
		"DynamicScale": {"but never below the canary's remainder", dynamic, 50, replicas(1), false, 10, plan.Counts{1, 9}},
		"DynamicAll":   {"to nothing", dynamic, 100, nil, false, 10, plan.Counts{10, 0}},
	}
	for name, tc := range cases {
		c := &rollout.Canary{Traffic: &rollout.Traffic{MaxWeight: 100}}
		if tc.change != nil {
			tc.change(c)
		}
		got := plan.CanaryCounts(rollout.Spec{Scaling: rollout.Surge, Canary: c}, tc.weight, tc.scale, tc.routed)(tc.n)
		compare.CheckNamed(t, name+", "+tc.reason, tc.want, got)
	}
}

// TestPlanDigestsAreInRecords checks that the digests of plans do not change, because state files contain them. If a digest changed, an
// upgrade of gitrollout would restart the present step of each release in flight.
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
		compare.CheckNamed(t, name, tc.want, plan.Compile(tc.spec).Digest())
	}
}
