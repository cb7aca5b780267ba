package strategies

import (
	"cmp"
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// Replicas are not staged: a release changes them at once, and a rollback keeps them. Git's later replicas are
// recorded beside the commit of the rollback.

// withReplicas records the head's replicas where State.Source may have others.
func withReplicas(in Input, d Decision) Decision {
	s, head := &d.State, in.Head
	switch {
	case d.Stale || head.Render == nil:
		return d
	case s.Phase == rollout.Healthy && !s.Held.Waits(), s.Stable == nil,
		s.Rollback != nil && s.Rollback.To == head.Commit.ID:
		s.Replicas = nil
		return d
	case in.Source == nil:
		return d
	}
	s.Replicas = slices.Clone(s.Replicas)
	for _, spec := range in.Source.Specs {
		o, has := workloads.WorkloadOf(head.Render, spec.Workload) // also after its Rollout document left Git
		next := countOf(o)
		if was := workloads.Asked(in.State, spec); !has || workloads.SameCount(was, next) {
			continue
		}
		isIt := func(r rollout.Replicas) bool { return r.Workload == spec.Workload }
		s.Replicas = slices.DeleteFunc(s.Replicas, isIt)
		s.Replicas = append(s.Replicas, rollout.Replicas{Workload: spec.Workload, Count: next})
		d.Subject = cmp.Or(d.Subject, fmt.Sprintf("%s has the replicas of %s", s.App, head.Commit.Short()))
	}
	return d
}

// countOf returns a workload's spec.replicas, nil if an autoscaler sets them.
func countOf(o rollout.Object) *int {
	n, is := o.Map("spec")["replicas"].(int64)
	if !is {
		return nil
	}
	return new(int(n))
}
