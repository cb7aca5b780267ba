package strategies

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// ofKruise returns a built-in kind.
func ofKruise(t *testing.T, apiVersion, kind string) *rollout.Partitioned {
	t.Helper()
	p, _ := rollout.FindPartitioned(nil, apiVersion, kind)
	if p == nil {
		t.Fatalf("there is no %s of %s", kind, apiVersion)
	}
	return p
}

// oldPods returns the number of pods that Kruise computes from a partition (v1.8, pkg/util/tools.go:
// CalculatePartitionReplicas).
func oldPods(t *testing.T, partition any, n int) int {
	t.Helper()
	var a rollout.Amount
	if err := a.ReadValue(partition); err != nil {
		t.Fatal(err)
	}
	old := a.RoundUp(n)
	if n > 1 && old == n && a.Percent && a.Value != 100 {
		old = n - 1
	}
	return max(0, min(old, n))
}

// TestPercentIsAsManyPods checks that Kruise computes the intended number of pods for each size and share under an
// autoscaler. The amount is a percentage wherever one exists.
func TestPercentIsAsManyPods(t *testing.T) {
	p := partitioned{Partitioned: *ofKruise(t, "apps.kruise.io/v1alpha1", "CloneSet")}
	for n := 1; n <= 400; n++ {
		for k := 1; k <= n; k++ {
			o := rollout.Object{"spec": map[string]any{}}
			p.hold(o, limits{unavailable: k, replicas: n})
			got := o.Map("spec", "updateStrategy")["partition"]
			if old := oldPods(t, got, n); old != n-k {
				t.Fatalf("of %d pods %v keeps %d old, want %d", n, got, old, n-k)
			}
			exists := false
			for percent := range 101 {
				exists = exists || (percent*n+99)/100 == n-k
			}
			if _, isPercent := got.(string); isPercent != exists {
				t.Fatalf("of %d pods, of which %d stay old, the partition is %v; that a percentage says so is %t", n, n-k, got, exists)
			}
		}
	}
}

// TestPartitionOfEachKind checks the field of each kind's partition, and whether it counts old or new pods.
func TestPartitionOfEachKind(t *testing.T) {
	counting := rollout.Partitioned{APIVersion: "example.com/v1", Kind: "Set", Partition: "spec.rollout.canaries", CountsNew: true}
	for name, tc := range map[string]struct {
		kind  *rollout.Partitioned
		fixed bool // Git states the number of pods
		at    []string
		want  any
	}{
		"CloneSet":                         {ofKruise(t, "apps.kruise.io/v1alpha1", "CloneSet"), true, []string{"spec", "updateStrategy"}, int64(2)},
		"CloneSet under an autoscaler":     {ofKruise(t, "apps.kruise.io/v1alpha1", "CloneSet"), false, []string{"spec", "updateStrategy"}, "66%"},
		"CloneSet, newer":                  {ofKruise(t, "apps.kruise.io/v1beta1", "CloneSet"), false, []string{"spec", "updateStrategy", "rollingUpdate"}, "66%"},
		"StatefulSet under an autoscaler":  {ofKruise(t, "apps.kruise.io/v1beta1", "StatefulSet"), false, []string{"spec", "updateStrategy", "rollingUpdate"}, int64(2)},
		"one that counts the new":          {&counting, true, []string{"spec", "rollout"}, int64(1)},
		"one that counts them, autoscaled": {&counting, false, []string{"spec", "rollout"}, int64(1)},
	} {
		o := rollout.Object{"spec": map[string]any{"updateStrategy": map[string]any{"maxUnavailable": int64(1)}}}
		if tc.fixed {
			o.Map("spec")["replicas"] = int64(3)
		}
		kindFor(rollout.Workload{Kind: "X.y"}, rollout.Spec{Partition: tc.kind}).hold(o, limits{unavailable: 1, replicas: 3})
		field := tc.kind.Partition[strings.LastIndex(tc.kind.Partition, ".")+1:]
		if got := o.Map(tc.at...)[field]; got != tc.want || o.Map("spec", "updateStrategy")["maxUnavailable"] != int64(1) {
			t.Errorf("%s: %v, want %v in %v", name, got, tc.want, o)
		}
	}
}

