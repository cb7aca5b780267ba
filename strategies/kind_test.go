package strategies

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// ordinals is a kind of workload known only to the tables. Its pods have numbers, and those from a partition on have
// the new version.
type ordinals struct{}

func (ordinals) Limits(m workloads.Staged, want plan.Counts, _ workloads.View) (workloads.Limits, bool) {
	gone := min(m.N-want.Stable, m.Fresh.Ready()+1) // one at a time
	return workloads.Limits{Unavailable: gone, Replicas: m.N}, gone > 0
}

func (ordinals) Hold(o rollout.Object, f workloads.Limits) {
	o.Set(int64(f.Replicas-f.Unavailable), "spec", "partition")
}
func (ordinals) Own(o rollout.Object) { o.Set(int64(0), "spec", "partition") }

func (ordinals) Reached(_ workloads.Staged, want plan.Counts) plan.Counts { return want }

// TestASecondKind releases a workload whose kind consists of one row in each table.
func TestASecondKind(t *testing.T) {
	knownKinds := rollout.WorkloadKinds
	rollout.WorkloadKinds = append(rollout.WorkloadKinds, rollout.Ref{Group: "example.com", Kind: "Ordinals"})
	workloads.Kinds["Ordinals"] = ordinals{}
	defer func() { rollout.WorkloadKinds = knownKinds; delete(workloads.Kinds, "Ordinals") }()

	web := rollout.Workload{Kind: "Ordinals", Namespace: testApp.Namespace, Name: "web"}
	h := oneWeb(func(s *rollout.Spec) { s.Workload = web; s.Canary.Steps[0].SetWeight = new(30) })
	h.push(version("v2"))
	of := func(commit string, desired, ready int) rollout.Revision {
		r := pods(desired, ready)
		r.Name, r.Pin, r.Hash = "web-"+commit, rollout.PodHash(commit), h.at(commit).Templates[web]
		return r
	}
	seen := func(sets ...rollout.Revision) rollout.Observed {
		live := rollout.ObservedWorkload{Replicas: 10, Hash: sets[0].Hash, Synced: true, Complete: len(sets) == 1, Revisions: sets}
		return rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{web: live}}
	}
	in := world(h)
	in.State.Stable.Templates = h.at(commitID(0)).Staged()
	in.Observed = seen(of(commitID(0), 10, 10))
	d := Decide(in)
	if len(d.State.Progress) != 1 || d.State.Progress[0].Workload != web {
		t.Fatalf("a release begins as %s", dump(d.State))
	}
	in.State, in.Source = d.State, in.Head.Render
	partition := func() any {
		for _, o := range mustDesired(in.State, workloads.View{Now: in.Now, Source: in.Source, Stable: h.at(commitID(0)),
			Observed: in.Observed}) {
			if o.Ref() == web.Ref() {
				return o.Map("spec")["partition"]
			}
		}
		return nil
	}
	for ready, want := range []int64{9, 8, 7, 7} {
		in.Observed = seen(of(commitID(1), ready, ready), of(commitID(0), 10-ready, 10-ready))
		compare.CheckNamed(t, fmt.Sprintf("with %d pods of the new version, the partition is", ready), any(want), partition())
		if moved := Decide(in).State.Progress[0].Step > 0; moved != (ready == 3) {
			t.Errorf("with %d pods of the new version, the step is done: %t", ready, moved)
		}
	}
	in.State.Phase = rollout.Promoting
	if got := partition(); got != int64(0) {
		t.Errorf("promoted, the partition is %v", got)
	}
	encoded, err := in.State.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := rollout.ParseState("state.yaml", encoded); err != nil || back.Progress[0].Workload != web {
		t.Errorf("recorded and read again it is %v, %v", back, err)
	}
}
