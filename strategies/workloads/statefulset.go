package workloads

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// statefulSet moves a StatefulSet by its partition: pods with ordinals at or above the partition get the new template.
// The controller replaces one pod at a time, highest ordinal first, and waits until the new pod is available.
type statefulSet struct{ inTurn }

// Limits computes the number of new pods. Each pass calls Limits, because an autoscaler may change replicas. With
// podManagementPolicy: Parallel, the controller does not wait for unready pods, so Limits replaces no ready stable pod
// while a stable pod is unready.
func (statefulSet) Limits(m Staged, want plan.Counts, v View) (Limits, bool) {
	if m.IsTakenForAll() {
		return Limits{}, false
	}
	k, told := min(want.Canary, m.N), onTop(m)
	if m.Live.Hash != m.Stable.Hash {
		told = max(told, m.N-(m.Live.Floor-m.Live.First))
	}
	if k > told && servingOf(m.Stable, m.Spec, v.Now) < m.Stable.Desired {
		if k = told; m.isNextDown() {
			k++
		}
	}
	return Limits{Unavailable: k, Replicas: m.N}, k > 0
}

func onTop(m Staged) (n int) {
	isNew := func(at int) bool {
		return slices.ContainsFunc(m.Fresh.Members, func(p rollout.Pod) bool { return ordinal(p) == at })
	}
	for isNew(m.Live.First + m.N - 1 - n) {
		n++
	}
	return n
}

// IsTakenForAll reports whether Kubernetes uses the new version for all pods although no step requests that. This
// happens while there are no pods, because a partition then has no effect. If true, gitrollout applies the stable
// template, and no step begins until Kubernetes uses this template again.
func (m Staged) IsTakenForAll() bool {
	isByPartition := m.Kind() == (statefulSet{}) || m.Spec.Partition != nil
	return isByPartition && m.N > 0 && m.Fresh.Base && m.Fresh.Hash != m.Stable.Hash && !m.hasAsked(m.N)
}

func (m Staged) hasAsked(pods int) bool {
	for i := range m.Step + 1 {
		if m.CountsAt(i, m.N).Canary >= pods {
			return true
		}
	}
	return false
}

// isNextDown reports whether the next stable pod to replace is unready, so that its replacement costs no capacity.
func (m Staged) isNextDown() bool {
	if len(m.Stable.Members) == 0 {
		return false
	}
	next := slices.MaxFunc(m.Stable.Members, func(a, b rollout.Pod) int { return ordinal(a) - ordinal(b) })
	return !next.Ready || next.Terminating
}

func (statefulSet) Hold(o rollout.Object, f Limits) {
	o.Set("RollingUpdate", "spec", "updateStrategy", "type")
	o.Set(int64(f.Replicas-f.Unavailable), "spec", "updateStrategy", "rollingUpdate", "partition")
}

// room sets maxUnavailable only if the API server has this field. Otherwise, the API server would drop the field, and
// each apply would seem incomplete.
func (statefulSet) room(o rollout.Object, live rollout.ObservedWorkload) {
	if live.Room {
		orElse(o, "spec.updateStrategy.type", "RollingUpdate")
		orElse(o, "spec.updateStrategy.rollingUpdate.maxUnavailable", int64(1))
	}
}

// Reached does not count surplus new pods that "rebalance" evicts. Other surplus pods count, such as pods that would
// return as new pods.
func (k statefulSet) Reached(m Staged, want plan.Counts) plan.Counts {
	if m.Spec.Canary.Rebalance && !m.Fresh.Base {
		return want
	}
	return k.inTurn.Reached(m, want)
}

// Surplus returns why more new pods exist than the step requests, or "".
func (m Staged) Surplus() string {
	asked, n := m.Want().Canary, m.Fresh.Desired
	if m.Kind() == (deployment{}) || asked == 0 || n <= asked {
		return ""
	}
	why := fmt.Sprintf("%d came by scaling", n-asked)
	switch p, isPartitioned := m.Kind().(partitioned); {
	case m.Spec.OnNodes():
		why = "a node without a pod gets a new pod"
	case isPartitioned && m.IsTakenForAll():
		why = fmt.Sprintf("the controller of the %s took the new version for all pods", p.Kind)
	case isPartitioned:
		why = "the controller does not replace surplus new pods"
	case m.IsTakenForAll():
		why = "Kubernetes took the new version for all pods"
	case m.hasAsked(n):
		why = "an earlier step asked for more"
	}
	var broken []string
	for _, p := range m.Fresh.Members {
		if !p.Ready && !p.Terminating && m.Kind() == (statefulSet{}) && ordinal(p) < m.Live.First+m.N-asked {
			broken = append(broken, p.Name)
		}
	}
	if len(broken) > 0 {
		why += "; of those not ready: " + strings.Join(broken, ", ")
	}
	return fmt.Sprintf("%d of %d new, %d asked: %s", n, m.N, asked, why)
}

