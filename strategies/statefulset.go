package strategies

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// statefulSet moves a StatefulSet by its partition: the pods of the highest ordinals are made of the new template, and
// those below the partition of the stable one. The controller replaces one at a time, the highest first, and waits
// until it is available.
type statefulSet struct{ inTurn }

// fence is how many pods the stage asks for. It is counted anew in each pass: an autoscaler changes n. No stable pod
// goes while another one of them does not serve: with Parallel the controller waits for none below the one that it
// replaces. What it has been told to take already is not taken back, as those are on their way.
func (statefulSet) fence(m moving, want counts, v View) (fence, bool) {
	if m.isTakenForAll() {
		return fence{}, false
	}
	k, told := min(want.canary, m.n), onTop(m)
	if m.live.Hash != m.stable.Hash {
		told = max(told, m.n-(m.live.Floor-m.live.First))
	}
	if k > told && servingOf(m.stable, m.spec, v.Now) < m.stable.Desired {
		if k = told; m.isNextDown() {
			k++
		}
	}
	return fence{m: k, n: m.n}, k > 0
}

// onTop is how many pods of the highest ordinals are new. On the way back it is those of the lowest that still are.
func onTop(m moving) (n int) {
	isNew := func(at int) bool {
		return slices.ContainsFunc(m.fresh.Members, func(p rollout.Pod) bool { return ordinal(p) == at })
	}
	for isNew(m.live.First + m.n - 1 - n) {
		n++
	}
	return n
}

// isTakenForAll reports whether Kubernetes makes all pods of the new version, and no step has let all of them go: one
// without pods has no partition, so that its controller takes the template for what all pods are made of. Stable alone
// is asked for until that is the base again, as pods below any partition would be made of the new version.
func (m moving) isTakenForAll() bool {
	isByPartition := m.kind() == (statefulSet{}) || m.spec.Partition != nil
	return isByPartition && m.n > 0 && m.fresh.Base && m.fresh.Hash != m.stable.Hash && !m.hasAsked(m.n)
}

// hasAsked reports whether a step up to the present one asks for so many new pods.
func (m moving) hasAsked(pods int) bool {
	for i := range m.Step + 1 {
		if m.countsAt(i, m.n).canary >= pods {
			return true
		}
	}
	return false
}

// gateBase keeps a release where it is while Kubernetes takes its version for the one of all pods.
func gateBase(_ Input, m moving) verdict {
	if !m.isTakenForAll() {
		return verdict{done: true}
	}
	const why = "Kubernetes takes the new version for that of all pods, and no step asks for so many"
	text := "all pods to be of the stable version first: " + why
	return verdict{text: text, broken: why + ": all go back to the stable one first"}
}

// isNextDown reports whether the stable pod that is replaced next is not ready: nobody misses it.
func (m moving) isNextDown() bool {
	if len(m.stable.Members) == 0 {
		return false
	}
	next := slices.MaxFunc(m.stable.Members, func(a, b rollout.Pod) int { return ordinal(a) - ordinal(b) })
	return !next.Ready || next.Terminating
}

func (statefulSet) hold(o rollout.Object, f fence) {
	o.Set("RollingUpdate", "spec", "updateStrategy", "type")
	o.Set(int64(f.n-f.m), "spec", "updateStrategy", "rollingUpdate", "partition")
}

// room is for clusters that know the field. Most clusters do not: the API server drops the field, and an apply would
// never be seen to hold.
func (statefulSet) room(o rollout.Object, live rollout.ObservedWorkload) {
	if live.Room {
		orElse(o, "spec.updateStrategy.type", "RollingUpdate")
		orElse(o, "spec.updateStrategy.rollingUpdate.maxUnavailable", int64(1))
	}
}

// reached waits with rebalance until what is too many is evicted; but for once all pods were new: then they would be
// made of the new version again.
func (k statefulSet) reached(m moving, want counts) counts {
	if m.spec.Canary.Rebalance && !m.fresh.Base {
		return want
	}
	return k.inTurn.reached(m, want)
}

// surplus says why more pods are of the new version than a step asks for, "" if there are not.
func (m moving) surplus() string {
	asked, n := m.want().canary, m.fresh.Desired
	if m.kind() == (deployment{}) || asked == 0 || n <= asked {
		return ""
	}
	why := fmt.Sprintf("%d came by scaling", n-asked)
	switch p, isPartitioned := m.kind().(partitioned); {
	case m.spec.OnNodes():
		why = "a node that has no pod gets a new one"
	case isPartitioned && m.isTakenForAll():
		why = fmt.Sprintf("the controller of the %s took the new version for that of all pods", p.Kind)
	case isPartitioned:
		why = "the controller takes none of them back"
	case m.isTakenForAll():
		why = "Kubernetes took the new version for that of all pods"
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

// evict is one pod at most.
//
// In a retreat, and at a step that asks for no new pod, it is one that may keep it from its end: with OrderedReady the
// StatefulSet controller waits for ever for a pod of the version that is left to become ready before it replaces any
// (kubernetes#67250). The highest ordinal goes first, once the controller has seen that stable alone is asked for:
// before that it would make it of the same version again.
//
// At a step of a document with rebalance it is a new pod below the partition, the lowest ordinal first, those that are
// not ready before all others, and none that is while another pod does not serve.
func (statefulSet) evict(in Input, w rollout.Workload, live rollout.ObservedWorkload) []Eviction {
	s := in.State
	switch spec, _ := specOf(in, w); {
	case isHeld(s) != (s.Phase == rollout.Aborting) && live.Hash == s.StableHash(w):
		return stuck(w, live)
	case isHeld(s) && live.Hash == s.Release.Templates[w] && spec.Canary != nil && spec.Canary.Rebalance:
		return above(in, spec, live)
	default:
		return nil
	}
}

// stuck is the highest pod that is neither ready nor of the template, unless one goes already.
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

// above is the lowest pod of the template below the partition: one that is not ready, as it serves nobody, or any if
// all pods serve.
func above(in Input, spec rollout.Spec, live rollout.ObservedWorkload) (one []Eviction) {
	serving := 0
	for _, r := range live.Revisions {
		serving += r.Serving(in.Now, minReady(spec))
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

// isOrdered reports whether pods of a workload go by ordinal, and may wait for each other.
func isOrdered(spec rollout.Spec) bool {
	return kindFor(spec.Workload, spec) == (statefulSet{}) || spec.Partition != nil && spec.Partition.Ordered
}

// standsStill says what keeps a workload from having all pods of the newest template where waiting may not help, "" for
// nothing: its controller does not look at it, or waits for a pod of an older version, which nobody else may delete.
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

// ordinal is the number at the end of a pod's name, 0 if there is none.
func ordinal(p rollout.Pod) int {
	n, _ := strconv.Atoi(p.Name[strings.LastIndex(p.Name, "-")+1:])
	return n
}
