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

// ordinals is a kind of workload that only this test adds. Pods whose ordinal is at least the partition have the new version.
type ordinals struct{}

func (ordinals) Limits(m workloads.Staged, want plan.Counts, _ workloads.View) (workloads.Limits, bool) {
	gone := min(m.N-want.Stable, m.Fresh.Ready()+1) // one more pod at a time
	return workloads.Limits{Unavailable: gone, Replicas: m.N}, gone > 0
}

func (ordinals) Hold(o rollout.Object, f workloads.Limits) {
	o.Set(int64(f.Replicas-f.Unavailable), "spec", "partition")
}
func (ordinals) Own(o rollout.Object) { o.Set(int64(0), "spec", "partition") }

func (ordinals) Reached(_ workloads.Staged, want plan.Counts) plan.Counts { return want }

// TestASecondKind checks that gitrollout can release another kind of workload after one entry in WorkloadKinds and one in Kinds.
func TestASecondKind(t *testing.T) {
	knownKinds := rollout.WorkloadKinds
	rollout.WorkloadKinds = append(rollout.WorkloadKinds, rollout.Ref{Group: "example.com", Kind: "Ordinals"})
	workloads.Kinds["Ordinals"] = ordinals{}
	defer func() { rollout.WorkloadKinds = knownKinds; delete(workloads.Kinds, "Ordinals") }()

	web := rollout.Workload{Kind: "Ordinals", Namespace: testApp.Namespace, Name: "web"}
	h := twoVersions(func(s *rollout.Spec) { s.Workload = web; s.Canary.Steps[0].SetWeight = new(30) })
	in := world(h)
	if transition(&in, h); len(in.State.Progress) != 1 || in.State.Progress[0].Workload != web {
		t.Fatalf("a release begins as %s", dump(in.State))
	}
	for ready, want := range []int64{9, 8, 7, 7} {
		fresh := set(h, commitID(1), ready, ready)
		changeLive(&in, web, func(live *rollout.ObservedWorkload) {
			live.Hash, live.Complete, live.Revisions = fresh.Hash, false, []rollout.Revision{fresh, set(h, commitID(0), 10-ready, 10-ready)}
		})
		if got, _ := partitionAt(in, h, web, "spec.partition"); got != want {
			t.Errorf("with %d pods of the new version, the partition is %v, want %d", ready, got, want)
		}
		compare.CheckNamed(t, fmt.Sprintf("with %d new pods, the step is done", ready), ready == 3,
			strategies.Decide(in).State.Progress[0].Step > 0)
	}
	in.State.Phase = rollout.Promoting
	if got, _ := partitionAt(in, h, web, "spec.partition"); got != int64(0) {
		t.Errorf("promoted, the partition is %v", got)
	}
	compare.CheckNamed(t, "recorded and read again", web, readAgain(t, in.State).Progress[0].Workload)
}
