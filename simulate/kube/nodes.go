package kube

import (
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

func unavailableOf(o rollout.Object) rollout.Amount {
	said := o.Map("spec", "updateStrategy", "rollingUpdate")["maxUnavailable"]
	switch {
	case o.Kind() != "DaemonSet":
		return amountOf(o.Map("spec", "strategy", "rollingUpdate")["maxUnavailable"])
	case said != nil:
		return amountOf(said)
	}
	return rollout.Amount{Value: 1}
}

// IsByNode reports whether each node has one pod, as in a DaemonSet.
func (d *Deployment) IsByNode() bool { return d.sets != nil && d.sets.byNode }

func nodeOf(d *Deployment, p *Pod) string {
	if !d.IsByNode() {
		return ""
	}
	return fmt.Sprintf("node-%d", p.ordinal+1)
}

// NodeLabels returns labels by node name.
func (k *Cluster) NodeLabels() map[string]map[string]string {
	all := map[string]map[string]string{}
	for n := range k.Nodes {
		all[fmt.Sprintf("node-%d", n+1)] = map[string]string{"topology.kubernetes.io/zone": "local-" + string("abc"[n%3])}
	}
	return all
}

// mayGo returns the members that the partition allows to be replaced. Members without an old pod are chosen first, then
// members on the last nodes by name (filterDaemonPodsNodeToUpdate, Kruise v1.8).
func (d *Deployment) mayGo(all []member) []member {
	all = all[:min(len(all), d.Replicas)]
	if d.Partition() == 0 {
		return all
	}
	name := func(m member) string { return nodeOf(d, m.Pod) }
	var on, rest []member
	for _, m := range all {
		if m.Pod == nil || m.Terminating || m.of == d.sets.update {
			on = append(on, m)
		} else {
			rest = append(rest, m)
		}
	}
	slices.SortFunc(rest, func(a, b member) int { return strings.Compare(name(b), name(a)) })
	return slices.Concat(on, rest)[:max(0, min(len(on)+len(rest), d.Replicas-d.Partition()))]
}

// microNodes creates or deletes one pod, like the DaemonSet controller of Kubernetes (pkg/controller/daemon) or Kruise.
// It ignores maxSurge. Unless OnDelete is set, it deletes unavailable old pods and, within maxUnavailable, available
// old pods.
func (k *Cluster) microNodes(d *Deployment, all []member) string {
	for n, m := range all {
		switch {
		case n >= d.Replicas && m.Pod != nil && !m.Terminating:
			m.Terminating = true
			return "pod " + m.Name + " deleted with its node"
		case n >= d.Replicas:
			continue
		case m.Pod == nil:
			did := k.createPod(d, d.sets.update)
			p := d.sets.update.Pods[len(d.sets.update.Pods)-1]
			p.ordinal = n
			return did + " on " + nodeOf(d, p)
		}
	}
	going, down := d.mayGo(all), 0
	for _, m := range going {
		if !d.isAvailable(m, k.Now) {
			down++
		}
	}
	for _, m := range going {
		if d.onDelete || m.Pod == nil || m.of == d.sets.update || m.Terminating {
			continue
		}
		if !d.isAvailable(m, k.Now) || down < max(1, d.unavailable.RoundUp(d.Replicas)) {
			m.Terminating = true
			return "pod " + m.Name + " deleted for the update"
		}
	}
	return ""
}
