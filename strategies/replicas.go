package strategies

import (
	"cmp"
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Replicas are not staged: a release changes them at once, and a rollback keeps them. Git's later replicas are
// recorded beside the commit of the rollback.

// replicas returns the replicas of a workload: Git's, or those that the cluster's autoscaler has set.
func replicas(s rollout.State, spec rollout.Spec, live rollout.ObservedWorkload) int {
	if n := asked(s, spec); n != nil {
		return *n
	}
	return live.Replicas
}

// asked returns Git's replicas of a workload whose spec is State.Source's, nil if an autoscaler sets them.
func asked(s rollout.State, spec rollout.Spec) *int {
	if r, is := rollout.Find(s.Replicas, func(r rollout.Replicas) bool { return r.Workload == spec.Workload }); is {
		return r.Count
	}
	return spec.Replicas
}

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
		o, has := workloadOf(head.Render, spec.Workload) // also after its Rollout document left Git
		next := countOf(o)
		if was := asked(in.State, spec); !has || sameCount(was, next) {
			continue
		}
		isIt := func(r rollout.Replicas) bool { return r.Workload == spec.Workload }
		s.Replicas = slices.DeleteFunc(s.Replicas, isIt)
		s.Replicas = append(s.Replicas, rollout.Replicas{Workload: spec.Workload, Count: next})
		d.Subject = cmp.Or(d.Subject, fmt.Sprintf("%s has the replicas of %s", s.App, head.Commit.Short()))
	}
	return d
}

// growth returns the largest number of replicas that adds no pod of the new version. A Deployment controller gives each
// ReplicaSet its rounded share, the largest one first (as in countInTurn). With c new pods of n+c, none is added below
// a factor of 1+1/2c:
//
//	n=4, c=2:  5, 6, 7, 9, 11, 14 …
//	n=4, c=4:  4, until the new pods are gone
func growth(m workload) int {
	n, c := m.live.Replicas, m.fresh.Desired
	if !m.live.Synced || m.stable.Desired < n || c >= n {
		return n
	}
	return n + (n+c-1)/(2*c)
}

// countInTurn keeps the previous replicas while both versions' pods exceed what the strategy allows at the new ones.
// Seeing both changes in one write, the controller removes the surplus from all versions in proportion
// (k8s.io/kubernetes pkg/controller/deployment, sync.go). A rollback from v2 with 6 replicas and maxSurge 1 would cut
// 5 pods of v1 and 5 of v2 to 4 and 4. With the template first, the surplus is v2's.
func countInTurn(s rollout.State, v View, spec rollout.Spec, o rollout.Object) rollout.Object {
	n, live := asked(s, spec), v.Observed.Workloads[spec.Workload]
	if n == nil || *n == live.Replicas || s.Stable == nil || isPromoting(s) { // there is no version to protect
		return o
	}
	pods, versions := 0, 0
	for _, r := range live.Revisions {
		pods += r.Desired
		versions += min(r.Desired, 1)
	}
	grows := s.Phase == rollout.Aborting && *n > live.Replicas // then the abandoned version would grow, too
	if versions < 2 || !grows && pods <= *n+spec.MaxSurge.RoundUp(*n) {
		return o
	}
	o = o.Copy()
	setReplicas(o, int64(live.Replicas))
	return o
}

// countOf returns a workload's spec.replicas, nil if an autoscaler sets them.
func countOf(o rollout.Object) *int {
	n, is := o.Map("spec")["replicas"].(int64)
	if !is {
		return nil
	}
	return new(int(n))
}

func sameCount(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b }
