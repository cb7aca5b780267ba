package strategies_test

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// ofKruise returns the built-in description of a Kruise kind.
func ofKruise(t *testing.T, apiVersion, kind string) *rollout.Partitioned {
	t.Helper()
	p, _ := rollout.FindPartitioned(nil, apiVersion, kind)
	if p == nil {
		t.Fatalf("there is no %s of %s", kind, apiVersion)
	}
	return p
}

// cloneAt returns a workload of a Kruise kind at its first step, with weight 30 %. Its 10 ready pods include the given number of new pods.
func cloneAt(t *testing.T, kind *rollout.Partitioned, fresh int) (strategies.Input, *history, rollout.Workload) {
	t.Helper()
	ref := kind.Ref()
	ref.Namespace, ref.Name = testApp.Namespace, "web"
	clone, _ := rollout.WorkloadOf(ref)
	h := twoVersions(func(s *rollout.Spec) {
		*s = ofSet(weight(30), aPause)
		s.Workload, s.Partition = clone, kind
	})
	for _, r := range []*rollout.Render{h.at(commitID(0)), h.at(commitID(1))} {
		for _, o := range r.Objects {
			if o.Ref().Name == "web" && o.Map("spec", "template") != nil {
				o["apiVersion"], o["kind"] = kind.APIVersion, kind.Kind
			}
		}
	}
	in := world(h)
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
	in.Observed = move(setOf(h, 10, 0, 10))
	d := strategies.Decide(in)
	if len(d.State.Progress) != 1 || d.State.Progress[0].Workload != clone {
		t.Fatalf("a release begins as %s", dump(d.State))
	}
	in.State, in.Source, in.Observed = d.State, in.Head.Render, move(setOf(h, 10, fresh, 10-fresh))
	return in, h, clone
}

// partitionAt returns the partition of a desired workload and the hash of its template.
func partitionAt(in strategies.Input, h *history, w rollout.Workload, field string) (any, rollout.Hash) {
	o := desiredOf(in, h, w)
	return rollout.In(o, field), rollout.Hash(o.Annotation(rollout.AnnotationHash))
}

// TestCloneSetReleases checks a release of a workload whose kind is known only from a rollout.Partitioned. The partition limits the new
// pods, a step ends when enough new pods are ready, and the promotion restores the user's partition.
func TestCloneSetReleases(t *testing.T) {
	kind := ofKruise(t, "apps.kruise.io/v1alpha1", "CloneSet")
	for fresh, done := range map[int]bool{0: false, 2: false, 3: true, 5: true} {
		in, h, clone := cloneAt(t, kind, fresh)
		if got, hash := partitionAt(in, h, clone, kind.Partition); got != "70%" || hash != in.State.Release.Templates[clone] {
			t.Errorf("with %d new pods the partition is %v of %s", fresh, got, hash)
		}
		d := strategies.Decide(in)
		if is := d.State.Progress[0].Step > 0; is != done {
			t.Errorf("with %d new pods, that the step is done is %t: %s", fresh, is, d.Waiting)
		}
		want := ""
		if fresh > 3 {
			want = "5 of 10 new, 3 asked: the controller does not replace surplus new pods"
		}
		compare.CheckNamed(t, fmt.Sprintf("the surplus with %d new pods", fresh), want, strategies.Explain(in)[0].Surplus)
		in.State.Phase = rollout.Promoting
		if got, _ := partitionAt(in, h, clone, kind.Partition); got != int64(0) {
			t.Errorf("promoted, the partition is %v", got)
		}
		compare.CheckNamed(t, "recorded and read again", clone, readAgain(t, d.State).Progress[0].Workload)
	}
}

// TestCloneSetTakenForAll checks a step when the controller treats the new revision as the stable revision. With a partition, the
// controller would keep new pods, so gitrollout applies the stable template without a partition.
func TestCloneSetTakenForAll(t *testing.T) {
	kind := ofKruise(t, "apps.kruise.io/v1alpha1", "CloneSet")
	in, h, clone := cloneAt(t, kind, 10)
	live := in.Observed.Workloads[clone]
	live.Revisions[0].Base, live.Revisions[1].Base = true, false
	if got, hash := partitionAt(in, h, clone, kind.Partition); got != int64(0) || hash != in.State.StableHash(clone) {
		t.Errorf("it is asked for %s with the partition %v, want stable alone", hash, got)
	}
	if d := strategies.Decide(in); d.State.Phase != rollout.Stalled || !strings.Contains(d.State.Reason, takenWhy) {
		t.Errorf("it is %s: %s", d.State.Phase, d.State.Reason)
	}
	want := "10 of 10 new, 3 asked: the controller of the CloneSet took the new version for all pods"
	compare.CheckNamed(t, "the surplus", want, strategies.Explain(in)[0].Surplus)
}

