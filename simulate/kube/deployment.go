package kube

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
)

// microDeployment makes one step of the Deployment controller: a sync's next write, or a new sync. With Lag, outdated
// status numbers may let the controller remove more old pods than maxUnavailable allows. Kubernetes has this race too
// (scaleDownOldReplicaSetsForRollingUpdate). Tests check the strictest invariants only without Lag.
func (k *Cluster) microDeployment() string {
	for _, d := range k.shuffled() {
		if d.sets != nil {
			if did := k.microOrdinals(d); did != "" {
				return did
			}
			continue
		}
		if len(d.writes) == 0 {
			for _, rs := range d.Sets {
				if k.Lag {
					break
				}
				if live := rs.Live(); len(live) > rs.Replicas {
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
			if w.Version != w.set.Version { // a conflict, so sync again
				d.writes = nil
				return "ReplicaSet " + w.set.Name + " conflict"
			}
			if did := w.scale(); did != "" {
				return did
			}
			if len(d.writes) == 0 {
				if did := d.writeStatus(); did != "" {
					return did
				}
			}
		}
	}
	return ""
}

func (w write) scale() string {
	rs, was := w.set, w.set.Replicas
	if was == w.Replicas && rs.desiredNote == w.desired && rs.maxNote == w.most {
		return ""
	}
	if rs.late = 0; w.Replicas < was {
		rs.late = max(0, was-len(rs.Live()))
	}
	rs.Replicas, rs.desiredNote, rs.maxNote = w.Replicas, w.desired, w.most
	rs.Version++
	return fmt.Sprintf("ReplicaSet %s %d -> %d", rs.Name, was, w.Replicas)
}

// syncDeployment follows DeploymentController.syncDeployment.
func (k *Cluster) syncDeployment(d *Deployment) string {
	fresh, olds := d.split()
	did := ""
	if fresh != nil {
		did = d.copyToReplicaSet(fresh, olds)
	}
	isScaled := func(rs *ReplicaSet) bool { return rs.desiredNote != d.Replicas }
	if d.paused || slices.ContainsFunc(active(d.Sets), isScaled) {
		d.scaleProportionally(fresh, olds)
	} else if d.recreate {
		k.rolloutRecreate(d, fresh, olds)
	} else {
		if fresh == nil {
			fresh = k.createReplicaSet(d, olds)
			did = "ReplicaSet " + fresh.Name + " created"
		}
		d.rolloutRolling(fresh, olds)
	}
	if len(d.writes) > 0 {
		return did
	}
	return cmp.Or(did, d.writeStatus())
}

// split follows FindNewReplicaSet and FindOldReplicaSets. The oldest match is the new ReplicaSet.
func (d *Deployment) split() (fresh *ReplicaSet, olds []*ReplicaSet) {
	for _, rs := range d.Sets {
		if fresh == nil && rs.Template == d.Template {
			fresh = rs
		} else {
			olds = append(olds, rs)
		}
	}
	return fresh, olds
}

// copyToReplicaSet follows SetNewReplicaSetAnnotations, and getNewReplicaSet (sync.go) for minReadySeconds.
func (d *Deployment) copyToReplicaSet(fresh *ReplicaSet, olds []*ReplicaSet) string {
	number := 0
	for _, rs := range olds {
		number = max(number, rs.number)
	}
	changed := fresh.minReady != d.minReady
	for key, v := range d.Annotations {
		changed = changed || fresh.Annotations[key] != v
		fresh.Annotations[key] = v
	}
	if fresh.number < number+1 {
		fresh.number, changed = number+1, true
	}
	fresh.minReady = d.minReady
	if !changed {
		return ""
	}
	fresh.Version++
	return "ReplicaSet " + fresh.Name + " annotated"
}

func (k *Cluster) createReplicaSet(d *Deployment, olds []*ReplicaSet) *ReplicaSet {
	podHash := d.podHash()
	rs := &ReplicaSet{
		Name: d.Workload.Name + "-" + podHash, PodHash: podHash, Template: d.Template,
		Annotations: maps.Clone(d.Annotations), minReady: d.minReady, number: 1, created: k.Now,
	}
	for _, old := range olds {
		rs.number = max(rs.number, old.number+1)
	}
	surge, _ := d.fenceposts()
	rs.Replicas, rs.desiredNote, rs.maxNote = d.newReplicas(rs, olds), d.Replicas, d.Replicas+surge
	d.Sets = append(d.Sets, rs)
	return rs
}

func (d *Deployment) podHash() string {
	sum := fnv.New32a()
	sum.Write([]byte(d.Template))
	return strconv.FormatUint(uint64(sum.Sum32()), 36)
}

func sizeOf(sets []*ReplicaSet) int {
	n := 0
	for _, rs := range sets {
		n += rs.Replicas
	}
	return n
}

func active(sets []*ReplicaSet) []*ReplicaSet {
	return slices.DeleteFunc(slices.Clone(sets), func(rs *ReplicaSet) bool { return rs == nil || rs.Replicas == 0 })
}

// newReplicas follows util.NewRSNewReplicas, which reads maxSurge without ResolveFenceposts.
func (d *Deployment) newReplicas(fresh *ReplicaSet, olds []*ReplicaSet) int {
	if d.recreate {
		return d.Replicas
	}
	total, most := sizeOf(olds)+fresh.Replicas, d.Replicas+d.surge.RoundUp(d.Replicas)
	if total >= most {
		return fresh.Replicas
	}
	return fresh.Replicas + min(most-total, d.Replicas-fresh.Replicas)
}

func (d *Deployment) queue(rs *ReplicaSet, replicas int, force bool) bool {
	if !force && rs.Replicas == replicas {
		return false
	}
	surge, _ := d.fenceposts()
	d.writes = append(d.writes, write{rs, rs.Version, replicas, d.Replicas, d.Replicas + surge})
	return rs.Replicas != replicas
}

// rolloutRolling follows rolling.go.
func (d *Deployment) rolloutRolling(fresh *ReplicaSet, olds []*ReplicaSet) {
	switch {
	case fresh.Replicas > d.Replicas:
		d.queue(fresh, d.Replicas, false)
		return
	case fresh.Replicas < d.Replicas && d.queue(fresh, d.newReplicas(fresh, olds), false):
		return
	}
	olds = active(olds)
	if sizeOf(olds) == 0 {
		return
	}
	_, unavailable := d.fenceposts()
	least := d.Replicas - unavailable
	most := sizeOf(olds) + fresh.Replicas - least - (fresh.Replicas - fresh.status.available)
	if most <= 0 {
		return
	}
	size := map[*ReplicaSet]int{}
	cleaned := 0
	for _, rs := range olds { // cleanupUnhealthyReplicas
		size[rs] = rs.Replicas
		if broken := rs.Replicas - rs.status.available; cleaned < most && broken > 0 {
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

func (k *Cluster) rolloutRecreate(d *Deployment, fresh *ReplicaSet, olds []*ReplicaSet) {
	down := false
	for _, rs := range olds {
		down = d.queue(rs, 0, false) || down || len(rs.Pods) > 0
	}
	if down {
		return
	}
	if fresh == nil {
		fresh = k.createReplicaSet(d, olds)
	}
	d.queue(fresh, d.Replicas, false)
}

// scaleProportionally follows scale in sync.go.
func (d *Deployment) scaleProportionally(fresh *ReplicaSet, olds []*ReplicaSet) {
	all := active(append(slices.Clone(olds), fresh))
	switch {
	case len(all) <= 1:
		if only := activeOrLatest(all, fresh, olds); only != nil {
			d.queue(only, d.Replicas, false)
		}
		return
	case fresh != nil && fresh.Replicas == d.Replicas && fresh.desiredNote == d.Replicas &&
		fresh.status.available == d.Replicas:
		for _, rs := range active(olds) {
			d.queue(rs, 0, false)
		}
		return
	case d.recreate:
		return
	}
	surge, _ := d.fenceposts()
	allowed := 0
	if d.Replicas > 0 {
		allowed = d.Replicas + surge
	}
	toAdd := allowed - sizeOf(all)
	newest := map[*ReplicaSet]int{}
	for i, rs := range d.Sets {
		newest[rs] = i
	}
	slices.SortStableFunc(all, func(a, b *ReplicaSet) int {
		older := newest[a] - newest[b]
		if toAdd > 0 {
			older = -older
		}
		return cmp.Or(b.Replicas-a.Replicas, older)
	})
	size, added := map[*ReplicaSet]int{}, 0
	for _, rs := range all {
		part := 0
		switch left := toAdd - added; {
		case left > 0:
			part = min(d.fraction(rs), left)
		case left < 0:
			part = max(d.fraction(rs), left)
		}
		size[rs], added = rs.Replicas+part, added+part
	}
	for i, rs := range all {
		if i == 0 && toAdd != 0 {
			size[rs] = max(0, size[rs]+toAdd-added)
		}
		d.queue(rs, size[rs], true)
	}
}

// activeOrLatest follows util.FindActiveOrLatest, for at most one active ReplicaSet.
func activeOrLatest(active []*ReplicaSet, fresh *ReplicaSet, olds []*ReplicaSet) *ReplicaSet {
	switch {
	case len(active) == 1:
		return active[0]
	case fresh == nil && len(olds) > 0:
		return slices.MaxFunc(olds, func(a, b *ReplicaSet) int { return a.number - b.number })
	}
	return fresh
}

// fraction follows util.getReplicaSetFraction.
func (d *Deployment) fraction(rs *ReplicaSet) int {
	if d.Replicas == 0 {
		return -rs.Replicas
	}
	surge, _ := d.fenceposts()
	before := rs.maxNote
	if before == 0 {
		if before = d.status.Replicas; before == 0 {
			return 0
		}
	}
	scaled := float64(rs.Replicas*(d.Replicas+surge)) / float64(before)
	return int(scaled+0.5) - rs.Replicas // rounds half away from zero, like integer.RoundToInt32
}

// Moved returns by how many pods the next scaling deviates from exact proportions, because the method fraction reads an
// older total from an annotation.
func (d *Deployment) Moved() int {
	surge, _ := d.fenceposts()
	total, moved := sizeOf(d.Sets), 0
	for _, rs := range active(d.Sets) {
		off := rs.Replicas + d.fraction(rs) - rs.Replicas*(d.Replicas+surge)/total
		moved += max(off, -off)
	}
	return moved
}

func (d *Deployment) writeStatus() string {
	fresh, _ := d.split()
	was, seen := d.status, d.Observed
	d.status.Replicas, d.status.updated, d.status.available = 0, 0, 0
	for _, rs := range d.Sets {
		d.status.Replicas += rs.status.Replicas
		d.status.available += rs.status.available
	}
	if fresh != nil {
		d.status.updated = fresh.status.Replicas
	}
	d.Observed = d.Generation
	if was == d.status && seen == d.Observed {
		return ""
	}
	return "Deployment " + d.Workload.Name + " status"
}
