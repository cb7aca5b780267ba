package strategies

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/routes"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// shape has the fields that Desired writes into a Deployment.
type shape struct {
	Version  string
	Commit   string
	Surge    any // nil: the user's own
	Unavail  any
	Deadline any
	MinReady any
	Replicas any
	Held     bool // the status annotation has the step
}

func shapeOf(t *testing.T, objects []rollout.Object) shape {
	t.Helper()
	for _, o := range objects {
		if o.Kind() != "Deployment" {
			continue
		}
		rolling := o.Map("spec", "strategy", "rollingUpdate")
		return shape{
			Version: o.Map("spec", "template")["version"].(string), Commit: o.Annotation(rollout.AnnotationCommit),
			Surge: rolling["maxSurge"], Unavail: rolling["maxUnavailable"], Deadline: o.Map("spec")["progressDeadlineSeconds"],
			MinReady: o.Map("spec")["minReadySeconds"], Replicas: o.Map("spec")["replicas"],
			Held: o.Annotation(rollout.AnnotationStatus) != "",
		}
	}
	return shape{}
}

func viewOf(in Input, h *history) workloads.View {
	v := workloads.View{Now: in.Now, Source: h.at(in.State.Source), Observed: in.Observed}
	if NeedsStable(in.State, v) {
		v.Stable = h.at(in.State.Stable.Commit)
	}
	return v
}

