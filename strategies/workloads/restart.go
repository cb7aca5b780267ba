package workloads

import (
	"cmp"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// Restart returns the pods created before a restart and, of these pods, the pods to delete now. The time is when the
// next ready pod completes minReadySeconds, or zero. Deletions of ready pods respect maxUnavailable.
func Restart(s rollout.Spec, live rollout.ObservedWorkload, at, now time.Time) ([]rollout.Pod, []Eviction, time.Time) {
	if !s.OnNodes() && s.Unavailable(live, live.Replicas) >= live.Replicas {
		s.MaxUnavailable = rollout.Amount{} // Recreate allows all pods to be unavailable
	}
	next := ServesNext(now, plan.MinReady(s), live.Revisions...)
	old := outdated(live, at)
	return old, within(room(s, live, now), s.Workload, old), next
}

// outdated returns the pods created before a restart, in deletion order.
func outdated(live rollout.ObservedWorkload, restart time.Time) (pods []rollout.Pod) {
	for _, r := range live.Revisions {
		pods = append(pods, slices.DeleteFunc(slices.Clone(r.Members), func(p rollout.Pod) bool {
			return p.Terminating || !p.Created.Before(restart)
		})...)
	}
	slices.SortFunc(pods, func(a, b rollout.Pod) int {
		ready := map[bool]int{true: 1}
		return cmp.Or(ready[a.Ready]-ready[b.Ready], ordinal(b)-ordinal(a), a.Created.Compare(b.Created),
			cmp.Compare(a.Name, b.Name))
	})
	return pods
}

func within(room int, w rollout.Workload, pods []rollout.Pod) (all []Eviction) {
	for _, p := range pods {
		if p.Ready {
			room--
		}
		if !p.Ready || room >= 0 {
			all = append(all, Eviction{Namespace: w.Namespace, Pod: p})
		}
	}
	return all
}

// room returns how many more pods may become unavailable. A maxUnavailable of 0 counts as 1. The result is negative if
// too many pods are unavailable. While a controller removes surplus pods, the result is at most 0, because the
// controller may remove ready pods.
func room(spec rollout.Spec, live rollout.ObservedWorkload, now time.Time) int {
	n, pods, serving := live.Replicas+live.Strays, 0, 0
	for _, r := range live.Revisions {
		pods, serving = pods+r.Pods, serving+r.Serving(now, plan.MinReady(spec))
	}
	if pods > n {
		return min(serving-n, 0)
	}
	return max(1, spec.Unavailable(live, live.Replicas)) + serving - n
}
