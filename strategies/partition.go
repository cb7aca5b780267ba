package strategies

import (
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// partitioned moves a workload of a kind that is described by its fields: by its partition, which is counted anew in
// each pass, because an autoscaler changes n. Its own controller does the rest within what its updateStrategy allows:
// it counts all pods that do not serve before it replaces another one.
type partitioned struct {
	inTurn
	rollout.Partitioned
}

// fence is as many pods as the stage asks for. But where there is a pod on each node, the controller counts those on
// nodes that the partition lets go, and no other: so that lets go no more at a time than may be without a pod that
// serves. What it has let go is not taken back: a pod may be on its way of which nobody has said what it is.
func (p partitioned) fence(m moving, want counts, v View) (fence, bool) {
	if m.isTakenForAll() {
		return fence{}, false
	}
	k := min(want.canary, m.n)
	if p.Nodes != "" {
		told := m.fresh.Desired
		if m.live.Hash != m.stable.Hash {
			told = max(told, m.n-m.live.Floor)
		}
		if m.fresh.Desired == told {
			told += max(0, roomOnNodes(m.spec, m.live, v.Now))
		}
		k = min(k, told)
	}
	return fence{m: k, n: m.n}, k > 0
}

// hold writes a percentage where an autoscaler sets the number of pods and one says the same, so that the share stays
// when it does: of 3 pods 2 stay old at 66 %, which the controller rounds up.
func (p partitioned) hold(o rollout.Object, f fence) {
	old := f.n - f.m
	var value any = int64(old)
	switch {
	case p.CountsNew:
		value = int64(f.m)
	case p.Percent && o.Map("spec")["replicas"] == nil:
		value = exactly(old, 100*old/f.n, func(a rollout.Amount) int { return a.RoundUp(f.n) })
	}
	o.Set(value, strings.Split(p.Partition, ".")...)
}

// own is what nobody else may set, at any time: all pods are asked for where no step asks for fewer, so that what
// somebody has set is undone. Kruise's StatefulSets cannot do without a partition.
func (p partitioned) own(o rollout.Object) {
	if !p.CountsNew {
		o.Set(int64(0), strings.Split(p.Partition, ".")...)
	}
}

// room is beside the partition. What a kind of a configuration has there, and as what, nobody says.
func (p partitioned) room(o rollout.Object, _ rollout.ObservedWorkload) {
	at := p.Partition[:max(0, strings.LastIndex(p.Partition, "."))]
	switch {
	case p.Unavailable == nil:
	case p.Nodes != "":
		onNodes(o, at, p.Unavailable)
	default:
		orElse(o, at+".maxUnavailable", p.Unavailable)
		if p.Surges {
			orElse(o, at+".maxSurge", int64(0))
		}
	}
}

// evict is what a StatefulSet's is in a retreat, where pods are replaced in order: each waits for those before it.
func (p partitioned) evict(in Input, w rollout.Workload, live rollout.ObservedWorkload) []Eviction {
	s := in.State
	if p.Ordered && isHeld(s) != (s.Phase == rollout.Aborting) && live.Hash == s.StableHash(w) {
		return stuck(w, live)
	}
	return nil
}
