package strategies_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/routes"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// shape holds the fields that Desired writes into a Deployment.
type shape struct {
	Version  any
	Commit   string
	Surge    any
	Unavail  any
	Deadline any
	MinReady any
	Replicas any
	Held     bool // the object has a status annotation, which names the step
}

func shapeOf(o rollout.Object) shape {
	rolling, version := o.Map("spec", "strategy", "rollingUpdate"), o.Map("spec", "template")["version"]
	return shape{
		Version: version, Commit: o.Annotation(rollout.AnnotationCommit), Surge: rolling["maxSurge"], Unavail: rolling["maxUnavailable"],
		Deadline: o.Map("spec")["progressDeadlineSeconds"], MinReady: o.Map("spec")["minReadySeconds"],
		Replicas: o.Map("spec")["replicas"], Held: o.Annotation(rollout.AnnotationStatus) != "",
	}
}

// byHand returns a ReplicaSet with n ready pods, made by kubectl set image. It has the given ReplicaSet's hash annotation.
func byHand(of rollout.Revision, n int) rollout.Revision {
	r := pods(n, n)
	r.Name, r.Hash, r.Pin = of.Name, of.Hash, rollout.PodHash("by-hand")
	return r
}

func viewOf(in strategies.Input, h *history) workloads.View {
	v := workloads.View{Now: in.Now, Source: h.at(in.State.Source), Observed: in.Observed}
	if strategies.NeedsStable(in.State, v) {
		v.Stable = h.at(in.State.Stable.Commit)
	}
	return v
}