func (statefulSet) evict(in Evicting, w rollout.Workload, live rollout.ObservedWorkload) []Eviction {
	s := in.State
	spec, _ := in.Source.Spec(w)
	if IsHeld(s) && live.Hash == s.Release.Templates[w] && spec.Canary != nil && spec.Canary.Rebalance {
		if one := above(in, spec, live); one != nil {
			return one
		}
	}
	return evictInOrder(in, w, live)
}

// evictInOrder returns the pod from stuck if this pod can be evicted now. With OrderedReady, the controller replaces no
// pod while another pod is unready (kubernetes#67250).
//
// In a rollback, and at a step without new pods, this pod has the release's version. An eviction waits until the
// workload has the stable template, because the pod would otherwise return in the release's version. At other steps,
// only pods that return in the new version are evicted.
func evictInOrder(in Evicting, w rollout.Workload, live rollout.ObservedWorkload) []Eviction {
	s := in.State
	switch {
	case IsHeld(s) != (s.Phase == rollout.Aborting) && live.Hash == s.StableHash(w):
		return stuck(w, live)
	case in.Release != nil && live.Hash == s.Release.Templates[w] && !live.Unordered &&
		in.Release.ByRef()[w.Ref()].Map("spec")["podManagementPolicy"] != "Parallel":
		return slices.DeleteFunc(stuck(w, live), func(e Eviction) bool { return ordinal(e.Pod) < live.Floor })
	}
	return nil
}

// stuck returns, of the unready pods without the current template, the pod with the highest ordinal.
func stuck(w rollout.Workload, live rollout.ObservedWorkload) (one []Eviction) {
	for _, r := range live.Revisions {
		for _, p := range r.Members {
			switch {
			case p.Terminating:
				return nil
			case !r.Current && !p.Ready && (one == nil || ordinal(p) > ordinal(one[0].Pod)):
				one = []Eviction{{Namespace: w.Namespace, Pod: p}}
			}
		}
	}
	return one
}

// above returns the pod that "rebalance" evicts: a new pod with an ordinal below the partition. It prefers unready
// pods, then the lowest ordinal.
func above(in Evicting, spec rollout.Spec, live rollout.ObservedWorkload) (one []Eviction) {
	serving := 0
	for _, r := range live.Revisions {
		serving += r.Serving(in.Now, plan.MinReady(spec))
		for _, p := range r.Members {
			if p.Terminating {
				return nil
			}
			isAbove := r.Current && !r.Base && ordinal(p) < live.Floor
			if isAbove && (one == nil || one[0].Pod.Ready && !p.Ready ||
				one[0].Pod.Ready == p.Ready && ordinal(p) < ordinal(one[0].Pod)) {
				one = []Eviction{{Namespace: spec.Workload.Namespace, Pod: p}}
			}
		}
	}
	if one != nil && one[0].Pod.Ready && serving < live.Replicas {
		return nil
	}
	return one
}

func isOrdered(spec rollout.Spec) bool {
	return kindFor(spec.Workload, spec) == (statefulSet{}) || spec.Partition != nil && spec.Partition.Ordered
}

// StandsStill returns why a workload may never get all new pods, or "". Possible reasons: the controller has not seen
// the object, or waits for an old pod that only a user may delete.
func StandsStill(spec rollout.Spec, live rollout.ObservedWorkload, exists bool) string {
	w := spec.Workload
	if exists && !live.Synced {
		return fmt.Sprintf("; the %s controller has not seen %s yet: is the controller running?", w.Ref().Kind, w)
	}
	for _, e := range stuck(w, live) {
		if isOrdered(spec) {
			return fmt.Sprintf("; if pod %s/%s, which has an older version, does not become ready, delete it: "+
				"Kubernetes may wait for it", e.Namespace, e.Pod.Name)
		}
	}
	return ""
}

func ordinal(p rollout.Pod) int {
	n, _ := strconv.Atoi(p.Name[strings.LastIndex(p.Name, "-")+1:])
	return n
}
