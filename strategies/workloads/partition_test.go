package workloads_test

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// oldPods returns how many old pods Kruise keeps for a partition (v1.8, pkg/util/tools.go: CalculatePartitionReplicas).
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

// TestPercentIsAsManyPods checks that Kruise keeps the intended number of old pods if an autoscaler sets the replicas. The test tries each
// number of replicas and of new pods. If a whole percentage is exact, the partition must be a percentage.
func TestPercentIsAsManyPods(t *testing.T) {
	p := workloads.KindFor(rollout.Workload{}, rollout.Spec{Partition: ofKruise(t, "apps.kruise.io/v1alpha1", "CloneSet")})
	for n := 1; n <= 400; n++ {
		for k := 1; k <= n; k++ {
			o := rollout.Object{"spec": map[string]any{}}
			p.Hold(o, workloads.Limits{Unavailable: k, Replicas: n})
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

// TestPartitionOfEachKind checks which field of each kind gets the partition, and whether the partition counts old or new pods.
func TestPartitionOfEachKind(t *testing.T) {
	counting := rollout.Partitioned{APIVersion: "example.com/v1", Kind: "Set", Partition: "spec.rollout.canaries", CountsNew: true}
	update := []string{"spec", "updateStrategy"}
	rolling := []string{"spec", "updateStrategy", "rollingUpdate"}
	for name, tc := range map[string]struct {
		kind  *rollout.Partitioned
		fixed bool // Git sets the replicas
		at    []string
		want  any
	}{
		"CloneSet":                         {ofKruise(t, "apps.kruise.io/v1alpha1", "CloneSet"), true, update, int64(2)},
		"CloneSet under an autoscaler":     {ofKruise(t, "apps.kruise.io/v1alpha1", "CloneSet"), false, update, "66%"},
		"CloneSet, newer":                  {ofKruise(t, "apps.kruise.io/v1beta1", "CloneSet"), false, rolling, "66%"},
		"StatefulSet under an autoscaler":  {ofKruise(t, "apps.kruise.io/v1beta1", "StatefulSet"), false, rolling, int64(2)},
		"one that counts the new":          {&counting, true, []string{"spec", "rollout"}, int64(1)},
		"one that counts them, autoscaled": {&counting, false, []string{"spec", "rollout"}, int64(1)},
	} {
		o := rollout.Object{"spec": map[string]any{"updateStrategy": map[string]any{"maxUnavailable": int64(1)}}}
		if tc.fixed {
			o.Map("spec")["replicas"] = int64(3)
		}
		workloads.KindFor(rollout.Workload{Kind: "X.y"}, rollout.Spec{Partition: tc.kind}).Hold(o, workloads.Limits{Unavailable: 1, Replicas: 3})
		field := tc.kind.Partition[strings.LastIndex(tc.kind.Partition, ".")+1:]
		if got := o.Map(tc.at...)[field]; got != tc.want || o.Map("spec", "updateStrategy")["maxUnavailable"] != int64(1) {
			t.Errorf("%s: %v, want %v in %v", name, got, tc.want, o)
		}
	}
}

// TestPartitionOnNodes checks that the partition adds a node only if one more node may lack a ready pod. A node with the new version keeps
// this version until the controller has reported the node's pods.
func TestPartitionOnNodes(t *testing.T) {
	kind := ofKruise(t, "apps.kruise.io/v1alpha1", "DaemonSet")
	for name, tc := range map[string]struct {
		ask, may            int // nodes that the step requests; nodes that may lack a ready pod
		fresh, old          int // number of pods
		freshReady, oldDown int
		told                int // nodes that get the new version by the current partition; -1 if the object has the stable template
		want                int // nodes that must get the new version; 0 if the stable template must be applied
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
		m := workloads.Staged{N: 10, Compiled: &plan.Compiled{Spec: spec}}
		m.Stable = rollout.Revision{Hash: "h1-old", Desired: tc.old, Pods: tc.old, ReadySince: ready(tc.old - tc.oldDown)}
		m.Fresh = rollout.Revision{Hash: "h1-new", Desired: tc.fresh, Pods: tc.fresh, ReadySince: ready(tc.freshReady)}
		m.Live = rollout.ObservedWorkload{Hash: "h1-new", Replicas: 10, Floor: 10 - tc.told, Revisions: []rollout.Revision{m.Fresh, m.Stable}}
		if tc.told < 0 {
			m.Live.Hash, m.Live.Floor = "h1-old", 0
		}
		got, holds := workloads.KindFor(rollout.Workload{}, rollout.Spec{Partition: kind}).Limits(m, plan.Counts{Canary: tc.ask},
			workloads.View{Now: now})
		if got.Unavailable != tc.want || holds != (tc.want > 0) {
			t.Errorf("%s: %d nodes are let go, want %d (%t)", name, got.Unavailable, tc.want, holds)
		}
	}
}

// ofKruise returns the built-in description of a Kruise kind.
func ofKruise(t *testing.T, apiVersion, kind string) *rollout.Partitioned {
	t.Helper()
	p, _ := rollout.FindPartitioned(nil, apiVersion, kind)
	if p == nil {
		t.Fatalf("there is no %s of %s", kind, apiVersion)
	}
	return p
}