func TestDesiredDeployment(t *testing.T) {
	user := func(version, commit string) shape {
		return shape{Version: version, Commit: commit, Surge: "25%", Unavail: "25%", MinReady: int64(0), Replicas: int64(10)}
	}
	hold := func(surge, unavailable string) shape {
		return shape{
			Version: "v2", Commit: commitID(1), Surge: surge, Unavail: unavailable, Deadline: int64(workloads.HoldProgressDeadline),
			MinReady: int64(workloads.HoldMinReadySeconds), Replicas: int64(10), Held: true,
		}
	}
	back := hold("20%", "80%")
	back.Version, back.Commit = "v1", commitID(0)
	aborting := func(in *strategies.Input) {
		in.State.Phase, in.State.Rollback = rollout.Aborting, &rollout.Rollback{To: commitID(0)}
	}
	blueGreen := func(s *rollout.Spec) {
		s.Scaling, s.Canary = rollout.Surge, nil
		s.BlueGreen = &rollout.BlueGreen{ActiveService: "web", ScaleDownDelaySeconds: 30}
	}
	kept := func(replicas, ready int) func(*strategies.Input) { // v2 is stable, and Kubernetes removes the pods of v1
		return func(in *strategies.Input) {
			in.State.Phase, in.State.Draining = rollout.Promoting, &rollout.Draining{}
			changeLive(in, web, func(live *rollout.ObservedWorkload) {
				live.Replicas, live.Revisions[1].ReadySince = replicas, live.Revisions[1].ReadySince[:ready]
			})
		}
	}
	half := hold("50%", "50%")
	half.Replicas = int64(2)
	surge := func(s *rollout.Spec) { s.Scaling, s.Canary.StableService = rollout.Surge, "web" }
	cases := map[string]struct {
		reason string
		spec   func(*rollout.Spec)
		step   int
		old    int
		fresh  int
		change func(*strategies.Input)
		want   shape
	}{
		"FirstStep": {"template and hold in one", nil, 0, 10, 0, nil, hold("0%", "20%")},
		"Surge":     {"stable stays whole", surge, 0, 10, 0, nil, hold("20%", "0%")},
		"Promoting": {"the user's own fields", nil, 3, 8, 2, func(in *strategies.Input) { in.State.Phase = rollout.Promoting },
			user("v2", commitID(1))},
		"NoCanaryYet": {"a step without canary pods is still stable's", func(s *rollout.Spec) { s.Canary.Steps[0].SetWeight = new(0) },
			0, 10, 0, nil, user("v1", commitID(0))},
		"UnknownStable": {"until stable's ReplicaSet is known nothing can be held", nil, 0, 10, 0,
			withLive(func(live *rollout.ObservedWorkload) { live.Revisions = live.Revisions[1:] }), user("v1", commitID(0))},
		"FromZero": {"a workload that comes back from no pods comes back as stable", surge, 0, 0, 0, nil, user("v1", commitID(0))},
		"Strangers": {"pods that cannot be told from stable's stay available: the stable template alone", surge, 0, 8, 5,
			withLive(func(live *rollout.ObservedWorkload) {
				live.Revisions, live.Synced, live.Available = append(live.Revisions, byHand(live.Revisions[0], 2)), true, 2
			}), user("v1", commitID(0))},
		"StrangersLeft": {"a version is itself again when pods of its edited template are gone", surge, 0, 8, 5,
			withLive(func(live *rollout.ObservedWorkload) {
				live.Revisions, live.Synced = append(live.Revisions, byHand(live.Revisions[1], 0)), true
				live.Revisions[1].Number, live.Revisions[2].Created = 4, noon
			}), back},
		"StrangersLast": {"of an edited template that came last nothing is known", surge, 0, 8, 0,
			withLive(func(live *rollout.ObservedWorkload) {
				live.Revisions, live.Synced = append(live.Revisions, byHand(live.Revisions[1], 5)), true
				live.Revisions[2].Number, live.Revisions[2].Created = 4, noon
			}), user("v1", commitID(0))},
		"PromotingScaled": {"a version that never becomes ready does not prevent another number of pods", nil, 3, 20, 5,
			func(in *strategies.Input) {
				in.State.Phase = rollout.Promoting
				changeLive(in, web, func(live *rollout.ObservedWorkload) { live.Replicas = 20 })
			}, user("v2", commitID(1))},
		"SwitchedScaled": {"old pods go first: a share of fewer pods could take all pods that serve users", blueGreen, 4, 5, 20, kept(20, 20),
			shape{Version: "v2", Commit: commitID(1), Surge: "25%", Unavail: "25%", MinReady: int64(0), Replicas: int64(20)}},
		"SwitchedScaledLate": {"fewer pods, once no old pods are left", blueGreen, 4, 0, 20, kept(20, 20), user("v2", commitID(1))},
		"SwitchedScaledBroken": {"a pod that is not ready does not prevent another number of pods", blueGreen, 4, 5, 20, kept(20, 19),
			user("v2", commitID(1))},
		"StrangersOfTheNew": {"older pods would go in the place of pods that cannot be told from the new version's", surge, 0, 10, 0,
			withLive(func(live *rollout.ObservedWorkload) {
				live.Revisions, live.Synced = append(live.Revisions, byHand(live.Revisions[1], 2)), true
			}), user("v1", commitID(0))},
		"StrangersSwitched": {"users on the new version stay", func(s *rollout.Spec) {
			surge(s)
			s.Canary.ScaleDownDelaySeconds = 30
		}, 5, 10, 10, withLive(func(live *rollout.ObservedWorkload) {
			live.Revisions, live.Synced = append(live.Revisions, byHand(live.Revisions[0], 2)), true
		}), hold("100%", "0%")},
		"TooManyNew": {"a version that never becomes ready does not prevent taking pods back", func(s *rollout.Spec) {
			surge(s)
			s.Replicas = new(2)
		}, 0, 2, 2, withLive(func(live *rollout.ObservedWorkload) {
			live.Revisions[1].ReadySince = live.Revisions[1].ReadySince[:1]
			live.Replicas, live.Synced, live.Available = 2, true, 2
		}), half},
		"Retreat": {"the stable template and the user's fields in one", nil, 0, 8, 2, func(in *strategies.Input) {
			in.State.Phase, in.State.Source, in.State.Rollback = rollout.Aborting, commitID(0), &rollout.Rollback{To: commitID(0)}
		}, user("v1", commitID(0))},
		"RetreatDelayed": {"until the canary's pods may go they are held", surge, 0, 10, 2, func(in *strategies.Input) {
			aborting(in)
		}, hold("20%", "0%")},
		"RetreatOfAStepNotApplied": {"a rollback starts no pods of a step that is recorded and was never applied", surge, 0, 10, 0,
			func(in *strategies.Input) {
				aborting(in)
				changeLive(in, web, func(live *rollout.ObservedWorkload) { live.Hash = in.State.StableHash(web) })
			}, user("v1", commitID(0))},
		"RetreatOfAStepAppliedInPart": {"a rollback keeps the new pods, and starts no others", surge, 0, 10, 1, aborting, hold("10%", "0%")},
		"RetreatBesideAnother": {"another process is removing the new pods: the object stays", surge, 0, 10, 2, func(in *strategies.Input) {
			aborting(in)
			changeLive(in, web, func(live *rollout.ObservedWorkload) { live.Hash = in.State.StableHash(web) })
		}, shape{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := twoVersions(tc.spec)
			in := inFlight(h, tc.step, set(h, commitID(0), tc.old, tc.old), set(h, commitID(1), tc.fresh, tc.fresh))
			if tc.change != nil {
				tc.change(&in)
			}
			before := dump(viewOf(in, h))
			compare.CheckNamed(t, tc.reason, tc.want, shapeOf(desiredOf(in, h, web)))
			if dump(viewOf(in, h)) != before {
				t.Error("the renders were changed")
			}
		})
	}
}

