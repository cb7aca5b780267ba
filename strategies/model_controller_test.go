package strategies

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
)

// microDeployment is the Deployment controller: the next write of the sync that
// is under way, or a new sync.
//
// With lag it may work with numbers that ReplicaSets reported before its last
// write. Kubernetes itself then removes more old pods than maxUnavailable
// allows: scaleDownOldReplicaSetsForRollingUpdate counts the old pods that are
// on their way out as available (12 old, 12 new, maxSurge 100%, 2 ready: 12 ->
// 11 -> 9). No user of a Deployment can prevent that, so the strictest
// invariants are checked without lag.
func (k *kube) microDeployment() string {
	for _, d := range k.shuffled() {
		if len(d.writes) == 0 {
			for _, rs := range d.sets {
				if k.lag {
					break
				}
				if live := rs.live(); len(live) > rs.replicas {
					return k.deletePod(live)
				}
				k.report(rs)
			}
			if did := k.syncDeployment(d); did != "" {
				return did
			}
		}
		for len(d.writes) > 0 {
			w := d.writes[0]
			d.writes = d.writes[1:]
			if w.version != w.set.version { // a conflict: the controller tries again from the start
				d.writes = nil
				return "ReplicaSet " + w.set.name + " conflict"
			}
			if did := d.scale(w.set, w.replicas); did != "" {
				return did
			}
		}
	}
	return ""
}

func (d *deployment) scale(rs *replicaSet, replicas int) string {
	surge, _ := d.fenceposts()
	was := rs.replicas
	if rs.replicas == replicas && rs.desiredNote == d.replicas && rs.maxNote == d.replicas+surge {
		return ""
	}
	rs.replicas, rs.desiredNote, rs.maxNote = replicas, d.replicas, d.replicas+surge
	rs.version++
	return fmt.Sprintf("ReplicaSet %s %d -> %d", rs.name, was, replicas)
}

// syncDeployment is DeploymentController.syncDeployment. It queues what it
// would write to ReplicaSets and writes the rest at once.
func (k *kube) syncDeployment(d *deployment) string {
	fresh, olds := d.split()
	did := ""
	if fresh != nil {
		did = d.copyToReplicaSet(fresh, olds)
	}
	if d.isScalingEvent() {
		d.scaleProportionally(fresh, olds)
	} else if d.recreate {
		k.rolloutRecreate(d, fresh, olds)
	} else {
		if fresh == nil {
			fresh = k.createReplicaSet(d, olds)
			did = "ReplicaSet " + fresh.name + " created"
		}
		d.rolloutRolling(fresh, olds)
	}
	if wrote := d.writeStatus(fresh); wrote != "" && did == "" {
		did = wrote
	}
	return did
}

// split is FindNewReplicaSet (the oldest of equals) and FindOldReplicaSets.
func (d *deployment) split() (fresh *replicaSet, olds []*replicaSet) {
	for _, rs := range d.sets {
		if fresh == nil && rs.template == d.template {
			fresh = rs
		} else {
			olds = append(olds, rs)
		}
	}
	return fresh, olds
}

// copyToReplicaSet is SetNewReplicaSetAnnotations and the minReadySeconds that
// only the new ReplicaSet is given (sync.go, getNewReplicaSet).
func (d *deployment) copyToReplicaSet(fresh *replicaSet, olds []*replicaSet) string {
	number := 0
	for _, rs := range olds {
		number = max(number, rs.number)
	}
	changed := fresh.minReady != d.minReady
	for key, v := range d.annotations {
		changed = changed || fresh.annotations[key] != v
		fresh.annotations[key] = v
	}
	if fresh.number < number+1 {
		fresh.number, changed = number+1, true
	}
	fresh.minReady = d.minReady
	if !changed {
		return ""
	}
	fresh.version++
	return "ReplicaSet " + fresh.name + " annotated"
}

func (k *kube) createReplicaSet(d *deployment, olds []*replicaSet) *replicaSet {
	sum := fnv.New32a()
	sum.Write([]byte(d.template))
	podHash := strconv.FormatUint(uint64(sum.Sum32()), 36)
	rs := &replicaSet{
		name: d.workload.Name + "-" + podHash, podHash: podHash, template: d.template,
		annotations: maps.Clone(d.annotations), minReady: d.minReady, number: 1,
	}
	for _, old := range olds {
		rs.number = max(rs.number, old.number+1)
	}
	surge, _ := d.fenceposts()
	rs.replicas, rs.desiredNote, rs.maxNote = d.newReplicas(rs, olds), d.replicas, d.replicas+surge
	d.sets = append(d.sets, rs)
	return rs
}

func sizeOf(sets []*replicaSet) int {
	n := 0
	for _, rs := range sets {
		n += rs.replicas
	}
	return n
}

func active(sets []*replicaSet) []*replicaSet {
	return slices.DeleteFunc(slices.Clone(sets), func(rs *replicaSet) bool { return rs == nil || rs.replicas == 0 })
}

// newReplicas is util.NewRSNewReplicas. It resolves maxSurge without
// fenceposts.
func (d *deployment) newReplicas(fresh *replicaSet, olds []*replicaSet) int {
	if d.recreate {
		return d.replicas
	}
	total, most := sizeOf(olds)+fresh.replicas, d.replicas+d.surge.RoundUp(d.replicas)
	if total >= most {
		return fresh.replicas
	}
	return fresh.replicas + min(most-total, d.replicas-fresh.replicas)
}