// TestOrderedKindsAreFreed checks a rollback of an ordered kind. gitrollout deletes a pod that is not ready, because the controller
// replaces no other pod before this pod is ready. At a step, gitrollout deletes no pod.
func TestOrderedKindsAreFreed(t *testing.T) {
	for apiVersion, kind := range map[string]string{"apps.kruise.io/v1beta1": "StatefulSet", "apps.kruise.io/v1alpha1": "CloneSet"} {
		p := ofKruise(t, apiVersion, kind)
		in, _, w := cloneAt(t, p, 3)
		in.Observed.Workloads[w].Revisions[0].Members = []rollout.Pod{{Name: "web-8", UID: "8"}, {Name: "web-9", UID: "9"}}
		if got := strategies.Evictions(in); len(got) > 0 {
			t.Errorf("%s: at its step %+v go", kind, got)
		}
		changeLive(&in, w, func(live *rollout.ObservedWorkload) {
			live.Hash, live.Revisions[0].Current, live.Revisions[1].Current = in.State.StableHash(w), false, true
		})
		in.State.Phase, in.State.Rollback = rollout.Aborting, &rollout.Rollback{To: in.State.Source}
		got := strategies.Evictions(in)
		if p.Ordered != (len(got) == 1 && got[0].Pod.Name == "web-9") || !p.Ordered && len(got) > 0 {
			t.Errorf("%s: in the rollback %+v go", kind, got)
		}
	}
}

// TestUnorderedKindsKeepTheirPods checks a step of Kruise's StatefulSet. gitrollout deletes a pod that is not ready only if the pod returns
// in the new version. With reserved ordinals or without an update order, the ordinal does not determine the version, so gitrollout deletes
// no pod.
func TestUnorderedKindsKeepTheirPods(t *testing.T) {
	for unordered, want := range map[bool]string{false: "web-8", true: ""} {
		in, _, w := cloneAt(t, ofKruise(t, "apps.kruise.io/v1beta1", "StatefulSet"), 1)
		changeLive(&in, w, func(live *rollout.ObservedWorkload) {
			live.Hash, live.Floor, live.Unordered = in.State.Release.Templates[w], 8, unordered
			live.Revisions[1].Members = []rollout.Pod{{Name: "web-7", UID: "7"}, {Name: "web-8", UID: "8"}}
		})
		got := rollout.Mapped(strategies.Evictions(in), func(e workloads.Eviction) string { return e.Pod.Name })
		compare.CheckNamed(t, fmt.Sprintf("unordered: %t", unordered), want, strings.Join(got, " "))
	}
}

// TestUnorderedStrangers checks a pod of a third template above the partition of Kruise's StatefulSet. An ordered update replaces this pod.
// An unordered update might keep the pod, so gitrollout first applies the stable template to all pods.
func TestUnorderedStrangers(t *testing.T) {
	kind := ofKruise(t, "apps.kruise.io/v1beta1", "StatefulSet")
	for unordered, want := range map[bool]any{false: int64(7), true: int64(0)} {
		in, h, w := cloneAt(t, kind, 1)
		changeLive(&in, w, func(live *rollout.ObservedWorkload) {
			third := rollout.Revision{Name: "web-third", Hash: "h1-third", Pin: rollout.Pin{Label: rollout.LabelRevision, Value: "web-third"},
				Desired: 1, Pods: 1, Members: []rollout.Pod{{Name: "web-9", Ready: true}}}
			live.Unordered, live.Revisions = unordered, append(live.Revisions, third)
		})
		got, _ := partitionAt(in, h, w, kind.Partition)
		compare.CheckNamed(t, fmt.Sprintf("unordered: %t", unordered), want, got)
	}
}
