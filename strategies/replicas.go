package strategies

import (
	"cmp"
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// How many pods there are is not staged. A release changes it at once, and the way back from one changes the version
// and not the number: what Git has asked for since then is recorded beside the commit that the app goes back to.

// replicas returns the number of pods that the workload should have: what Git
// says, or what the cluster's autoscaler has set.
func replicas(s rollout.State, spec rollout.Spec, live rollout.ObservedWorkload) int {
	if n := asked(s, spec); n != nil {
		return *n
	}
	return live.Replicas
}

// asked is what Git says of a workload whose spec is State.Source's, nil if it leaves the number to an autoscaler.
func asked(s rollout.State, spec rollout.Spec) *int {
	if r, is := rollout.Find(s.Replicas, func(r rollout.Replicas) bool { return r.Workload == spec.Workload }); is {
		return r.Count
	}
	return spec.Replicas
}

// withReplicas records the numbers of pods that the head asks for and State.Source may not say.
func withReplicas(in Input, d Decision) Decision {
	s, head := &d.State, in.Head
	switch {
	case d.Stale || head.Render == nil:
		return d
	case s.Phase == rollout.Healthy && !s.Held.Waits(), s.Stable == nil,
		s.Retreat != nil && s.Retreat.To == head.Commit.ID:
		s.Replicas = nil
		return d
	case in.Source == nil:
		return d
	}
	s.Replicas = slices.Clone(s.Replicas)
	for _, spec := range in.Source.Specs {
		next, has := head.Render.Spec(spec.Workload)
		if was := asked(in.State, spec); !has || sameCount(was, next.Replicas) {
			continue
		}
		isIt := func(r rollout.Replicas) bool { return r.Workload == spec.Workload }
		s.Replicas = slices.DeleteFunc(s.Replicas, isIt)
		s.Replicas = append(s.Replicas, rollout.Replicas{Workload: spec.Workload, Count: next.Replicas})
		d.Subject = cmp.Or(d.Subject, fmt.Sprintf("%s has the replicas of %s", s.App, head.Commit.Short()))
	}
	return d
}

// growth is the largest number of pods that adds none of the new version. A Deployment controller gives each ReplicaSet
// its share of what is added, rounded, the largest one first (as in countInTurn). With c new pods of n+c, none is added
// below a factor of 1+1/2c:
//
//	n=4, c=2:  5, 6, 7, 9, 11, 14 …
//	n=4, c=4:  4, until the new pods are gone
func growth(m moving) int {
	n, c := m.live.Replicas, m.fresh.Desired
	if !m.live.Synced || m.stable.Desired < n || c >= n {
		return n
	}
	return n + (n+c-1)/(2*c)
}

// countInTurn is an object with the number of pods that its Deployment has had, for as long as the pods of two
// versions are more than the user's own strategy allows at the number that is asked for. A Deployment controller that
// sees both change in one write takes the surplus from all versions in proportion (k8s.io/kubernetes
// pkg/controller/deployment, sync.go): 5 pods of v1, which serve, and 5 of v2 would become 4 and 4 on the way back
// from v2 with 6 replicas and a maxSurge of 1. After that the surplus is v2's alone, and the number is written next.
func countInTurn(s rollout.State, v View, spec rollout.Spec, o rollout.Object) rollout.Object {
	n, live := asked(s, spec), v.Observed.Workloads[spec.Workload]
	if n == nil || *n == live.Replicas || s.Stable == nil || isPromoting(s) { // no version is protected from the other one
		return o
	}
	pods, versions := 0, 0
	for _, r := range live.Revisions {
		pods += r.Desired
		versions += min(r.Desired, 1)
	}
	grows := s.Phase == rollout.Aborting && *n > live.Replicas // then the version that is left would grow, too
	if versions < 2 || !grows && pods <= *n+spec.MaxSurge.RoundUp(*n) {
		return o
	}
	o = o.Copy()
	setReplicas(o, int64(live.Replicas))
	return o
}

func sameCount(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b }