func TestDesiredDeployment(t *testing.T) {
	own := shape{Surge: "25%", Unavail: "25%", MinReady: int64(0), Replicas: int64(10)}
	user := func(version, commit string) shape {
		s := own
		s.Version, s.Commit = version, commit
		return s
	}
	hold := func(surge, unavailable string) shape {
		return shape{
			Version: "v2", Commit: commitID(1), Surge: surge, Unavail: unavailable, Deadline: int64(workloads.HoldProgressDeadline),
			MinReady: int64(workloads.HoldMinReadySeconds), Replicas: int64(10), Held: true,
		}
	}
	surge := func(s *rollout.Spec) { s.Scaling, s.Canary.StableService = rollout.Surge, "web" }
	old, fresh := 10, 0
	cases := map[string]struct {
		reason string
		spec   func(*rollout.Spec)
		step   int
		old    int
		fresh  int
		change func(*Input, *history)
		want   shape
	}{
		"FirstStep": {"template and hold in one", nil, 0, old, fresh, nil, hold("0%", "20%")},
		"Surge":     {"stable stays whole", surge, 0, old, fresh, nil, hold("20%", "0%")},
		"Promoting": {"the user's own fields", nil, 3, 8, 2, func(in *Input, _ *history) { in.State.Phase = rollout.Promoting },
			user("v2", commitID(1))},
		"NoCanaryYet": {"a step without canary pods is still stable's", func(s *rollout.Spec) { s.Canary.Steps[0].SetWeight = new(0) }, 0, old,
			fresh, nil, user("v1", commitID(0))},
		"UnknownStable": {"until stable's ReplicaSet is known nothing can be held", nil, 0, old, fresh,
			func(in *Input, _ *history) {
				live := in.Observed.Workloads[web]
				live.Revisions = live.Revisions[1:]
				in.Observed.Workloads[web] = live
			}, user("v1", commitID(0))},
		"FromZero": {"a workload that comes back from no pods comes back as stable", surge, 0, 0, 0, nil, user("v1", commitID(0))},
		"Strangers": {
			"pods that cannot be told from stable's stay available: the stable template alone", surge, 0, 8, 5,
			func(in *Input, _ *history) {
				live := in.Observed.Workloads[web]
				byHand := live.Revisions[0] // kubectl set image keeps the annotations
				byHand.Pin, byHand.Desired, byHand.Pods, byHand.ReadySince = rollout.PodHash("by-hand"), 2, 2, byHand.ReadySince[:2]
				live.Revisions, live.Synced, live.Available = append(live.Revisions, byHand), true, 2
				in.Observed.Workloads[web] = live
			}, user("v1", commitID(0)),
		},
		"PromotingScaled": {
			"a version that never becomes ready does not prevent another number of pods", nil, 3, 20, 5,
			func(in *Input, _ *history) {
				live := in.Observed.Workloads[web]
				live.Replicas, in.State.Phase = 20, rollout.Promoting
				in.Observed.Workloads[web] = live
			}, user("v2", commitID(1)),
		},
		"StrangersOfTheNew": {
			"older pods would go in the place of pods that cannot be told from the new version's", surge, 0, 10, 0,
			func(in *Input, _ *history) {
				live := in.Observed.Workloads[web]
				byHand := live.Revisions[1]
				byHand.Pin, byHand.Desired, byHand.Pods, byHand.ReadySince = rollout.PodHash("by-hand"), 2, 2, live.Revisions[0].ReadySince[:2]
				live.Revisions, live.Synced = append(live.Revisions, byHand), true
				in.Observed.Workloads[web] = live
			}, user("v1", commitID(0)),
		},
		"StrangersSwitched": {"users on the new version stay", func(s *rollout.Spec) {
			surge(s)
			s.Canary.ScaleDownDelaySeconds = 30
		}, 5, 10, 10, func(in *Input, _ *history) {
			live := in.Observed.Workloads[web]
			byHand := live.Revisions[0]
			byHand.Pin, byHand.Desired, byHand.Pods = rollout.PodHash("by-hand"), 2, 2
			live.Revisions, live.Synced = append(live.Revisions, byHand), true
			in.Observed.Workloads[web] = live
		}, hold("100%", "0%")},
		"TooManyNew": {"a version that never becomes ready does not prevent taking pods back", func(s *rollout.Spec) {
			surge(s)
			s.Replicas = new(2)
		}, 0, 2, 2, func(in *Input, _ *history) {
			live := in.Observed.Workloads[web]
			live.Revisions[1].ReadySince = live.Revisions[1].ReadySince[:1]
			live.Replicas, live.Synced, live.Available = 2, true, 2
			in.Observed.Workloads[web] = live
		}, func() shape { s := hold("50%", "50%"); s.Replicas = int64(2); return s }()},
		"Retreat": {"the stable template and the user's fields in one", nil, 0, 8, 2, func(in *Input, _ *history) {
			in.State.Phase, in.State.Source = rollout.Aborting, commitID(0)
			in.State.Rollback = &rollout.Rollback{To: commitID(0)}
		}, user("v1", commitID(0))},
		"RetreatDelayed": {"until the canary's pods may go they are held", surge, 0, 10, 2, func(in *Input, _ *history) {
			in.State.Phase, in.State.Rollback = rollout.Aborting, &rollout.Rollback{To: commitID(0)}
		}, hold("20%", "0%")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := oneWeb(tc.spec)
			h.push(version("v2"))
			in := inFlight(h, tc.step, set(h, commitID(0), tc.old, tc.old), set(h, commitID(1), tc.fresh, tc.fresh))
			if tc.change != nil {
				tc.change(&in, h)
			}
			v := viewOf(in, h)
			before := dump(v)
			compare.CheckNamed(t, tc.reason, tc.want, shapeOf(t, mustDesired(in.State, v)))
			if dump(v) != before {
				t.Error("the renders were changed")
			}
		})
	}
}

// TestStableTemplateHasTheNewestReplicas checks that a release changes the number of replicas, or leaves it to an
// autoscaler, at once and not in stages.
func TestStableTemplateHasTheNewestReplicas(t *testing.T) {
	for name, replicas := range map[string]*int{"More": new(20), "Autoscaler": nil} {
		t.Run(name, func(t *testing.T) {
			h := oneWeb(func(s *rollout.Spec) { s.Canary.Steps[0].SetWeight = new(0) })
			h.push(func(x *source) { x.workloads[0].version, x.workloads[0].spec.Replicas = "v2", replicas })
			in := inFlight(h, 0, set(h, commitID(0), 10, 10))
			got := shapeOf(t, mustDesired(in.State, viewOf(in, h)))
			want := any(nil)
			if replicas != nil {
				want = int64(*replicas)
			}
			if got.Version != "v1" || got.Replicas != want {
				t.Errorf("%s has %v replicas, want v1 and %v", got.Version, got.Replicas, want)
			}
		})
	}
}