// TestRollbackStartsNoPlainWorkload checks a rollback that keeps new pods while proxies may send them requests. A workload without a
// Rollout document gets the release's template only if the cluster has this template already.
func TestRollbackStartsNoPlainWorkload(t *testing.T) {
	h := oneWeb(nil)
	plain := staged{spec: h.commits[0].workloads[0].spec, version: "v1", plain: true}
	plain.spec.Workload.Name = "api"
	api := plain.spec.Workload
	h.commits[0].workloads = append(h.commits[0].workloads, plain)
	h.push(func(x *source) { x.workloads[0].version, x.workloads[1].version = "v2", "v2" })
	in := inFlight(h, 0, set(h, commitID(0), 10, 10), set(h, commitID(1), 2, 2))
	in.State.Phase, in.State.Rollback = rollout.Aborting, &rollout.Rollback{To: commitID(0)}
	for hash, want := range map[rollout.Hash]any{h.at(commitID(0)).Templates[api]: nil, h.at(commitID(1)).Templates[api]: "v2", "": nil} {
		in.Observed.Workloads[api] = rollout.ObservedWorkload{Hash: hash}
		compare.CheckNamed(t, string(hash), want, desiredOf(in, h, api).Map("spec", "template")["version"])
	}
}

// TestStableTemplateHasTheNewestReplicas checks a step without new pods, which applies the stable template. New replicas in Git apply
// immediately. If Git has no replicas any more, because an autoscaler sets them, the object has no replicas field either.
func TestStableTemplateHasTheNewestReplicas(t *testing.T) {
	for want, replicas := range map[any]*int{int64(20): new(20), nil: nil} {
		h := oneWeb(func(s *rollout.Spec) { s.Canary.Steps[0].SetWeight = new(0) })
		h.push(func(x *source) { x.workloads[0].version, x.workloads[0].spec.Replicas = "v2", replicas })
		in := inFlight(h, 0, set(h, commitID(0), 10, 10))
		if got := shapeOf(desiredOf(in, h, web)); got.Version != "v1" || got.Replicas != want {
			t.Errorf("%s has %v replicas, want v1 and %v", got.Version, got.Replicas, want)
		}
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
	back := func(source string) func(*strategies.Input) {
		return func(in *strategies.Input) {
			in.State.Phase, in.State.Source, in.State.Rollback = rollout.Aborting, source, &rollout.Rollback{To: commitID(0)}
		}
	}
	promoting := func(in *strategies.Input) { in.State.Phase = rollout.Promoting }
	old, fresh := commitID(0), commitID(1) // the pod hashes of the ReplicaSets in these tests
	cases := map[string]struct {
		reason     string
		spec       func(*rollout.Spec)
		step       int
		old, fresh int
		change     func(*strategies.Input)
		want       [2]string // the pod hashes that the main and the side Service select
	}{
		"CanaryStarts": {"pinned before the new pods exist", canary, 0, 10, -1, nil, [2]string{old, old}},
		"Canary":       {"each its own", canary, 0, 10, 2, nil, [2]string{old, fresh}},
		"CanaryGoes": {"no pods that the controller is about to take", func(s *rollout.Spec) {
			canary(s)
			s.Canary.Traffic = &rollout.Traffic{MaxWeight: 100, Routers: []rollout.Router{httpRoute("web")}}
		}, 0, 10, 2, withLive(func(live *rollout.ObservedWorkload) {
			live.Hash, live.Synced = live.Revisions[0].Hash, false
		}), [2]string{old, old}},
		"CanaryShrinks": {"no pods that the controller may still stop for the step before", canary, 0, 10, 10,
			withLive(func(live *rollout.ObservedWorkload) { live.Synced = false }), [2]string{"", fresh}},
		"CanaryGrows": {"the step before keeps all stable pods", canary, 0, 10, 2,
			withLive(func(live *rollout.ObservedWorkload) { live.Synced, live.Surge = false, 2 }), [2]string{old, fresh}},
		"CanaryOldGone":     {"all of stable died: the other pods serve", canary, 0, 0, 2, nil, [2]string{"", fresh}},
		"CanaryPromoting":   {"all pods serve", canary, 3, 8, 5, promoting, [2]string{"", fresh}},
		"CanaryAbort":       {"back at once", canary, 0, 10, 2, back(fresh), [2]string{old, old}},
		"CanaryAbortBroken": {"even to few", canary, 0, 1, 2, back(fresh), [2]string{old, old}},
		"PromotedAbort":     {"not to pods that may be on their way out", canary, 3, 10, 5, back(old), [2]string{"", old}},
		"InPlaceAll":        {"at 100 % none of stable is left", inPlace, 3, 3, 8, nil, [2]string{"", fresh}},
		"InPlaceAllAbort":   {"not before the stable template is back", inPlace, 3, 10, 0, back(old), [2]string{"", old}},
		"Preview":           {"users stay, testers see the new one", blueGreen, 0, 10, 10, nil, [2]string{old, fresh}},
		"PreviewOldGone":    {"an unapproved version gets no users", blueGreen, 0, 0, 10, nil, [2]string{old, fresh}},
		"PreviewByHand": {"a version set by hand serves until stable does", blueGreen, 0, 0, -1,
			withLive(func(live *rollout.ObservedWorkload) {
				live.Revisions[0].Current = true
				live.Revisions = append(live.Revisions, byHand(live.Revisions[0], 3))
			}), [2]string{"", old}},
		"Switched":          {"one change of a selector", blueGreen, 2, 10, 10, nil, [2]string{fresh, fresh}},
		"SwitchedNoPods":    {"a switch that a crash undid", blueGreen, 2, 10, 0, nil, [2]string{"", fresh}},
		"SwitchedPromoting": {"and it stays so while the old set goes", blueGreen, 4, 5, 10, promoting, [2]string{fresh, fresh}},
		"SwitchedAbort":     {"back to a whole set; the preview stays until the drain", blueGreen, 3, 10, 10, back(fresh), [2]string{old, fresh}},
		"SwitchedAbortFew":  {"not to half of one", blueGreen, 3, 5, 10, back(fresh), [2]string{"", fresh}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := twoVersions(tc.spec)
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
			compare.CheckNamed(t, tc.reason, tc.want, [2]string{pins[serviceRef(main)].Value, pins[serviceRef(side)].Value})
		})
	}
}

