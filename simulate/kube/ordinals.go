package kube

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// ordinals is what a StatefulSet has beside what a Deployment has. Its ReplicaSets are
// ControllerRevisions: their pods have ordinals, and the StatefulSet owns them itself.
type ordinals struct {
	parallel     bool
	byNode       bool        // it is a DaemonSet's: an ordinal is a node
	byCount      bool        // its pods have no order, as a CloneSet's: an ordinal is a name that nobody has
	base, update *ReplicaSet // status.currentRevision and .updateRevision
}

// ordinalsOf is what an object has that is no Deployment, and sets what of its settings is in its updateStrategy. By is
// where a kind that is no Kubernetes' own has its fields, nil for all others.
func ordinalsOf(o rollout.Object, by *rollout.Partitioned, s *settings) *ordinals {
	out := &ordinals{parallel: o.Map("spec")["podManagementPolicy"] == "Parallel", byNode: o.Kind() == "DaemonSet"}
	s.onDelete = o.Map("spec", "updateStrategy")["type"] == "OnDelete"
	set := o.Map("spec", "updateStrategy", "rollingUpdate")["partition"]
	if by != nil {
		out.byNode, out.byCount, s.countsNew = by.Nodes != "", by.Nodes == "" && !by.Ordered, by.CountsNew
		set = rollout.In(o, by.Partition)
	}
	switch {
	case set != nil:
		s.partition = amountOf(set)
	case s.countsNew: // all pods are
		s.partition = rollout.Amount{Value: 100, Percent: true}
	}
	return out
}

// Partition is how many pods keep the version before, 0 for a Deployment: of those with ordinals the ones below it.
// A percentage is rounded up, and where pods have no order one is new below 100 % (pkg/util/tools.go of Kruise v1.8,
// CalculatePartitionReplicas).
func (d *Deployment) Partition() int {
	if d.sets == nil {
		return 0
	}
	p := d.partition
	n := p.RoundUp(d.Replicas)
	switch {
	case d.countsNew:
		n = d.Replicas - n
	case d.sets.byCount && d.Replicas > 1 && n == d.Replicas && p.Percent && p.Value != 100:
		n--
	}
	if d.sets.byCount {
		n = min(n, d.Replicas)
	}
	return max(0, n)
}

// member is the pod of one ordinal.
type member struct {
	*Pod
	of *ReplicaSet
}

// members are the pods of a StatefulSet by their ordinals, from 0 to the highest that is there or asked for.
func (d *Deployment) members() []member {
	all := make([]member, d.Replicas)
	for _, rs := range d.Sets {
		for _, p := range rs.Pods {
			for p.ordinal >= len(all) {
				all = append(all, member{})
			}
			all[p.ordinal] = member{p, rs}
		}
	}
	return all
}

// IsUnordered reports whether it is a StatefulSet without a partition whose controller waits for no pod below
// the one that it replaces.
func (d *Deployment) IsUnordered() bool {
	return d.sets != nil && (d.sets.parallel && d.Partition() == 0 || d.sets.byCount)
}

// Base is the version of which the pods of a StatefulSet below its partition are made, "" for a Deployment.
func (d *Deployment) Base() string {
	if d.sets == nil || d.sets.base == nil {
		return ""
	}
	return VersionOf(d.sets.base.Template)
}

// isAvailable reports whether a pod counts for the StatefulSet controller.
func (d *Deployment) isAvailable(m member, now time.Time) bool {
	return m.Pod != nil && m.Ready && !m.Terminating && now.Sub(m.Since) >= time.Duration(d.minReady)*time.Second
}

// microOrdinals is the controller of a StatefulSet, or of what is like one: one pod, or the status.
func (k *Cluster) microOrdinals(d *Deployment) (did string) {
	if d.Observed != d.Generation || d.sets.update == nil {
		return k.readOrdinals(d)
	}
	switch all := d.members(); {
	case d.sets.byNode:
		did = k.microNodes(d, all)
	case d.sets.byCount:
		did = k.microCounts(d, all)
	default:
		did = k.microOrdered(d, all)
	}
	if did != "" {
		return did
	}
	return d.reportOrdinals(k.Now)
}

// microOrdered is the StatefulSet controller (pkg/controller/statefulset, stateful_set_control.go): one pod.
// MaxUnavailableStatefulSet is off, as it is by default.
func (k *Cluster) microOrdered(d *Deployment, all []member) string {
	if did, stop := k.fill(d, all); stop {
		return did
	}
	if did, stop := k.shrink(d, all); stop {
		return did
	}
	for n := d.Replicas - 1; n >= d.Partition(); n-- {
		m := all[n]
		if m.of != d.sets.update && !m.Terminating {
			m.Terminating = true
			return fmt.Sprintf("pod %s deleted for the update", m.Name)
		}
		if !d.isAvailable(m, k.Now) {
			break
		}
	}
	return ""
}