// TestPartitionOnNodes checks that the partition releases no more nodes than may be without a ready pod. It takes no
// node back before the controller has reported its pods.
func TestPartitionOnNodes(t *testing.T) {
	kind := ofKruise(t, "apps.kruise.io/v1alpha1", "DaemonSet")
	for name, tc := range map[string]struct {
		ask, may            int // nodes of the new version; nodes without a ready pod
		fresh, old          int // pods
		freshReady, oldDown int
		told                int // nodes released by the current partition; -1: it has the stable template
		want                int // nodes to release; 0: the stable template
	}{
		"the first one":                     {4, 1, 0, 10, 0, 0, -1, 1},
		"two at a time":                     {4, 2, 0, 10, 0, 0, -1, 2},
		"one is down where Kruise is not":   {4, 1, 0, 10, 0, 1, -1, 0},
		"of two that may be, one is":        {4, 2, 0, 10, 0, 1, -1, 1},
		"its pod has gone":                  {4, 1, 0, 9, 0, 0, 1, 1},
		"it is to go":                       {4, 1, 0, 10, 0, 0, 1, 1},
		"it is there and starts":            {4, 1, 1, 9, 0, 0, 1, 1},
		"it serves":                         {4, 1, 1, 9, 1, 0, 1, 2},
		"another one is down meanwhile":     {4, 1, 1, 9, 1, 1, 1, 1},
		"as many as are asked for":          {4, 1, 4, 6, 4, 0, 4, 4},
		"more of them, by nodes that came":  {4, 1, 5, 5, 5, 0, 4, 4},
		"the last step asks for fewer":      {2, 1, 4, 6, 4, 0, 4, 2},
		"a node joins while one is let go":  {4, 1, 2, 8, 1, 0, 1, 2},
		"all of them, and the room for all": {10, 10, 0, 10, 0, 0, -1, 10},
	} {
		now := time.Unix(1000, 0)
		ready := func(n int) []time.Time { return make([]time.Time, n) }
		spec := rollout.Spec{Partition: kind, MaxUnavailable: rollout.Amount{Value: tc.may}}
		m := workload{n: 10, Compiled: &plan.Compiled{Spec: spec}}
		m.stable = rollout.Revision{Hash: "h1-old", Desired: tc.old, Pods: tc.old, ReadySince: ready(tc.old - tc.oldDown)}
		m.fresh = rollout.Revision{Hash: "h1-new", Desired: tc.fresh, Pods: tc.fresh, ReadySince: ready(tc.freshReady)}
		m.live = rollout.ObservedWorkload{Hash: "h1-new", Replicas: 10, Floor: 10 - tc.told,
			Revisions: []rollout.Revision{m.fresh, m.stable}}
		if tc.told < 0 {
			m.live.Hash, m.live.Floor = "h1-old", 0
		}
		got, holds := partitioned{Partitioned: *kind}.limits(m, plan.Counts{Canary: tc.ask}, View{Now: now})
		if got.unavailable != tc.want || holds != (tc.want > 0) {
			t.Errorf("%s: %d nodes are let go, want %d (%t)", name, got.unavailable, tc.want, holds)
		}
	}
}

// cloneAt returns a CloneSet of 10 pods at its first step of 30 %, with fresh and stable ready pods.
func cloneAt(t *testing.T, kind *rollout.Partitioned, fresh, stable int) (Input, *history, rollout.Workload) {
	t.Helper()
	ref := kind.Ref()
	ref.Namespace, ref.Name = testApp.Namespace, "web"
	clone, _ := rollout.WorkloadOf(ref)
	h := oneWeb(func(s *rollout.Spec) {
		*s = ofSet(rollout.Step{SetWeight: new(30)}, rollout.Step{Pause: &rollout.Pause{}})
		s.Workload, s.Partition = clone, kind
	})
	h.push(version("v2"))
	for _, r := range []*rollout.Render{h.at(commitID(0)), h.at(commitID(1))} {
		for _, o := range r.Objects {
			if o.Ref().Name == "web" && o.Map("spec", "template") != nil {
				o["apiVersion"], o["kind"] = kind.APIVersion, kind.Kind
			}
		}
	}
	in := world(h)
	in.State.Stable.Templates = h.at(commitID(0)).Staged()
	move := func(o rollout.Observed) rollout.Observed {
		live := o.Workloads[db]
		for i := range live.Revisions {
			r := &live.Revisions[i]
			r.Hash = h.at(strings.TrimPrefix(r.Name, "web-")).Templates[clone]
			if r.Current {
				live.Hash = r.Hash
			}
		}
		return rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{clone: live}}
	}
	in.Observed = move(setOf(h, 10, fresh, stable))
	one := in
	one.Observed = move(setOf(h, 10, 0, 10))
	d := Decide(one)
	if len(d.State.Progress) != 1 || d.State.Progress[0].Workload != clone {
		t.Fatalf("a release begins as %s", dump(d.State))
	}
	in.State, in.Source, in.Answers = d.State, in.Head.Render, Answers{Healed: new(true)}
	return in, h, clone
}

