package kube

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// WorkloadOf is rollout.WorkloadOf, with the kinds that are moved by a partition and that this cluster serves.
func WorkloadOf(ref rollout.Ref) (rollout.Workload, bool) {
	w, is := rollout.WorkloadOf(ref)
	return w, is || slices.Contains([]string{byCounts, byNodes}, ref.Group+"/"+ref.Kind)
}

func isWorkload(ref rollout.Ref) bool { _, is := WorkloadOf(ref); return is }

// byCounts is the kind whose pods have no order.
const byCounts = "apps.kruise.io/CloneSet"

// stays is how many pods of a CloneSet keep the version before: a percentage is rounded up, and below 100 % one pod is
// new (pkg/util/tools.go of Kruise v1.8, CalculatePartitionReplicas).
func (d *Deployment) stays() int {
	p := d.keeps
	n := p.RoundUp(d.Replicas)
	if d.Replicas > 1 && n == d.Replicas && p.Percent && p.Value != 100 {
		n--
	}
	return max(0, min(n, d.Replicas))
}

// microCounts is the controller of CloneSets (pkg/controller/cloneset/sync): one pod. It makes as many of those that
// are missing of the version before as are to stay, and replaces others while all serve, or those that do not serve.
func (k *Cluster) microCounts(d *Deployment, all []member) string {
	var old, fresh []member
	free, down := -1, 0
	for n, m := range all {
		switch {
		case m.Pod == nil:
			if free < 0 {
				free = n
			}
			continue
		case m.Terminating:
			continue
		case m.of == d.sets.update:
			fresh = append(fresh, m)
		default:
			old = append(old, m)
		}
		if !d.isAvailable(m, k.Now) {
			down++
		}
	}
	if free < 0 {
		free = len(all)
	}
	isDown := func(m member) bool { return !d.isAvailable(m, k.Now) }
	remove := func(among []member, why string) string {
		m := among[max(0, slices.IndexFunc(among, isDown))]
		m.Terminating = true
		return "pod " + m.Name + " deleted " + why
	}
	switch there := len(old) + len(fresh); {
	case there < d.Replicas && len(old) < d.stays():
		return k.createMember(d, d.sets.base, free)
	case there < d.Replicas:
		return k.createMember(d, d.sets.update, free)
	case there > d.Replicas && len(old) > d.stays():
		return remove(old, "by a scale-down")
	case there > d.Replicas:
		return remove(fresh, "by a scale-down")
	case len(old) > d.stays() && (down == 0 || slices.ContainsFunc(old, isDown)):
		return remove(old, "for the update")
	}
	return ""
}

// askCounts counts the pods that each revision has or is to have.
func (d *Deployment) askCounts() {
	old, missing := 0, d.Replicas
	for _, rs := range d.Sets {
		rs.Replicas = len(rs.Live())
		missing -= rs.Replicas
		if rs != d.sets.update {
			old += rs.Replicas
		}
	}
	if d.sets.update == nil || missing <= 0 {
		return
	}
	back := min(missing, max(0, d.stays()-old))
	d.sets.base.Replicas += back
	d.sets.update.Replicas += missing - back
}
