package strategies

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// statefulSet moves a StatefulSet by its partition: pods from that ordinal on get the new template. The controller
// replaces one pod at a time, the highest first, and waits until it is available.
type statefulSet struct{ inTurn }

// limits returns the new pods of the stage, counted in each pass as an autoscaler changes n. No stable pod is replaced
// while another does not serve: Parallel does not wait for lower ordinals. Released pods are not taken back.
func (statefulSet) limits(m workload, want plan.Counts, v View) (limits, bool) {
	if m.isTakenForAll() {
		return limits{}, false
	}
	k, told := min(want.Canary, m.n), onTop(m)
	if m.live.Hash != m.stable.Hash {
		told = max(told, m.n-(m.live.Floor-m.live.First))
	}
	if k > told && servingOf(m.stable, m.Spec, v.Now) < m.stable.Desired {
		if k = told; m.isNextDown() {
			k++
		}
	}
	return limits{unavailable: k, replicas: m.n}, k > 0
}

// onTop returns how many pods are new from the highest ordinal down without a gap.
func onTop(m workload) (n int) {
	isNew := func(at int) bool {
		return slices.ContainsFunc(m.fresh.Members, func(p rollout.Pod) bool { return ordinal(p) == at })
	}
	for isNew(m.live.First + m.n - 1 - n) {
		n++
	}
	return n
}

// isTakenForAll reports whether Kubernetes uses the new version for all pods although no step asks for that: without
// pods a partition has no effect. Only stable is applied until it is the base again.
func (m workload) isTakenForAll() bool {
	isByPartition := m.kind() == (statefulSet{}) || m.Spec.Partition != nil
	return isByPartition && m.n > 0 && m.fresh.Base && m.fresh.Hash != m.stable.Hash && !m.hasAsked(m.n)
}

// hasAsked reports whether a step up to the present one asks for at least so many new pods.
func (m workload) hasAsked(pods int) bool {
	for i := range m.Step + 1 {
		if m.CountsAt(i, m.n).Canary >= pods {
			return true
		}
	}
	return false
}

// gateBase keeps a release at its step while Kubernetes uses its version for all pods.
func gateBase(_ Input, m workload) verdict {
	if !m.isTakenForAll() {
		return verdict{done: true}
	}
	const why = "Kubernetes takes the new version for all pods, and no step asks for so many"
	text := "all pods to be of the stable version first: " + why
	return verdict{text: text, broken: why + ": all go back to the stable one first"}
}

// isNextDown reports whether the next stable pod to replace is not ready, so that no capacity is lost.
func (m workload) isNextDown() bool {
	if len(m.stable.Members) == 0 {
		return false
	}
	next := slices.MaxFunc(m.stable.Members, func(a, b rollout.Pod) int { return ordinal(a) - ordinal(b) })
	return !next.Ready || next.Terminating
}

func (statefulSet) hold(o rollout.Object, f limits) {
	o.Set("RollingUpdate", "spec", "updateStrategy", "type")
	o.Set(int64(f.replicas-f.unavailable), "spec", "updateStrategy", "rollingUpdate", "partition")
}

// room sets maxUnavailable where the cluster knows the field. Others drop it: an apply would always seem incomplete.
func (statefulSet) room(o rollout.Object, live rollout.ObservedWorkload) {
	if live.Room {
		orElse(o, "spec.updateStrategy.type", "RollingUpdate")
		orElse(o, "spec.updateStrategy.rollingUpdate.maxUnavailable", int64(1))
	}
}

// reached waits, with rebalance, until surplus new pods are evicted, unless all were new and would come back.
func (k statefulSet) reached(m workload, want plan.Counts) plan.Counts {
	if m.Spec.Canary.Rebalance && !m.fresh.Base {
		return want
	}
	return k.inTurn.reached(m, want)
}