func partitionAt(in Input, h *history, w rollout.Workload, field string) (got any, hash rollout.Hash) {
	for _, o := range mustDesired(in.State, View{Now: in.Now, Source: in.Source, Stable: h.at(commitID(0)), Observed: in.Observed}) {
		if o.Ref() == w.Ref() {
			got, hash = rollout.In(o, field), rollout.Hash(o.Annotation(rollout.AnnotationHash))
		}
	}
	return got, hash
}

// TestCloneSetReleases releases a kind that is known by its description only. The partition moves it, a step ends
// when enough pods are ready, and the promotion restores the user's partition.
func TestCloneSetReleases(t *testing.T) {
	kind := ofKruise(t, "apps.kruise.io/v1alpha1", "CloneSet")
	for fresh, done := range map[int]bool{0: false, 2: false, 3: true, 5: true} {
		in, h, clone := cloneAt(t, kind, fresh, 10-fresh)
		if got, hash := partitionAt(in, h, clone, kind.Partition); got != "70%" || hash != in.State.Release.Templates[clone] {
			t.Errorf("with %d new pods the partition is %v of %s", fresh, got, hash)
		}
		d := Decide(in)
		if is := d.State.Progress[0].Step > 0; is != done {
			t.Errorf("with %d new pods, that the step is done is %t: %s", fresh, is, d.Waiting)
		}
		want := ""
		if fresh > 3 {
			want = "5 of 10 new, 3 asked: the controller takes none of them back"
		}
		if got := Explain(in)[0].Surplus; got != want {
			t.Errorf("with %d new pods it says %q", fresh, got)
		}
		in.State.Phase = rollout.Promoting
		if got, _ := partitionAt(in, h, clone, kind.Partition); got != int64(0) {
			t.Errorf("promoted, the partition is %v", got)
		}
		encoded, err := d.State.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := rollout.ParseState("state.yaml", encoded); err != nil || back.Progress[0].Workload != clone {
			t.Errorf("recorded and read again it is %v, %v", back, err)
		}
	}
}

// TestCloneSetTakenForAll checks a controller that takes the new revision for the stable one. A partition would then
// keep the new pods, so stable is applied alone.
func TestCloneSetTakenForAll(t *testing.T) {
	kind := ofKruise(t, "apps.kruise.io/v1alpha1", "CloneSet")
	in, h, clone := cloneAt(t, kind, 10, 0)
	live := in.Observed.Workloads[clone]
	live.Revisions[0].Base, live.Revisions[1].Base = true, false
	if got, hash := partitionAt(in, h, clone, kind.Partition); got != int64(0) || hash != in.State.StableHash(clone) {
		t.Errorf("it is asked for %s with the partition %v, want stable alone", hash, got)
	}
	if d := Decide(in); d.State.Phase != rollout.Stalled || !strings.Contains(d.State.Reason, takenWhy) {
		t.Errorf("it is %s: %s", d.State.Phase, d.State.Reason)
	}
	if got := Explain(in)[0].Surplus; got != "10 of 10 new, 3 asked: the controller of the CloneSet took the new version for all pods" {
		t.Errorf("it says %q", got)
	}
}

// TestOrderedKindsAreFreed checks that a rollback deletes a broken pod of an ordered kind, because the other pods
// wait for it. A step deletes none.
func TestOrderedKindsAreFreed(t *testing.T) {
	for apiVersion, kind := range map[string]string{"apps.kruise.io/v1beta1": "StatefulSet", "apps.kruise.io/v1alpha1": "CloneSet"} {
		p := ofKruise(t, apiVersion, kind)
		in, _, w := cloneAt(t, p, 3, 7)
		live := in.Observed.Workloads[w]
		live.Revisions[0].Members = []rollout.Pod{{Name: "web-8", UID: "8"}, {Name: "web-9", UID: "9"}}
		if got := Evictions(in); len(got) > 0 {
			t.Errorf("%s: at its step %+v go", kind, got)
		}
		live.Hash, live.Revisions[0].Current, live.Revisions[1].Current = in.State.StableHash(w), false, true
		in.Observed.Workloads[w] = live
		in.State.Phase, in.State.Rollback = rollout.Aborting, &rollout.Rollback{To: in.State.Source}
		got := Evictions(in)
		if p.Ordered != (len(got) == 1 && got[0].Pod.Name == "web-9") || !p.Ordered && len(got) > 0 {
			t.Errorf("%s: in the rollback %+v go", kind, got)
		}
	}
}