// readOrdinals finds or makes the revision of the template. An older one that is the template again becomes the newest.
func (k *Cluster) readOrdinals(d *Deployment) string {
	newest := 0
	for _, rs := range d.Sets {
		newest = max(newest, rs.number)
		rs.minReady = d.minReady
	}
	i := slices.IndexFunc(d.Sets, func(rs *ReplicaSet) bool { return rs.Template == d.Template })
	if i < 0 {
		name := d.Workload.Name + "-" + d.podHash()
		d.Sets = append(d.Sets, &ReplicaSet{Name: name, PodHash: name, Template: d.Template,
			Annotations: maps.Clone(d.Annotations), minReady: d.minReady})
		i = len(d.Sets) - 1
	}
	if d.sets.update = d.Sets[i]; d.sets.update.number < newest || d.sets.update.number == 0 {
		d.sets.update.number = newest + 1
	}
	if d.sets.base == nil {
		d.sets.base = d.sets.update
	}
	d.Observed = d.Generation
	d.reportOrdinals(k.Now)
	return d.Workload.Kind + " " + d.Workload.Name + " is at " + d.sets.update.Name
}

// fill makes the pods that are missing, from the lowest ordinal on. With OrderedReady each waits for the one before it.
func (k *Cluster) fill(d *Deployment, all []member) (did string, stop bool) {
	for n := range d.Replicas {
		switch m := all[n]; {
		case m.Pod == nil:
			rs := d.sets.update
			if n < d.Partition() {
				rs = d.sets.base
			}
			return k.createMember(d, rs, n), true
		case !d.sets.parallel && !d.isAvailable(m, k.Now):
			return "", true
		}
	}
	return "", false
}

// shrink deletes the pods above the number that is asked for, from the highest ordinal on. With OrderedReady it
// waits for each to be gone.
func (k *Cluster) shrink(d *Deployment, all []member) (did string, stop bool) {
	for n := len(all) - 1; n >= d.Replicas; n-- {
		switch m := all[n]; {
		case m.Pod == nil:
		case !m.Terminating:
			m.Terminating = true
			return fmt.Sprintf("pod %s deleted by a scale-down", m.Name), true
		case !d.sets.parallel:
			return "", true
		}
	}
	return "", false
}

func (k *Cluster) createMember(d *Deployment, rs *ReplicaSet, n int) string {
	did := k.createPod(d, rs)
	p := rs.Pods[len(rs.Pods)-1]
	p.uid, p.Name, p.ordinal = p.Name, fmt.Sprintf("%s-%d", d.Workload.Name, n), n
	return did + " as " + p.Name
}

// reportOrdinals writes the status; the update revision becomes the base when all pods are of it and ready.
func (d *Deployment) reportOrdinals(now time.Time) string {
	was, base := d.status, d.sets.base
	d.status.Replicas, d.status.updated, d.status.available = 0, 0, 0
	ready := 0
	for _, m := range d.members() {
		if m.Pod == nil {
			continue
		}
		d.status.Replicas++
		if m.of == d.sets.update && !m.Terminating {
			d.status.updated++
		}
		if m.Ready && !m.Terminating {
			ready++
		}
		if d.isAvailable(m, now) {
			d.status.available++
		}
	}
	s := d.status
	isAll := s.updated == s.Replicas && s.Replicas == d.Replicas
	if isAll && (ready == s.Replicas || d.sets.byCount) || d.sets.byNode {
		d.sets.base = d.sets.update
	}
	if was == d.status && base == d.sets.base {
		return ""
	}
	return d.Workload.Kind + " " + d.Workload.Name + " status"
}

// ask counts for each revision the pods that it has or is to have, as spec.replicas of a ReplicaSet.
func (d *Deployment) ask() {
	if d.sets.byCount {
		d.askCounts()
		return
	}
	for _, rs := range d.Sets {
		rs.Replicas = 0
	}
	for n, m := range d.members()[:d.Replicas] {
		switch rs := m.of; {
		case d.sets.update == nil:
		case rs != nil && !(d.sets.byNode && m.Terminating):
			rs.Replicas++
		case n < d.Partition():
			d.sets.base.Replicas++
		default:
			d.sets.update.Replicas++
		}
	}
}

// observeOrdinals adds to what is shown of a workload what is so of a StatefulSet alone.
func (d *Deployment) observeOrdinals(live *rollout.ObservedWorkload) {
	live.Floor = d.Partition()
	live.Complete = live.Complete && d.sets.base == d.sets.update
	for i := range live.Revisions {
		r := &live.Revisions[i]
		rs := d.Sets[slices.IndexFunc(d.Sets, func(rs *ReplicaSet) bool { return rs.Name == r.Name })]
		r.Pin = rollout.Pin{Label: rollout.LabelRevision, Value: rs.Name}
		r.Base, r.Current, r.Available = rs == d.sets.base, live.Synced && rs == d.sets.update, 0
		if r.Current {
			r.Hash = live.Hash
		}
		if d.sets.byNode {
			r.Base = !r.Current && r.Hash == "" && r.Pods > 0
		}
	}
}

// UID tells a StatefulSet's pod from others of its name, and a DaemonSet's from all others.
func (p *Pod) UID() string { return p.uid }

// Evict deletes a pod, if it is still the same one.
func (k *Cluster) Evict(namespace string, pod rollout.Pod) {
	for w, d := range k.Deployments {
		if w.Namespace != namespace || d.sets == nil {
			continue
		}
		for _, m := range d.members() {
			if m.Pod != nil && m.uid == pod.UID && m.Name == pod.Name && !m.Terminating {
				m.Terminating = true
				k.OnChange("pod " + m.Name + " evicted")
			}
		}
	}
}
