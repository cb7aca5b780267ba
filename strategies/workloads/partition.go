package workloads

import (
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// partitioned moves the pods of a rollout.Partitioned kind. Each pass computes the partition, because an autoscaler may
// change replicas. Most controllers count unready pods before they replace a pod. So Limits does not count unready
// pods.
type partitioned struct {
	inTurn
	rollout.Partitioned
}

// Limits returns the stage's number of new pods. With one pod per node, the controller ignores failed pods on other
// nodes. So Limits adds nodes only when all earlier nodes have new pods, and at most as many as room returns.
func (p partitioned) Limits(m Staged, want plan.Counts, v View) (Limits, bool) {
	if m.IsTakenForAll() {
		return Limits{}, false
	}
	k := min(want.Canary, m.N)
	if p.Nodes != "" {
		told := m.Fresh.Desired
		if m.Live.Hash != m.Stable.Hash {
			told = max(told, m.N-m.Live.Floor)
		}
		if m.Fresh.Desired == told {
			told += max(0, room(m.Spec, m.Live, v.Now))
		}
		k = min(k, told)
	}
	return Limits{Unavailable: k, Replicas: m.N}, k > 0
}

// Hold writes the partition. With an autoscaler, it writes a percentage if the kind allows one, so that the share of
// old pods stays.
func (p partitioned) Hold(o rollout.Object, f Limits) {
	old := f.Replicas - f.Unavailable
	var value any = int64(old)
	switch {
	case p.CountsNew:
		value = int64(f.Unavailable)
	case p.Percent && o.Map("spec")["replicas"] == nil:
		value = exactly(old, 100*old/f.Replicas, func(a rollout.Amount) int { return a.RoundUp(f.Replicas) })
	}
	o.Set(value, strings.Split(p.Partition, ".")...)
}

// Own undoes manual changes of the partition. It writes 0, because Kruise needs the field. Hold may then write another
// partition.
func (p partitioned) Own(o rollout.Object) {
	if !p.CountsNew {
		o.Set(int64(0), strings.Split(p.Partition, ".")...)
	}
}

// room sets default values of maxUnavailable and maxSurge, only for built-in Kruise kinds.
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

func (p partitioned) evict(in Evicting, w rollout.Workload, live rollout.ObservedWorkload) []Eviction {
	if !p.Ordered {
		return nil
	}
	return evictInOrder(in, w, live)
}