func TestInventoryAndPrunable(t *testing.T) {
	config := func(name string) rollout.Object { return object("v1", "ConfigMap", name) }
	ref := func(name string) rollout.Ref { return config(name).Ref() }
	s := rollout.State{Inventory: []rollout.Ref{ref("b"), ref("old")}}
	desired := []rollout.Object{config("c"), config("b"), config("a")}
	compare.CheckNamed(t, "inventory", []rollout.Ref{ref("a"), ref("b"), ref("c"), ref("old")}, strategies.Inventory(s, desired))
	compare.CheckNamed(t, "prunable", []rollout.Ref{ref("old")}, strategies.Prunable(s, desired))
	s.Release = &rollout.Release{}
	if got := strategies.Prunable(s, desired); len(got) > 0 {
		t.Errorf("%v would be pruned while a release is in flight", got)
	}
	hpa := rollout.Ref{Group: "autoscaling", Kind: "HorizontalPodAutoscaler", Namespace: "shop", Name: "web"}
	s.Inventory = append(s.Inventory, hpa)
	compare.CheckNamed(t, "an autoscaler that left Git in flight", []rollout.Ref{hpa}, strategies.Prunable(s, desired))
	s.Release, s.Held = nil, &rollout.Held{}
	if got := strategies.Prunable(s, desired); len(got) > 0 {
		t.Errorf("%v would be pruned although Git cannot be understood", got)
	}
}