func (d *deployment) queue(rs *replicaSet, replicas int, force bool) bool {
	if !force && rs.replicas == replicas {
		return false
	}
	d.writes = append(d.writes, write{set: rs, version: rs.version, replicas: replicas})
	return rs.replicas != replicas
}

// rolloutRolling is rolling.go: scale up if we can, else scale down if we can.
func (d *deployment) rolloutRolling(fresh *replicaSet, olds []*replicaSet) {
	switch {
	case fresh.replicas > d.replicas:
		d.queue(fresh, d.replicas, false)
		return
	case fresh.replicas < d.replicas && d.queue(fresh, d.newReplicas(fresh, olds), false):
		return
	}
	olds = active(olds)
	if sizeOf(olds) == 0 {
		return
	}
	_, unavailable := d.fenceposts()
	least := d.replicas - unavailable
	most := sizeOf(olds) + fresh.replicas - least - (fresh.replicas - fresh.status.available)
	if most <= 0 {
		return
	}
	size := map[*replicaSet]int{}
	cleaned := 0
	for _, rs := range olds { // cleanupUnhealthyReplicas
		size[rs] = rs.replicas
		if broken := rs.replicas - rs.status.available; cleaned < most && broken > 0 {
			n := min(most-cleaned, broken)
			size[rs] -= n
			cleaned += n
		}
	}
	available := fresh.status.available
	for _, rs := range olds {
		available += rs.status.available
	}
	for _, rs := range olds { // scaleDownOldReplicaSetsForRollingUpdate
		if n := min(size[rs], available-least); n > 0 {
			size[rs] -= n
			available -= n
		}
		d.queue(rs, size[rs], false)
	}
}

func (k *kube) rolloutRecreate(d *deployment, fresh *replicaSet, olds []*replicaSet) {
	down := false
	for _, rs := range olds {
		down = d.queue(rs, 0, false) || down
	}
	for _, rs := range olds {
		down = down || len(rs.pods) > 0
	}
	if down {
		return
	}
	if fresh == nil {
		fresh = k.createReplicaSet(d, olds)
	}
	d.queue(fresh, d.replicas, false)
}

func (d *deployment) isScalingEvent() bool {
	for _, rs := range active(d.sets) {
		if rs.desiredNote != d.replicas {
			return true
		}
	}
	return false
}

// scaleProportionally is sync.go's scale.
func (d *deployment) scaleProportionally(fresh *replicaSet, olds []*replicaSet) {
	all := active(append(slices.Clone(olds), fresh))
	switch {
	case len(all) == 1:
		d.queue(all[0], d.replicas, false)
		return
	case len(all) == 0:
		return // no active set has a note that differs
	case fresh != nil && fresh.replicas == d.replicas && fresh.desiredNote == d.replicas && fresh.status.available == d.replicas:
		for _, rs := range active(olds) {
			d.queue(rs, 0, false)
		}
		return
	case d.recreate:
		return
	}
	surge, _ := d.fenceposts()
	allowed := 0
	if d.replicas > 0 {
		allowed = d.replicas + surge
	}
	toAdd := allowed - sizeOf(all)
	newest := map[*replicaSet]int{}
	for i, rs := range d.sets {
		newest[rs] = i
	}
	slices.SortStableFunc(all, func(a, b *replicaSet) int {
		switch {
		case a.replicas != b.replicas:
			return b.replicas - a.replicas
		case toAdd > 0:
			return newest[b] - newest[a]
		default:
			return newest[a] - newest[b]
		}
	})
	size, added := map[*replicaSet]int{}, 0
	for _, rs := range all {
		part := 0
		if toAdd != 0 && toAdd != added {
			part = d.fraction(rs)
			if toAdd > 0 {
				part = min(part, toAdd-added)
			} else {
				part = max(part, toAdd-added)
			}
		}
		size[rs], added = rs.replicas+part, added+part
	}
	for i, rs := range all {
		if i == 0 && toAdd != 0 {
			size[rs] = max(0, size[rs]+toAdd-added)
		}
		d.queue(rs, size[rs], true)
	}
}

// fraction is util.getReplicaSetFraction.
func (d *deployment) fraction(rs *replicaSet) int {
	if d.replicas == 0 {
		return -rs.replicas
	}
	surge, _ := d.fenceposts()
	before := rs.maxNote
	if before == 0 {
		if before = d.status.replicas; before == 0 {
			return 0
		}
	}
	scaled := float64(rs.replicas*(d.replicas+surge)) / float64(before)
	return int(scaled+0.5) - rs.replicas // integer.RoundToInt32: half away from zero
}

func (d *deployment) writeStatus(fresh *replicaSet) string {
	was, seen := d.status, d.observed
	d.status.replicas, d.status.updated, d.status.available = 0, 0, 0
	for _, rs := range d.sets {
		d.status.replicas += rs.status.replicas
		d.status.available += rs.status.available
	}
	if fresh != nil {
		d.status.updated = fresh.status.replicas
	}
	d.observed = d.generation
	if was == d.status && seen == d.observed {
		return ""
	}
	return "Deployment " + d.workload.Name + " status"
}