func TestPins(t *testing.T) {
	canary := func(s *rollout.Spec) {
		s.Scaling, s.Canary.StableService, s.Canary.CanaryService = rollout.Surge, "web", "web-canary"
	}
	inPlace := func(s *rollout.Spec) {
		s.Canary.StableService, s.Canary.CanaryService = "web", "web-canary"
		s.Canary.Steps = append(s.Canary.Steps, rollout.Step{SetWeight: new(100)})
	}
	blueGreen := func(s *rollout.Spec) {
		s.Scaling, s.Canary = rollout.Surge, nil
		s.BlueGreen = &rollout.BlueGreen{ActiveService: "web", PreviewService: "web-preview", ScaleDownDelaySeconds: 30,
			AbortScaleDownDelaySeconds: 30}
	}
	back := func(source string) func(*Input) {
		return func(in *Input) {
			in.State.Phase, in.State.Source, in.State.Rollback = rollout.Aborting, source, &rollout.Rollback{To: commitID(0)}
		}
	}
	promoting := func(in *Input) { in.State.Phase = rollout.Promoting }
	old, fresh := commitID(0), commitID(1) // the pod hashes of the ReplicaSets in these tests
	cases := map[string]struct {
		reason     string
		spec       func(*rollout.Spec)
		step       int
		old, fresh int
		change     func(*Input)
		want       [2]string // main, side
	}{
		"CanaryStarts": {"pinned before the new pods exist", canary, 0, 10, -1, nil, [2]string{old, old}},
		"Canary":       {"each its own", canary, 0, 10, 2, nil, [2]string{old, fresh}},
		"CanaryGoes": {"no pods that the controller is about to take", func(s *rollout.Spec) {
			canary(s)
			s.Canary.Traffic = &rollout.Traffic{MaxWeight: 100, Routers: []rollout.Router{httpRoute("web")}}
		}, 0, 10, 2, func(in *Input) {
			live := in.Observed.Workloads[web]
			live.Hash, live.Synced = live.Revisions[0].Hash, false
			in.Observed.Workloads[web] = live
		}, [2]string{old, old}},
		"CanaryOldGone":     {"all of stable died: the other pods serve", canary, 0, 0, 2, nil, [2]string{"", fresh}},
		"CanaryPromoting":   {"all pods serve", canary, 3, 8, 5, promoting, [2]string{"", fresh}},
		"CanaryAbort":       {"back at once", canary, 0, 10, 2, back(fresh), [2]string{old, old}},
		"CanaryAbortBroken": {"even to few", canary, 0, 1, 2, back(fresh), [2]string{old, old}},
		"PromotedAbort":     {"not to pods that may be on their way out", canary, 3, 10, 5, back(old), [2]string{"", old}},
		"InPlaceAll":        {"at 100 % none of stable is left", inPlace, 3, 3, 8, nil, [2]string{"", fresh}},
		"InPlaceAllAbort":   {"not before the stable template is back", inPlace, 3, 10, 0, back(old), [2]string{"", old}},
		"Preview":           {"users stay, testers see the new one", blueGreen, 0, 10, 10, nil, [2]string{old, fresh}},
		"PreviewOldGone":    {"an unapproved version gets no users", blueGreen, 0, 0, 10, nil, [2]string{old, fresh}},
		"PreviewByHand": {"a version set by hand serves until stable does", blueGreen, 0, 0, -1, func(in *Input) {
			live := in.Observed.Workloads[web]
			byHand := live.Revisions[0]
			byHand.Pin, byHand.Desired, byHand.Pods, byHand.ReadySince = rollout.PodHash("by-hand"), 3, 3, []time.Time{noon, noon, noon}
			live.Revisions[0].Current = true
			live.Revisions = append(live.Revisions, byHand)
			in.Observed.Workloads[web] = live
		}, [2]string{"", old}},
		"Switched":          {"one change of a selector", blueGreen, 2, 10, 10, nil, [2]string{fresh, fresh}},
		"SwitchedNoPods":    {"a switch that a crash undid", blueGreen, 2, 10, 0, nil, [2]string{"", fresh}},
		"SwitchedPromoting": {"and it stays so while the old set goes", blueGreen, 4, 5, 10, promoting, [2]string{fresh, fresh}},
		"SwitchedAbort":     {"back to a whole set; the preview stays until the drain", blueGreen, 3, 10, 10, back(fresh), [2]string{old, fresh}},
		"SwitchedAbortFew":  {"not to half of one", blueGreen, 3, 5, 10, back(fresh), [2]string{"", fresh}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := oneWeb(tc.spec)
			h.push(version("v2"))
			sets := []rollout.Revision{set(h, old, tc.old, tc.old)}
			if tc.fresh >= 0 {
				sets = append(sets, set(h, fresh, tc.fresh, tc.fresh))
			}
			in := inFlight(h, tc.step, sets...)
			if tc.change != nil {
				tc.change(&in)
			}
			pins := routes.Pins(in.State, viewOf(in, h))
			spec, _ := h.at(fresh).Spec(web)
			main, side := plan.Compile(spec).Services(rollout.State{})
			ref := func(name string) rollout.Ref { return rollout.Ref{Kind: "Service", Namespace: "shop", Name: name} }
			compare.CheckNamed(t, tc.reason, tc.want, [2]string{pins[ref(main)].Value, pins[ref(side)].Value})
		})
	}
}