func TestExplain(t *testing.T) {
	h := twoVersions(func(s *rollout.Spec) { s.Scaling, s.Canary.StableService = rollout.Surge, "web" })
	in := inFlight(h, 1, set(h, commitID(0), 10, 10), set(h, commitID(1), 2, 2))
	all := strategies.Explain(in)
	if len(all) != 1 || len(all[0].Revisions) != 2 {
		t.Fatalf("the explanations are %+v, want one with two ReplicaSets", all)
	}
	e := all[0]
	type line struct {
		Strategy             plan.Strategy
		Step, Weight, Real   int
		Replicas, Ready      int
		Roles                [2]plan.Role
		Steps                int
		WaitsForAPromotion   bool
		GateStep             int
		GateShut, GateClosed bool
	}
	got := line{Strategy: e.Strategy, Step: e.Step, Weight: e.Weight, Real: e.Real, Replicas: e.Replicas, Ready: e.Ready,
		Roles: [2]plan.Role{e.Revisions[0].Role, e.Revisions[1].Role}, Steps: len(e.Steps), WaitsForAPromotion: e.Waiting != ""}
	got.GateStep, got.GateShut = strategies.Gate(in)
	in.Promotion = fileFor(in.State.Release.Hash, "2")
	_, got.GateClosed = strategies.Gate(in)
	compare.Check(t, line{Strategy: "canary", Step: 1, Weight: 20, Real: 16, Replicas: 10, Ready: 12, Roles: [2]plan.Role{"stable", "canary"},
		Steps: 3, WaitsForAPromotion: true, GateStep: 1, GateShut: true}, got)
	if got := strategies.Explain(strategies.Input{}); got != nil {
		t.Errorf("an app without a render is explained as %v", got)
	}
}

// TestExplainUnseen checks that, without an observation of the cluster, Explain returns only waits for a promotion or for a time.
func TestExplainUnseen(t *testing.T) {
	h := twoVersions(func(s *rollout.Spec) {
		s.Canary.Steps = []rollout.Step{weight(20), aPause, {Pause: &rollout.Pause{Duration: new(time.Hour)}}, weight(60)}
	})
	for step, want := range []string{"", "promotion", "", ""} {
		in := inFlight(h, step)
		in.Observed, in.State.Progress[0].Entered = rollout.Observed{}, in.Now
		e := strategies.Explain(in)[0]
		if !strings.Contains(e.Waiting, want) || want == "" && step != 2 && e.Waiting != "" || strings.Contains(e.Waiting, "pod") {
			t.Errorf("step %d waits for %q, want %q", step, e.Waiting, want)
		}
		if timed := step == 2; timed != e.Due.Equal(in.Now.Add(time.Hour)) {
			t.Errorf("step %d is due at %s", step, e.Due)
		}
	}
}

// TestExplainBlueGreen checks that the displayed share of users is 0 for a preview of any size, and 100 after the switch.
func TestExplainBlueGreen(t *testing.T) {
	h := twoVersions(func(s *rollout.Spec) {
		s.Scaling, s.Canary = rollout.Surge, nil
		s.BlueGreen = &rollout.BlueGreen{ActiveService: "web", ScaleDownDelaySeconds: 30}
	})
	for step, want := range []int{0, 0, 100, 100} {
		in := inFlight(h, step, set(h, commitID(0), 10, 10), set(h, commitID(1), 10, 10))
		in.State.Progress[0].Weight = plan.Compile(h.at(commitID(1)).Specs[0]).Stages[step].Weight
		if e := strategies.Explain(in)[0]; e.Real != want || e.Weight != want || !e.Routed {
			t.Errorf("step %d: %d%%, asked for %d%%, want %d%%", step, e.Real, e.Weight, want)
		}
	}
}