// surplus returns why more pods are of the new version than the step asks for, "" if not.
func (m workload) surplus() string {
	asked, n := m.want().Canary, m.fresh.Desired
	if m.kind() == (deployment{}) || asked == 0 || n <= asked {
		return ""
	}
	why := fmt.Sprintf("%d came by scaling", n-asked)
	switch p, isPartitioned := m.kind().(partitioned); {
	case m.Spec.OnNodes():
		why = "a node that has no pod gets a new one"
	case isPartitioned && m.isTakenForAll():
		why = fmt.Sprintf("the controller of the %s took the new version for all pods", p.Kind)
	case isPartitioned:
		why = "the controller takes none of them back"
	case m.isTakenForAll():
		why = "Kubernetes took the new version for all pods"
	case m.hasAsked(n):
		why = "an earlier step asked for more"
	}
	var broken []string
	for _, p := range m.fresh.Members {
		if !p.Ready && !p.Terminating && m.kind() == (statefulSet{}) && ordinal(p) < m.live.First+m.n-asked {
			broken = append(broken, p.Name)
		}
	}
	if len(broken) > 0 {
		why += "; of those not ready: " + strings.Join(broken, ", ")
	}
	return fmt.Sprintf("%d of %d new, %d asked: %s", n, m.n, asked, why)
}

// evict returns at most one pod: with rebalance a new one below the partition, otherwise one blocking the controller.
func (statefulSet) evict(in Input, w rollout.Workload, live rollout.ObservedWorkload) (one []Eviction) {
	s := in.State
	spec, _ := specOf(in, w)
	if isHeld(s) && live.Hash == s.Release.Templates[w] && spec.Canary != nil && spec.Canary.Rebalance {
		one = above(in, spec, live)
	}
	if one == nil {
		one = evictInOrder(in, w, live)
	}
	return one
}

// evictInOrder returns the highest pod of an older version that is not ready. With OrderedReady the controller replaces
// no pod while another one is not ready (kubernetes#67250).
//
// In a rollback, and at a step without new pods, that is a pod of the abandoned version, once the controller has seen
// the stable template: earlier it would come back. Otherwise it is a stable pod at or above the partition.
func evictInOrder(in Input, w rollout.Workload, live rollout.ObservedWorkload) []Eviction {
	s := in.State
	render := in.renderOf(s.Release.Hash)
	switch {
	case isHeld(s) != (s.Phase == rollout.Aborting) && live.Hash == s.StableHash(w):
		return stuck(w, live)
	case render != nil && live.Hash == s.Release.Templates[w] &&
		render.ByRef()[w.Ref()].Map("spec")["podManagementPolicy"] != "Parallel":
		return slices.DeleteFunc(stuck(w, live), func(e Eviction) bool { return ordinal(e.Pod) < live.Floor })
	default:
		return nil
	}
}

// stuck returns the highest pod that is neither ready nor of the template, unless a pod is terminating already.
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

// above returns the lowest pod of the template below the partition: one that is not ready, or any if all are ready.
func above(in Input, spec rollout.Spec, live rollout.ObservedWorkload) (one []Eviction) {
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

// isOrdered reports whether pods are replaced by ordinal and may wait for each other.
func isOrdered(spec rollout.Spec) bool {
	return kindFor(spec.Workload, spec) == (statefulSet{}) || spec.Partition != nil && spec.Partition.Ordered
}

// standsStill returns why a workload may never get all new pods, "" if unknown. No controller observes it, or it
// waits for an old pod that only a user may delete.
func standsStill(spec rollout.Spec, live rollout.ObservedWorkload, exists bool) string {
	w := spec.Workload
	if exists && !live.Synced {
		return fmt.Sprintf("; the %s controller has not seen %s yet: does it run?", w.Ref().Kind, w)
	}
	for _, e := range stuck(w, live) {
		if isOrdered(spec) {
			return fmt.Sprintf("; if pod %s/%s, which is of an older version, does not become ready, delete it: "+
				"Kubernetes may wait for it", e.Namespace, e.Pod.Name)
		}
	}
	return ""
}

// ordinal returns the number at the end of a pod's name, 0 if there is none.
func ordinal(p rollout.Pod) int {
	n, _ := strconv.Atoi(p.Name[strings.LastIndex(p.Name, "-")+1:])
	return n
}