func TestInventoryAndPrunable(t *testing.T) {
	ref := func(name string) rollout.Ref { return rollout.Ref{Kind: "ConfigMap", Namespace: "shop", Name: name} }
	object := func(name string) rollout.Object {
		return rollout.Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "shop"}}
	}
	s := rollout.State{Inventory: []rollout.Ref{ref("b"), ref("old")}}
	desired := []rollout.Object{object("c"), object("b"), object("a")}
	compare.CheckNamed(t, "inventory", []rollout.Ref{ref("a"), ref("b"), ref("c"), ref("old")}, Inventory(s, desired))
	compare.CheckNamed(t, "prunable", []rollout.Ref{ref("old")}, Prunable(s, desired))
	s.Release = &rollout.Release{}
	if got := Prunable(s, desired); len(got) > 0 {
		t.Errorf("%v would be pruned while a release is in flight", got)
	}
	hpa := rollout.Ref{Group: "autoscaling", Kind: "HorizontalPodAutoscaler", Namespace: "shop", Name: "web"}
	s.Inventory = append(s.Inventory, hpa)
	compare.CheckNamed(t, "an autoscaler that left Git in flight", []rollout.Ref{hpa}, Prunable(s, desired))
	s.Release, s.Held = nil, &rollout.Held{}
	if got := Prunable(s, desired); len(got) > 0 {
		t.Errorf("%v would be pruned although Git cannot be understood", got)
	}
}

