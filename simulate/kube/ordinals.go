package kube

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// ordinals is for StatefulSets, DaemonSets and partitioned kinds.
type ordinals struct {
	parallel     bool
	byNode       bool        // the ordinal is the node's index
	byCount      bool        // unordered, as in a CloneSet, so the ordinal only names the pod
	base, update *ReplicaSet // status.currentRevision and .updateRevision
}

// ordinalsOf reads a workload's ordinals, and sets the update strategy in s. For built-in kinds, it needs no
// Partitioned.
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
	case s.countsNew: // if the field is missing, all pods are new
		s.partition = rollout.Amount{Value: 100, Percent: true}
	}
	return out
}

// Partition returns how many pods, from the lowest ordinal, keep the base revision. It rounds percentages up. With less
// than 100%, at least one unordered pod is new, as in Kruise's CalculatePartitionReplicas (v1.8, pkg/util).
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

type member struct {
	*Pod
	of *ReplicaSet
}

// members returns pods by ordinal. A missing pod has an empty member.
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

// IsUnordered reports whether a pod does not wait for pods with lower ordinals.
func (d *Deployment) IsUnordered() bool {
	return d.sets != nil && (d.sets.parallel && d.Partition() == 0 || d.sets.byCount)
}

// Base returns the version of a StatefulSet's base revision, or "".
func (d *Deployment) Base() string {
	if d.sets == nil || d.sets.base == nil {
		return ""
	}
	return VersionOf(d.sets.base.Template)
}

func (d *Deployment) isAvailable(m member, now time.Time) bool {
	return m.Pod != nil && m.Ready && !m.Terminating && now.Sub(m.Since) >= time.Duration(d.minReady)*time.Second
}

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

// microOrdered creates or deletes one pod, like the StatefulSet controller (pkg/controller/statefulset,
// stateful_set_control.go). The feature gate MaxUnavailableStatefulSet is off, the default.
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

// readOrdinals finds or creates the template's revision, and makes this revision the newest.
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

// fill creates pods from the lowest ordinal. With OrderedReady, each pod waits until lower ordinals are available.
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

// shrink deletes pods from the highest ordinal, with OrderedReady one at a time.
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
	p.Name, p.ordinal = fmt.Sprintf("%s-%d", d.Workload.Name, n), n
	return did + " as " + p.Name
}

// reportOrdinals makes a StatefulSet's update revision the base when all pods have this revision and are ready.
// Unordered pods need not be ready. A DaemonSet's base revision is always the update revision.
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

// Evict deletes the pod with this name and UID.
func (k *Cluster) Evict(namespace string, pod rollout.Pod) {
	k.change(namespace, pod, "evicted", func(p *Pod) { p.Terminating = true })
}

// SetRole sets rollout.AnnotationRole of the pod with this UID.
func (k *Cluster) SetRole(namespace string, pod rollout.Pod, role string) {
	k.change(namespace, pod, "has the role "+role, func(p *Pod) { p.Role = role })
}

func (k *Cluster) change(namespace string, pod rollout.Pod, what string, do func(*Pod)) {
	for w, d := range k.Deployments {
		for _, rs := range d.Sets {
			for _, p := range rs.Pods {
				if w.Namespace == namespace && p.uid == pod.UID && p.Name == pod.Name && !p.Terminating {
					do(p)
					d.Rests = false
					k.OnChange("pod " + p.Name + " " + what)
					return
				}
			}
		}
	}
}