// TestExplainRevisions checks the displayed ReplicaSets of a workload, and the displayed shares of requests with a router.
func TestExplainRevisions(t *testing.T) {
	h := twoVersions(func(s *rollout.Spec) { s.Scaling = rollout.Surge })
	starting := set(h, commitID(1), 0, 0)
	starting.Current = true
	in := inFlight(h, 1, set(h, commitID(0), 10, 8), starting, rollout.Revision{Name: "web-empty"},
		rollout.Revision{Name: "web-members", Members: []rollout.Pod{{}}}, rollout.Revision{Name: "web-going", Pods: 1},
		rollout.Revision{Name: "web-coming", Desired: 1})
	e := strategies.Explain(in)[0]
	got := rollout.Mapped(e.Revisions, func(r strategies.ExplainedRevision) string { return r.Name + " " + string(r.Role) })
	want := []string{"web-" + commitID(0) + " stable", "web-" + commitID(1) + " canary", "web-members ", "web-going ", "web-coming "}
	compare.Check(t, want, got)
	if e.Ready != 8 || e.Real != 0 || e.Routed {
		t.Errorf("%d ready, %d %%, routed %t", e.Ready, e.Real, e.Routed)
	}
	in.Source = nil // as after a restart, before the source is read
	compare.CheckNamed(t, "workloads without the commit that runs", 1, len(strategies.Explain(in)))
	in.State.Release, in.State.Phase = nil, rollout.Healthy
	if e := strategies.Explain(in)[0]; e.Step != len(e.Steps) || e.Waiting != "" || e.Weight != 0 {
		t.Errorf("at rest it is %+v", e)
	}
	// During a rollback, Explain returns no wait.
	h, back := atStep(nil, 1)
	back.State.Phase = rollout.Aborting
	if e := strategies.Explain(back)[0]; e.Step != 1 || e.Waiting != "" || e.Weight != 0 {
		t.Errorf("rolling back it is %+v", e)
	}
	for want, serving := range map[int][2]rollout.Revision{
		42:  {set(h, commitID(0), 4, 4), set(h, commitID(1), 3, 3)},
		100: {set(h, commitID(0), 1, 0), set(h, commitID(1), 1, 1)},
	} {
		compare.CheckNamed(t, "percent", want, strategies.Explain(inFlight(h, 1, serving[:]...))[0].Real)
	}

	// Explain shows the steps of State.Source until the app applies another commit.
	h = oneWeb(nil)
	h.push(func(s *source) { s.workloads[0].editCanary(func(c *rollout.Canary) { c.Steps = c.Steps[:1] }) })
	in = world(h)
	compare.CheckNamed(t, "steps before it follows Git", 3, len(strategies.Explain(in)[0].Steps))
	in.State.Source = commitID(1)
	compare.CheckNamed(t, "steps at the head", 1, len(strategies.Explain(in)[0].Steps))
	in.Head.Render = nil
	compare.CheckNamed(t, "steps while Git cannot be read", 3, len(strategies.Explain(in)[0].Steps))

	in = routed()
	in.State.Progress[0].Routed = &rollout.Routing{Weight: 20}
	if e := strategies.Explain(in)[0]; !e.Routed || e.Full != 100 {
		t.Errorf("of a router it is %+v", e)
	}
}

// TestEmptied checks that a head without objects is an error if the app's record lists objects. It also checks which error HeadErr returns
// first.
func TestEmptied(t *testing.T) {
	full, empty := &rollout.Render{Objects: []rollout.Object{{}}}, &rollout.Render{}
	for name, c := range map[string]struct {
		r   *rollout.Render
		has int
		bad bool
	}{"Emptied": {empty, 1, true}, "Empty": {empty, 0, false}, "Full": {full, 1, false}, "Unknown": {nil, 1, false}} {
		if err := strategies.Emptied(c.r, c.has); (err != nil) != c.bad {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken, refused := errors.New("broken"), errors.New("refused")
	in := strategies.Input{Head: strategies.Head{Render: full}, Answers: strategies.Answers{Accepted: map[string]error{"c1": refused}}}
	if err := in.HeadErr(); err != refused {
		t.Errorf("the server refuses it: %v", err)
	}
	if in.Head.Err = broken; in.HeadErr() != broken {
		t.Errorf("it cannot be read: %v", in.HeadErr())
	}
	in = strategies.Input{Head: strategies.Head{Render: empty}, State: rollout.State{Inventory: []rollout.Ref{{}}}}
	if in.HeadErr() == nil {
		t.Error("it has lost all of its objects")
	}
	in = strategies.Input{Answers: strategies.Answers{Accepted: map[string]error{"c1": nil}}}
	if err := in.HeadErr(); err != nil {
		t.Errorf("nothing is refused: %v", err)
	}
}