func TestAbortDelay(t *testing.T) {
	canary := func(name string, scaling rollout.Scaling, service string, seconds int) rollout.Spec {
		return rollout.Spec{
			Workload: rollout.Workload{Namespace: "shop", Name: name}, Scaling: scaling,
			Canary: &rollout.Canary{StableService: service, AbortScaleDownDelaySeconds: seconds},
		}
	}
	blueGreen := rollout.Spec{Workload: web, Scaling: rollout.Surge, BlueGreen: &rollout.BlueGreen{AbortScaleDownDelaySeconds: 20}}
	cases := map[string]struct {
		reason string
		specs  []rollout.Spec
		want   time.Duration
	}{
		"None":      {"nothing known: at once", nil, 0},
		"Surge":     {"routes first, pods later", []rollout.Spec{canary("web", rollout.Surge, "web", 30)}, 30 * time.Second},
		"BlueGreen": {"the preview stays for a while", []rollout.Spec{blueGreen}, 20 * time.Second},
		"Longest":   {"of several the longest", []rollout.Spec{canary("web", rollout.Surge, "web", 10), blueGreen}, 20 * time.Second},
		"InPlace":   {"stable needs their room", []rollout.Spec{blueGreen, canary("web", rollout.InPlace, "web", 30)}, 0},
		"Shared":    {"pods that share stable's Service would go on serving", []rollout.Spec{blueGreen, canary("web", rollout.Surge, "", 30)}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := Input{Source: &rollout.Render{Specs: tc.specs}, State: rollout.State{Release: &rollout.Release{Hash: "x"}}}
			if got := abortDelay(in); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	h := oneWeb(func(s *rollout.Spec) { s.Scaling, s.Canary.StableService = rollout.Surge, "web" })
	h.push(version("v2"))
	in := inFlight(h, 1, set(h, commitID(0), 10, 10), set(h, commitID(1), 2, 2))
	all := Explain(in)
	if len(all) != 1 {
		t.Fatalf("%d explanations, want 1", len(all))
	}
	e := all[0]
	type line struct {
		Strategy             string
		Step, Weight, Real   int
		Replicas, Ready      int
		Roles                []string
		Steps                int
		WaitsForAPromotion   bool
		GateStep             int
		GateShut, GateClosed bool
	}
	got := line{Strategy: string(e.Strategy), Step: e.Step, Weight: e.Weight, Real: e.Real, Replicas: e.Replicas,
		Ready: e.Ready, Steps: len(e.Steps), WaitsForAPromotion: e.Waiting != ""}
	for _, r := range e.Revisions {
		got.Roles = append(got.Roles, string(r.Role))
	}
	got.GateStep, got.GateShut = Gate(in)
	in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Promote, Through: "2"}
	_, shut := Gate(in)
	got.GateClosed = shut
	want := line{
		Strategy: "canary", Step: 1, Weight: 20, Real: 16, Replicas: 10, Ready: 12, Roles: []string{"stable", "canary"},
		Steps:              3,
		WaitsForAPromotion: true, GateStep: 1, GateShut: true,
	}
	compare.Check(t, want, got)
	if got := Explain(Input{}); got != nil {
		t.Errorf("an app without a render is explained as %v", got)
	}
}

// TestExplainUnseen checks that no reason needs the cluster when it was not read.
func TestExplainUnseen(t *testing.T) {
	h := oneWeb(func(s *rollout.Spec) {
		c := *s.Canary
		hour := time.Hour
		c.Steps = []rollout.Step{{SetWeight: new(20)}, {Pause: &rollout.Pause{}}, {Pause: &rollout.Pause{Duration: &hour}}, {SetWeight: new(60)}}
		s.Canary = &c
	})
	h.push(version("v2"))
	for step, want := range []string{"", "promotion", "", ""} {
		in := inFlight(h, step)
		in.Observed, in.State.Progress[0].Entered = rollout.Observed{}, in.Now
		e := Explain(in)[0]
		if !strings.Contains(e.Waiting, want) || want == "" && step != 2 && e.Waiting != "" || strings.Contains(e.Waiting, "pod") {
			t.Errorf("step %d waits for %q, want %q", step, e.Waiting, want)
		}
		if timed := step == 2; timed != e.Due.Equal(in.Now.Add(time.Hour)) {
			t.Errorf("step %d is due at %s", step, e.Due)
		}
	}
}

// TestExplainBlueGreen checks that a preview has no users, with any number of pods, and all users after the switch.
func TestExplainBlueGreen(t *testing.T) {
	h := oneWeb(func(s *rollout.Spec) {
		s.Scaling, s.Canary = rollout.Surge, nil
		s.BlueGreen = &rollout.BlueGreen{ActiveService: "web", ScaleDownDelaySeconds: 30}
	})
	h.push(version("v2"))
	for step, want := range []int{0, 0, 100, 100} {
		in := inFlight(h, step, set(h, commitID(0), 10, 10), set(h, commitID(1), 10, 10))
		in.State.Progress[0].Weight = plan.Compile(h.at(commitID(1)).Specs[0]).Stages[step].Weight
		if e := Explain(in)[0]; e.Real != want || e.Weight != want || !e.Routed {
			t.Errorf("step %d: %d%%, asked for %d%%, want %d%%", step, e.Real, e.Weight, want)
		}
	}
}

// TestExplainRevisions checks the shown ReplicaSets of a workload, and the shares of requests with a router.
func TestExplainRevisions(t *testing.T) {
	h := oneWeb(func(s *rollout.Spec) { s.Scaling = rollout.Surge })
	h.push(version("v2"))
	empty, members := pods(0, 0), pods(0, 0)
	empty.Name, members.Name = "web-empty", "web-members"
	starting := set(h, commitID(1), 0, 0)
	starting.Current = true
	members.Members = []rollout.Pod{{}}
	going := pods(0, 0)
	going.Name, going.Pods = "web-going", 1
	coming := pods(1, 0)
	coming.Name, coming.Pods = "web-coming", 0
	in := inFlight(h, 1, set(h, commitID(0), 10, 8), starting, empty, members, going, coming)
	e := Explain(in)[0]
	var got []string
	for _, r := range e.Revisions {
		got = append(got, r.Name+" "+string(r.Role))
	}
	want := []string{"web-" + commitID(0) + " stable", "web-" + commitID(1) + " canary", "web-members ", "web-going ", "web-coming "}
	if diff := compare.Diff(want, got); diff != "" || e.Ready != 8 || e.Real != 0 || e.Routed {
		t.Errorf("%d ready, %d %% (-want +got):\n%s", e.Ready, e.Real, diff)
	}
	in.Source = nil // after a restart, with a known head
	if all := Explain(in); len(all) != 1 {
		t.Errorf("without the commit that runs there are %d", len(all))
	}
	in.State.Release, in.State.Phase = nil, rollout.Healthy
	if e := Explain(in)[0]; e.Step != len(e.Steps) || e.Waiting != "" || e.Weight != 0 {
		t.Errorf("at rest it is %+v", e)
	}
	// A rollback waits at no step.
	_, back := atStep(nil, 1)
	back.State.Phase = rollout.Aborting
	if e := Explain(back)[0]; e.Step != 1 || e.Waiting != "" || e.Weight != 0 {
		t.Errorf("rolling back it is %+v", e)
	}

	// The steps come from the app's current commit until it follows another one.
	h = oneWeb(nil)
	h.push(func(s *source) {
		c := *s.workloads[0].spec.Canary
		c.Steps = c.Steps[:1]
		s.workloads[0].spec.Canary = &c
	})
	in = world(h, set(h, commitID(0), 7, 7))
	if e := Explain(in)[0]; len(e.Steps) != 3 {
		t.Errorf("before it follows Git it has %d steps", len(e.Steps))
	}
	in.State.Source = commitID(1)
	if e := Explain(in)[0]; len(e.Steps) != 1 {
		t.Errorf("at the head it has %d steps", len(e.Steps))
	}
	in.Head.Render = nil
	if e := Explain(in)[0]; len(e.Steps) != 3 {
		t.Errorf("while Git cannot be read it has %d steps", len(e.Steps))
	}

	h = oneWeb(nil)
	h.push(version("v2"))
	if e := Explain(inFlight(h, 1, set(h, commitID(0), 4, 4), set(h, commitID(1), 3, 3)))[0]; e.Real != 42 {
		t.Errorf("3 of 7 pods are %d %%", e.Real)
	}
	if e := Explain(inFlight(h, 1, set(h, commitID(0), 1, 0), set(h, commitID(1), 1, 1)))[0]; e.Real != 100 {
		t.Errorf("the only pod is %d %%", e.Real)
	}

	in = routed()
	in.State.Progress[0].Routed = &rollout.Routing{Weight: 20}
	if e := Explain(in)[0]; !e.Routed || e.Full != 100 {
		t.Errorf("of a router it is %+v", e)
	}
}

// TestEmptied checks that an empty file does not delete all objects of an app.
func TestEmptied(t *testing.T) {
	full := &rollout.Render{Objects: []rollout.Object{{}}}
	for name, c := range map[string]struct {
		r   *rollout.Render
		has int
		bad bool
	}{
		"Emptied": {&rollout.Render{}, 1, true}, "Empty": {&rollout.Render{}, 0, false}, "Full": {full, 1, false}, "Unknown": {nil, 1, false},
	} {
		if err := Emptied(c.r, c.has); (err != nil) != c.bad {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken, refused := errors.New("broken"), errors.New("refused")
	in := Input{Head: Head{Render: full}, Answers: Answers{Accepted: map[string]error{"c1": refused}}}
	if err := in.HeadErr(); err != refused {
		t.Errorf("the server refuses it: %v", err)
	}
	if in.Head.Err = broken; in.HeadErr() != broken {
		t.Errorf("it cannot be read: %v", in.HeadErr())
	}
	in = Input{Head: Head{Render: &rollout.Render{}}, State: rollout.State{Inventory: []rollout.Ref{{}}}}
	if in.HeadErr() == nil {
		t.Error("it has lost all of its objects")
	}
	in = Input{Answers: Answers{Accepted: map[string]error{"c1": nil}}}
	if err := in.HeadErr(); err != nil {
		t.Errorf("nothing is refused: %v", err)
	}
}
