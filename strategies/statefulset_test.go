package strategies

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gitrollout.dev/gitrollout/rollout"
)

var db = rollout.Workload{Kind: "StatefulSet", Namespace: testApp.Namespace, Name: "web"}

// ofSet is a canary of a StatefulSet, as render makes its spec.
func ofSet(steps ...rollout.Step) rollout.Spec {
	return rollout.Spec{Name: "web", Workload: db, Scaling: rollout.InPlace, Canary: &rollout.Canary{Steps: steps}}
}

// TestStatefulSetNumbers is the table of the documentation: how many pods of n a weight or a batch moves, and the
// partition that says so.
func TestStatefulSetNumbers(t *testing.T) {
	weight := func(w int) rollout.Step { return rollout.Step{SetWeight: &w} }
	batch := func(s rollout.CanaryScale) rollout.Step { return rollout.Step{SetCanaryScale: &s} }
	for name, tc := range map[string]struct {
		step rollout.Step
		want map[int]int // pods -> new ones
	}{
		"0 %":           {weight(0), map[int]int{1: 0, 3: 0, 10: 0}},
		"1 %":           {weight(1), map[int]int{1: 0, 2: 1, 3: 1, 10: 1, 200: 2}},
		"20 %":          {weight(20), map[int]int{1: 0, 3: 1, 5: 1, 10: 2}},
		"50 %":          {weight(50), map[int]int{1: 0, 2: 1, 3: 2, 5: 3, 10: 5}},
		"60 %":          {weight(60), map[int]int{1: 0, 147: 88}},
		"99 %":          {weight(99), map[int]int{1: 0, 2: 1, 3: 2, 10: 9}},
		"100 %":         {weight(100), map[int]int{1: 1, 3: 3, 10: 10}},
		"no pod":        {batch(rollout.CanaryScale{Replicas: new(0)}), map[int]int{1: 0, 3: 0}},
		"2 pods":        {batch(rollout.CanaryScale{Replicas: new(2)}), map[int]int{0: 0, 1: 0, 2: 1, 3: 2, 10: 2}},
		"a batch of 1%": {batch(rollout.CanaryScale{Weight: new(1)}), map[int]int{1: 0, 2: 1, 10: 1, 200: 2}},
		"99 % of pods":  {batch(rollout.CanaryScale{Weight: new(99)}), map[int]int{1: 0, 2: 1, 10: 9}},
		"all pods":      {batch(rollout.CanaryScale{Weight: new(100)}), map[int]int{1: 1, 10: 10}},
	} {
		p := compile(ofSet(tc.step))
		got := map[int]int{}
		for n := range tc.want {
			c := p.countsAt(0, n)
			if got[n] = c.canary; c.canary+c.stable != n {
				t.Errorf("%s of %d pods is %+v", name, n, c)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestDeploymentBatchesInPlace: absolute numbers and shares, with room for one pod more and without.
func TestDeploymentBatchesInPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		scale rollout.CanaryScale
		surge int
		n     int
		want  counts
	}{
		"2 of 10":               {rollout.CanaryScale{Replicas: new(2)}, 3, 10, counts{2, 8}},
		"all, one stable stays": {rollout.CanaryScale{Replicas: new(5)}, 0, 3, counts{2, 1}},
		"all, and one beside":   {rollout.CanaryScale{Replicas: new(5)}, 1, 3, counts{3, 1}},
		"one of one":            {rollout.CanaryScale{Replicas: new(1)}, 1, 1, counts{1, 1}},
		"33 % of 10, rounded up": {
			rollout.CanaryScale{Weight: new(33)}, 0, 10, counts{4, 6}},
		"100 %": {rollout.CanaryScale{Weight: new(100)}, 1, 10, counts{10, 0}},
	} {
		spec := rollout.Spec{Scaling: rollout.InPlace, MaxSurge: rollout.Amount{Value: tc.surge},
			Canary: &rollout.Canary{Steps: []rollout.Step{{SetCanaryScale: &tc.scale}}}}
		if got := compile(spec).countsAt(0, tc.n); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// setAt is a StatefulSet at its first step of 30 %, with so many pods of each version that are ready.
func setAt(t *testing.T, n, fresh, stable int) (Input, *history) {
	t.Helper()
	h := oneWeb(func(s *rollout.Spec) {
		*s = ofSet(rollout.Step{SetWeight: new(30)}, rollout.Step{Pause: &rollout.Pause{}})
	})
	h.push(version("v2"))
	in := world(h)
	in.State.Stable.Templates = h.at(commitID(0)).Staged()
	in.Observed = setOf(h, n, fresh, stable)
	one := in
	one.Observed = setOf(h, n, 0, n)
	d := Decide(one)
	if len(d.State.Progress) != 1 || d.State.Progress[0].Workload != db {
		t.Fatalf("a release begins as %s", dump(d.State))
	}
	in.State, in.Source, in.Answers = d.State, in.Head.Render, Answers{Healed: new(true)}
	return in, h
}

func setOf(h *history, n, fresh, stable int) rollout.Observed {
	of := func(commit string, ready int) rollout.Revision {
		r := pods(ready, ready)
		r.Name, r.Pin = "web-"+commit, rollout.Pin{Label: rollout.LabelRevision, Value: "web-" + commit}
		return r
	}
	old, next := of(commitID(0), stable), of(commitID(1), fresh)
	old.Base, next.Current, next.Hash = true, true, h.at(commitID(1)).Templates[db] // the base was adopted: it says nothing
	live := rollout.ObservedWorkload{Replicas: n, Hash: next.Hash, Synced: true, Revisions: []rollout.Revision{next, old}}
	if fresh == 0 {
		old.Current, old.Hash = true, h.at(commitID(0)).Templates[db]
		live.Hash, live.Revisions, live.Complete = old.Hash, []rollout.Revision{old}, true
	}
	return rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{db: live}}
}

// TestStatefulSetSurplus: pods that a scale-up made of the new version are more than were asked for, and no reason to
// wait, nor to ask for more of them.
func TestStatefulSetSurplus(t *testing.T) {
	for name, tc := range map[string]struct {
		n, fresh  int
		done      bool
		partition int64
	}{
		"none yet":            {10, 1, false, 7},
		"as many":             {10, 3, true, 7},
		"more, by a scale-up": {10, 8, true, 7},
	} {
		in, h := setAt(t, tc.n, tc.fresh, tc.n-tc.fresh)
		d := Decide(in)
		if moved := d.State.Progress[0].Step > 0; moved != tc.done {
			t.Errorf("%s: the step is done: %t; it waits for %s", name, moved, d.Waiting)
		}
		for _, o := range mustDesired(in.State, View{Now: in.Now, Source: in.Source, Stable: h.at(commitID(0)), Observed: in.Observed}) {
			if o.Ref() != db.Ref() {
				continue
			}
			got := o.Map("spec", "updateStrategy", "rollingUpdate")["partition"]
			if got != tc.partition || o.Map("spec")["minReadySeconds"] == int64(holdMinReadySeconds) {
				t.Errorf("%s: the partition is %v of %v, want %d", name, got, o.Map("spec"), tc.partition)
			}
		}
	}
}

// TestStatefulSetIsStableWithItsBase: a release is not over before pods are made of its version alone, or those of the
// next one would be beside two others.
func TestStatefulSetIsStableWithItsBase(t *testing.T) {
	in, _ := setAt(t, 3, 3, 0)
	in.State.Phase, in.State.Progress[0].Step = rollout.Promoting, in.State.Progress[0].Of
	if d := Decide(in); d.State.Phase == rollout.Healthy {
		t.Error("it is healthy while the old version is still the base")
	}
	live := in.Observed.Workloads[db]
	live.Revisions[0].Base, live.Revisions[1].Base = true, false
	if d := Decide(in); d.State.Phase != rollout.Healthy {
		t.Errorf("with the new version as its base it is %s and waits for %s", d.State.Phase, d.Waiting)
	}
	live.Revisions[0].ReadySince = live.Revisions[0].ReadySince[:2]
	if d := Decide(in); d.State.Phase == rollout.Healthy {
		t.Error("it is healthy with 2 of 3 pods")
	}
}

func TestEvictions(t *testing.T) {
	pod := func(name string, ready, terminating bool) rollout.Pod {
		return rollout.Pod{Name: name, UID: "uid-of-" + name, Ready: ready, Terminating: terminating}
	}
	for name, tc := range map[string]struct {
		change func(s *rollout.State, live *rollout.ObservedWorkload)
		left   []rollout.Pod
		want   string // the pod's name, "" for none
	}{
		"the highest, by its number": {nil, []rollout.Pod{pod("web-9", false, false), pod("web-10", false, false)}, "web-10"},
		"none that is ready":         {nil, []rollout.Pod{pod("web-9", true, false)}, ""},
		"one at a time":              {nil, []rollout.Pod{pod("web-9", false, false), pod("web-10", false, true)}, ""},
		"none before the controller has seen stable": {func(_ *rollout.State, live *rollout.ObservedWorkload) { live.Synced = false },
			[]rollout.Pod{pod("web-9", false, false)}, ""},
		"none while the new template is there": {func(_ *rollout.State, live *rollout.ObservedWorkload) { live.Hash = "h1-other" },
			[]rollout.Pod{pod("web-9", false, false)}, ""},
		"none of a release that goes on": {func(s *rollout.State, _ *rollout.ObservedWorkload) { s.Phase = rollout.Progressing },
			[]rollout.Pod{pod("web-9", false, false)}, ""},
		"none before the template may go": {func(s *rollout.State, _ *rollout.ObservedWorkload) { s.Source = "another" },
			[]rollout.Pod{pod("web-9", false, false)}, ""},
	} {
		in, h := setAt(t, 11, 2, 9)
		s := in.State
		s.Phase, s.Source = rollout.Aborting, commitID(0)
		s.Retreat = &rollout.Retreat{To: commitID(0), Drain: in.Now.Add(-time.Second)}
		live := in.Observed.Workloads[db]
		live.Hash = h.at(commitID(0)).Templates[db]
		stuck, stable := &live.Revisions[0], &live.Revisions[1]
		stuck.Current, stuck.Members = false, tc.left
		stable.Current, stable.Members = true, []rollout.Pod{pod("web-0", false, false)} // a stable pod that is not ready is not ours
		if tc.change != nil {
			tc.change(&s, &live)
		}
		got := ""
		for _, e := range Evictions(s, rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{db: live}}) {
			if got += e.Pod.Name; e.Namespace != db.Namespace || e.Pod.UID != "uid-of-"+e.Pod.Name {
				t.Errorf("%s: evicts %+v", name, e)
			}
		}
		if got != tc.want {
			t.Errorf("%s: evicts %q, want %q", name, got, tc.want)
		}
	}
}

// TestDeploymentsAreNotEvictedFrom: their controller replaces what never becomes ready.
func TestDeploymentsAreNotEvictedFrom(t *testing.T) {
	web := rollout.Workload{Namespace: "shop", Name: "web"}
	s := rollout.State{Phase: rollout.Aborting, Source: "a", Retreat: &rollout.Retreat{To: "a"},
		Stable:  &rollout.Release{Templates: map[rollout.Workload]rollout.Hash{web: "h1-a"}},
		Release: &rollout.Release{Templates: map[rollout.Workload]rollout.Hash{web: "h1-b"}}}
	o := rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{web: {Hash: "h1-a", Synced: true,
		Revisions: []rollout.Revision{{Hash: "h1-b", Pods: 1, Members: []rollout.Pod{{Name: "web-1"}}}}}}}
	if got := Evictions(s, o); len(got) > 0 {
		t.Errorf("evicts %s", fmt.Sprint(got))
	}
}
