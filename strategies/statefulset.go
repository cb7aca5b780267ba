package strategies

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// statefulSet moves a StatefulSet by its partition: the pods of the highest ordinals
// are made of the new template, and those below the partition of the stable one. The
// controller replaces one at a time, the highest first, and waits until it is
// available, so that no walk is needed for ready pods never to be fewer than n-1.
type statefulSet struct{}

// fence is how many pods the stage asks for. It is counted anew in each pass: an
// autoscaler changes n.
func (statefulSet) fence(m moving, want counts, _ View) (fence, bool) {
	return fence{m: min(want.canary, m.n), n: m.n}, true
}

func (statefulSet) hold(o rollout.Object, f fence) {
	setMap(o, "RollingUpdate", "spec", "updateStrategy", "type")
	setMap(o, int64(f.n-f.m), "spec", "updateStrategy", "rollingUpdate", "partition")
}

// share keeps one stable pod for as long as not all pods are asked for: a set of one
// pod moves with the promotion.
func (statefulSet) share(c counts, n int, all bool) counts {
	if all || c.canary < n {
		return c
	}
	return counts{canary: max(0, n-1), stable: min(n, 1)}
}

// reached accepts more new pods than were asked for: ordinals that a scale-up brought
// before the partition was counted anew. The controller does not take them back when
// it rises, but makes them of the stable version when they go for another reason.
func (statefulSet) reached(m moving, want counts) counts {
	if want.canary == 0 || m.fresh.Desired <= want.canary {
		return want
	}
	return counts{canary: m.fresh.Desired, stable: m.n - m.fresh.Desired}
}

// Eviction is a pod that is to be deleted, if it is still the same one.
type Eviction struct {
	Namespace string
	Pod       rollout.Pod
}

// Evictions are the pods that may keep a retreat from its end: with OrderedReady the
// StatefulSet controller waits for ever for a pod of the version that is left to become
// ready before it replaces any (kubernetes#67250). They go one at a time, the highest
// ordinal first, once the controller has seen that stable alone is asked for: before
// that it would make them of the same version again.
func Evictions(s rollout.State, o rollout.Observed) (all []Eviction) {
	if s.Phase != rollout.Aborting || s.Release == nil || isHeld(s) {
		return nil
	}
	for _, w := range slices.SortedFunc(maps.Keys(s.Release.Templates), func(a, b rollout.Workload) int {
		return strings.Compare(a.String(), b.String())
	}) {
		live := o.Workloads[w]
		if kinds[w.Ref().Kind] != (statefulSet{}) || !live.Synced || live.Hash != s.StableHash(w) {
			continue
		}
		var stuck []rollout.Pod
		going := false
		for _, r := range live.Revisions {
			for _, p := range r.Members {
				going = going || p.Terminating
				if !r.Current && !p.Ready && !p.Terminating {
					stuck = append(stuck, p)
				}
			}
		}
		if len(stuck) > 0 && !going {
			highest := slices.MaxFunc(stuck, func(a, b rollout.Pod) int { return cmp.Compare(ordinal(a), ordinal(b)) })
			all = append(all, Eviction{Namespace: w.Namespace, Pod: highest})
		}
	}
	return all
}

// ordinal is the number at the end of a pod's name, 0 if there is none.
func ordinal(p rollout.Pod) int {
	n, _ := strconv.Atoi(p.Name[strings.LastIndex(p.Name, "-")+1:])
	return n
}
