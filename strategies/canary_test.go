package strategies

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestApproximateIsArgosArithmetic has the results of Argo Rollouts' CalculateReplicaCountsForBasicCanary (run, not
// read). A canary that moves from Argo Rollouts to here keeps its pods.
func TestApproximateIsArgosArithmetic(t *testing.T) {
	type golden struct {
		n       int
		surge   bool
		weights []int
		want    counts
	}
	cases := []golden{
		{1, false, span(1, 49), counts{0, 1}},
		{1, false, span(50, 100), counts{1, 0}},
		{1, true, span(1, 99), counts{1, 1}},
		{2, false, []int{25, 50, 66, 90}, counts{1, 1}},
		{2, true, []int{10, 33}, counts{1, 2}},
		{2, true, []int{50}, counts{1, 1}},
		{2, true, []int{66, 90}, counts{2, 1}},
		{3, false, []int{10, 33}, counts{1, 2}},
		{3, false, []int{50, 66, 90}, counts{2, 1}},
		{3, true, []int{10}, counts{1, 3}},
		{3, true, []int{33}, counts{1, 2}},
		{3, true, []int{50}, counts{2, 2}},
		{3, true, []int{66}, counts{2, 1}},
		{3, true, []int{75}, counts{3, 1}},
		{4, false, []int{10, 25, 33}, counts{1, 3}},
		{4, false, []int{50}, counts{2, 2}},
		{4, false, []int{66, 75, 90}, counts{3, 1}},
		{4, true, []int{10}, counts{1, 4}},
		{4, true, []int{25}, counts{1, 3}},
		{4, true, []int{33}, counts{2, 3}},
		{4, true, []int{50}, counts{2, 2}},
		{4, true, []int{66}, counts{3, 2}},
		{4, true, []int{75}, counts{3, 1}},
		{4, true, []int{90}, counts{4, 1}},
		{5, false, []int{20}, counts{1, 4}},
		{5, false, []int{33}, counts{2, 3}},
		{5, false, []int{50}, counts{3, 2}},
		{5, false, []int{75}, counts{4, 1}},
		{5, true, []int{10}, counts{1, 5}},
		{5, true, []int{20}, counts{1, 4}},
		{5, true, []int{33}, counts{2, 4}},
		{5, true, []int{50}, counts{3, 3}},
		{5, true, []int{66}, counts{4, 2}},
		{5, true, []int{90}, counts{5, 1}},
		{10, false, []int{5, 10}, counts{1, 9}},
		{10, false, []int{20}, counts{2, 8}},
		{10, false, []int{25}, counts{3, 7}},
		{10, false, []int{50}, counts{5, 5}},
		{10, false, []int{75}, counts{8, 2}},
		{10, false, []int{90}, counts{9, 1}},
		{10, true, []int{5}, counts{1, 10}},
		{10, true, []int{10}, counts{1, 9}},
		{10, true, []int{25}, counts{3, 8}},
		{10, true, []int{66}, counts{7, 4}},
		{10, true, []int{75}, counts{8, 3}},
		{10, true, []int{95}, counts{10, 1}},
	}
	for _, tc := range cases {
		for _, w := range tc.weights {
			if diff := compare.Diff(tc.want, approximate(tc.n, w, tc.surge)); diff != "" {
				t.Errorf("n=%d weight=%d surge=%t (-want +got):\n%s", tc.n, w, tc.surge, diff)
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

// TestApproximateDeviatesFromArgoOnlyHere has the only cases up to 100 replicas in which Argo Rollouts gives no
// canary pod. Each is an exact tie whose upper half is every pod.
func TestApproximateDeviatesFromArgoOnlyHere(t *testing.T) {
	for n, weight := range map[int]int{2: 75, 5: 90, 10: 95, 25: 98, 50: 99} {
		if diff := compare.Diff(counts{canary: n - 1, stable: 1}, approximate(n, weight, false)); diff != "" {
			t.Errorf("n=%d weight=%d (-want +got):\n%s", n, weight, diff)
		}
	}
}

func TestApproximateProperties(t *testing.T) {
	for n := range 101 {
		for _, surge := range []bool{false, true} {
			last := 0
			for w := range 101 {
				c := approximate(n, w, surge)
				total := c.canary + c.stable
				switch {
				case c.canary < 0 || c.stable < 0:
					t.Errorf("n=%d w=%d surge=%t: negative counts %v", n, w, surge, c)
				case total != n && (!surge || total != n+1):
					t.Errorf("n=%d w=%d surge=%t: %v is %d pods", n, w, surge, c, total)
				case w == 0 && n > 0 && c != (counts{0, n}), w == 100 && n > 0 && c != (counts{n, 0}):
					t.Errorf("n=%d w=%d surge=%t: got %v", n, w, surge, c)
				case n > 1 && w > 0 && c.canary == 0:
					t.Errorf("n=%d w=%d surge=%t: a canary without a pod", n, w, surge)
				case n > 1 && w < 100 && c.stable == 0:
					t.Errorf("n=%d w=%d surge=%t: nothing of stable is left", n, w, surge)
				case c.canary < last:
					t.Errorf("n=%d w=%d surge=%t: %d canary pods, at a smaller weight there were %d", n, w, surge, c.canary, last)
				}
				last = c.canary
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
	cases := map[string]struct {
		reason string
		spec   rollout.Spec
		weight int
		scale  *rollout.CanaryScale
		n      int
		want   counts
	}{
		"SurgeRoundsUp": {
			"5 % of 10 is one pod, stable stays whole", canary(rollout.Surge, 0), 5, nil, 10, counts{1, 10},
		},
		"SurgeZero":        {"no weight, no pods", canary(rollout.Surge, 0), 0, nil, 10, counts{0, 10}},
		"SurgeAll":         {"all beside all", canary(rollout.Surge, 0), 100, nil, 10, counts{10, 10}},
		"SurgeFloor":       {"a lone pod is no high availability", canary(rollout.Surge, 2), 5, nil, 10, counts{2, 10}},
		"SurgeFloorCapped": {"the floor is at most n", canary(rollout.Surge, 20), 5, nil, 10, counts{10, 10}},
		"FloorOfNothing":   {"the floor starts no pod", canary(rollout.Surge, 2), 0, nil, 10, counts{0, 10}},
		"ScaleReplicas": {
			"a fixed number", canary(rollout.Surge, 0), 5, &rollout.CanaryScale{Replicas: new(3)}, 10, counts{3, 10},
		},
		"ScaleReplicasMany": {
			"at most n", canary(rollout.Surge, 0), 5, &rollout.CanaryScale{Replicas: new(30)}, 10, counts{10, 10},
		},
		"ScaleReplicasFloor": {
			"an explicit number is not raised", canary(rollout.Surge, 5), 5, &rollout.CanaryScale{Replicas: new(3)}, 10,
			counts{3, 10},
		},
		"ScaleWeight": {
			"a share apart from the weight", canary(rollout.Surge, 0), 5, &rollout.CanaryScale{Weight: new(25)}, 10, counts{3, 10},
		},
		"ScaleWeightFloor": {
			"which is raised", canary(rollout.Surge, 5), 5, &rollout.CanaryScale{Weight: new(25)}, 10, counts{5, 10},
		},
		"InPlace": {
			"with a surge, the nearer of n and n+1", canary(rollout.InPlace, 0), 25, nil, 10, counts{3, 8},
		},
		"InPlaceFloor": {"both are raised", canary(rollout.InPlace, 2), 5, nil, 3, counts{2, 3}},
		"InPlaceAll":   {"at 100 % nothing of stable is left", canary(rollout.InPlace, 2), 100, nil, 10, counts{10, 0}},
		"NoPods":       {"nothing of nothing", canary(rollout.InPlace, 2), 50, nil, 0, counts{0, 0}},
		"NoPodsSurge":  {"nothing of nothing", canary(rollout.Surge, 2), 50, nil, 0, counts{0, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := canaryCounts(tc.spec, tc.weight, tc.scale, false)(tc.n)
			if diff := compare.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// row is a stage in a comparable form.
type row struct {
	Name, Text     string
	Weight         int
	Canary, Stable int // of 10
	Wait           wait
	Switched       bool
}

func rowsOf(p *plan) []row {
	var rows []row
	for _, s := range p.stages {
		c := s.counts(10)
		rows = append(rows, row{s.name, s.text, s.weight, c.canary, c.stable, s.wait, s.switched})
	}
	return rows
}

func TestPlans(t *testing.T) {
	weight := func(n int) rollout.Step { return rollout.Step{SetWeight: &n} }
	pause := rollout.Step{Pause: &rollout.Pause{}}
	scale := func(s rollout.CanaryScale) rollout.Step { return rollout.Step{SetCanaryScale: &s} }
	cases := map[string]struct {
		reason string
		spec   rollout.Spec
		want   []row
	}{
		"NoSteps": {
			"the user's own rolling update",
			rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{StableService: "web", ScaleDownDelaySeconds: 30}}, nil,
		},
		"Weights": {
			"a step's index is the stage's; before the first weight it is 0",
			rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{Steps: []rollout.Step{
				pause, weight(20), {Name: "soak", Pause: &rollout.Pause{Duration: new(time.Minute)}}, weight(100),
			}}},
			[]row{
				{Text: "pause", Stable: 10, Wait: promotionWait{}},
				{Text: "setWeight 20", Weight: 20, Canary: 2, Stable: 10, Wait: podsWait{}},
				{Name: "soak", Text: "pause 1m0s", Weight: 20, Canary: 2, Stable: 10, Wait: timerWait{duration: time.Minute}},
				{Text: "setWeight 100", Weight: 100, Canary: 10, Stable: 10, Wait: podsWait{}},
			},
		},
		"Scale": {
			"where weights are shares of pods, setCanaryScale holds until the next setWeight",
			rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{Steps: []rollout.Step{
				scale(rollout.CanaryScale{Replicas: new(3)}), weight(20), scale(rollout.CanaryScale{Weight: new(50)}), weight(30),
				scale(rollout.CanaryScale{MatchTrafficWeight: true}), weight(40),
			}}},
			[]row{
				{Text: "setCanaryScale replicas 3", Canary: 3, Stable: 10, Wait: podsWait{}},
				{Text: "setWeight 20", Weight: 20, Canary: 2, Stable: 10, Wait: podsWait{}},
				{Text: "setCanaryScale weight 50", Weight: 20, Canary: 5, Stable: 10, Wait: podsWait{}},
				{Text: "setWeight 30", Weight: 30, Canary: 3, Stable: 10, Wait: podsWait{}},
				{Text: "setCanaryScale matchTrafficWeight", Weight: 30, Canary: 3, Stable: 10, Wait: podsWait{}},
				{Text: "setWeight 40", Weight: 40, Canary: 4, Stable: 10, Wait: podsWait{}},
			},
		},
		"Handover": {
			"with a Service and a delay, a full set and the switch follow the steps",
			rollout.Spec{
				Scaling: rollout.Surge,
				Canary:  &rollout.Canary{StableService: "web", ScaleDownDelaySeconds: 30, Steps: []rollout.Step{weight(20)}},
			},
			[]row{
				{Text: "setWeight 20", Weight: 20, Canary: 2, Stable: 10, Wait: podsWait{}},
				{Name: "scale-up", Text: "scale up", Weight: 20, Canary: 10, Stable: 10, Wait: podsWait{}},
				{Name: "switch", Text: "switch", Weight: 100, Canary: 10, Stable: 10, Wait: noWait{}, Switched: true},
				{
					Name: "scale-down-delay", Text: "keep the old version 30s", Weight: 100, Canary: 10, Stable: 10,
					Wait: delayWait{30 * time.Second}, Switched: true,
				},
			},
		},
		"NoHandoverInPlace": {
			"in place there is no second set",
			rollout.Spec{
				Scaling: rollout.InPlace,
				Canary:  &rollout.Canary{StableService: "web", ScaleDownDelaySeconds: 30, Steps: []rollout.Step{weight(20)}},
			},
			[]row{{Text: "setWeight 20", Weight: 20, Canary: 2, Stable: 8, Wait: podsWait{}}},
		},
		"BlueGreen": {
			"preview, switch, delay",
			rollout.Spec{
				Scaling: rollout.Surge, BlueGreen: &rollout.BlueGreen{AutoPromotionEnabled: true, ScaleDownDelaySeconds: 30},
			},
			[]row{
				{Name: "preview", Text: "preview", Canary: 10, Stable: 10, Wait: podsWait{}},
				{Name: "switch", Text: "switch", Weight: 100, Canary: 10, Stable: 10, Wait: noWait{}, Switched: true},
				{
					Name: "scale-down-delay", Text: "keep the old version 30s", Weight: 100, Canary: 10, Stable: 10,
					Wait: delayWait{30 * time.Second}, Switched: true,
				},
			},
		},
		"BlueGreenGated": {
			"a small preview is scaled up only after the gate",
			rollout.Spec{
				Scaling: rollout.Surge, BlueGreen: &rollout.BlueGreen{PreviewReplicaCount: new(1), AutoPromotionSeconds: 60},
			},
			[]row{
				{Name: "preview", Text: "preview", Canary: 1, Stable: 10, Wait: podsWait{}},
				{Name: "promotion", Text: "wait for promotion", Canary: 1, Stable: 10, Wait: promotionWait{}},
				{Name: "scale-up", Text: "scale up", Canary: 10, Stable: 10, Wait: podsWait{}},
				{Name: "switch", Text: "switch", Weight: 100, Canary: 10, Stable: 10, Wait: noWait{}, Switched: true},
			},
		},
		"BlueGreenTimed": {
			"a preview of nothing is one pod; the clock opens the gate",
			rollout.Spec{
				Scaling:   rollout.Surge,
				BlueGreen: &rollout.BlueGreen{PreviewReplicaCount: new(0), AutoPromotionEnabled: true, AutoPromotionSeconds: 60},
			},
			[]row{
				{Name: "preview", Text: "preview", Canary: 1, Stable: 10, Wait: podsWait{}},
				{Name: "promotion", Text: "wait for promotion", Canary: 1, Stable: 10, Wait: timerWait{duration: time.Minute}},
				{Name: "scale-up", Text: "scale up", Canary: 10, Stable: 10, Wait: podsWait{}},
				{Name: "switch", Text: "switch", Weight: 100, Canary: 10, Stable: 10, Wait: noWait{}, Switched: true},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := compare.Diff(tc.want, rowsOf(compile(tc.spec))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlanDigestSeesEveryField(t *testing.T) {
	base := func() rollout.Spec {
		return rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{Steps: []rollout.Step{
			{SetWeight: new(20)}, {Name: "soak", Pause: &rollout.Pause{Duration: new(time.Minute)}},
		}}}
	}
	same := compile(base()).digest()
	if got := compile(base()).digest(); got != same {
		t.Fatalf("two digests of one plan: %s, %s", same, got)
	}
	unrelated := base()
	unrelated.ProgressDeadlineSeconds, unrelated.MinReadySeconds, unrelated.Paused = 7, 7, true
	if got := compile(unrelated).digest(); got != same {
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
		t.Run(name, func(t *testing.T) {
			spec := base()
			change(&spec)
			if got := compile(spec).digest(); got == same {
				t.Error("the digest does not see it")
			}
		})
	}
}

// TestResumed checks where a release continues in a changed list of steps: at the first different step, or at its
// current step. Users keep the share that they have.
func TestResumed(t *testing.T) {
	steps := func(weights ...int) []rollout.Step {
		var all []rollout.Step
		for _, w := range weights {
			if w < 0 {
				all = append(all, rollout.Step{Pause: &rollout.Pause{}})
				continue
			}
			all = append(all, rollout.Step{SetWeight: &w})
		}
		return all
	}
	const gate = -1
	cases := map[string]struct {
		reason   string
		old, now []rollout.Step
		step     int
		want     int
		kept     bool // the step's clock continues
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
		t.Run(name, func(t *testing.T) {
			old := rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{Steps: tc.old}}
			now := rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{Steps: tc.now}}
			in := Input{Now: noon.Add(time.Hour), Source: &rollout.Render{Specs: []rollout.Spec{old}}, plans: plans{}}
			in.State.Release = &rollout.Release{}
			pr := compile(old).progress(tc.step, noon)
			m := workload{plan: compile(now), Progress: pr}
			got := m.resumed(in, m.changeOf(in))
			if got.Step != tc.want || got.Entered.Equal(noon) != tc.kept {
				t.Errorf("%s: got step %d since %s, want %d", tc.reason, got.Step, got.Entered, tc.want)
			}
			// Git has lost the old list, or another version of the program recorded it.
			in.Source.Specs = nil
			if got := m.resumed(in, m.changeOf(in)); got.Step > tc.want {
				t.Errorf("without the old list it goes on at step %d", got.Step)
			}
			pr.Plan, in.Source.Specs = "0badcafe", []rollout.Spec{old}
			if m := (workload{plan: compile(now), Progress: pr}); m.resumed(in, m.changeOf(in)).Step != tc.want {
				t.Error("after an upgrade of the program it goes on elsewhere")
			}
		})
	}
}

// TestCanaryScaleCountsDown checks that a smaller setCanaryScale removes pods. With weights as shares of pods, it
// lasts until the next setWeight. With a router, it lasts until matchTrafficWeight, as in Argo Rollouts.
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
		t.Run(name, func(t *testing.T) {
			p := compile(rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{Steps: steps, Traffic: tc.traffic}})
			var got []int
			for i := range steps {
				got = append(got, p.countsAt(i, 10).canary)
			}
			if diff := compare.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
