package kube

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// WorkloadOf is like rollout.WorkloadOf, but also accepts partitioned kinds.
func (k *Cluster) WorkloadOf(ref rollout.Ref) (rollout.Workload, bool) {
	w, is := rollout.WorkloadOf(ref)
	_, builtIn := rollout.FindPartitioned(nil, ref.Group+"/", ref.Kind)
	return w, is || len(builtIn) > 0 || k.described(ref) >= 0
}

func (k *Cluster) described(ref rollout.Ref) int {
	return slices.IndexFunc(k.kinds, func(p rollout.Partitioned) bool {
		return p.Ref() == rollout.Ref{Group: ref.Group, Kind: ref.Kind}
	})
}

// Describe adds a controller for a partitioned kind.
func (k *Cluster) Describe(p rollout.Partitioned) bool {
	switch i := k.described(p.Ref()); {
	case i < 0:
		k.kinds = append(k.kinds, p)
	case k.kinds[i] == p:
		return false
	default:
		k.kinds[i] = p
	}
	return true
}

func (k *Cluster) partitioned(o rollout.Object) *rollout.Partitioned {
	p, _ := rollout.FindPartitioned(k.kinds, o.APIVersion(), o.Kind())
	return p
}

// microCounts creates or deletes one pod, like a controller of unordered pods such as CloneSets (Kruise v1.8,
// pkg/controller/cloneset/sync). It creates old pods up to the partition, then new pods. If old pods exceed the
// partition, it deletes an unavailable old pod or, if all pods are available, any old pod.
func (k *Cluster) microCounts(d *Deployment, all []member) string {
	var old, fresh []member
	free, down := slices.IndexFunc(all, func(m member) bool { return m.Pod == nil }), 0
	for _, m := range all {
		switch {
		case m.Pod == nil || m.Terminating:
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
	case there < d.Replicas && len(old) < d.Partition():
		return k.createMember(d, d.sets.base, free)
	case there < d.Replicas:
		return k.createMember(d, d.sets.update, free)
	case there > d.Replicas && len(old) > d.Partition():
		return remove(old, "by a scale-down")
	case there > d.Replicas:
		return remove(fresh, "by a scale-down")
	case len(old) > d.Partition() && (down == 0 || slices.ContainsFunc(old, isDown)):
		return remove(old, "for the update")
	}
	return ""
}

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
	back := min(missing, max(0, d.Partition()-old))
	d.sets.base.Replicas += back
	d.sets.update.Replicas += missing - back
}
