package kube

import (
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// replicasOf is how many pods an object has that does not say it.
func (k *Cluster) replicasOf(o rollout.Object) int {
	if o.Kind() == "DaemonSet" { // Kubernetes' own, or Kruise's
		return k.Nodes
	}
	return 1
}

// defaultUnavailable is the maxUnavailable of a Deployment that does not say it, and that of a DaemonSet.
func defaultUnavailable(o rollout.Object) rollout.Amount {
	said := o.Map("spec", "updateStrategy", "rollingUpdate")["maxUnavailable"]
	switch {
	case o.Kind() != "DaemonSet":
		return rollout.Amount{Value: 25, Percent: true}
	case said != nil:
		return amountOf(said)
	default:
		return rollout.Amount{Value: 1}
	}
}

// IsByNode reports whether it is a DaemonSet.
func (d *Deployment) IsByNode() bool { return d.sets != nil && d.sets.byNode }

// nodeOf is the node of a DaemonSet's pod, "" of all others.
func nodeOf(d *Deployment, p *Pod) string {
	if !d.IsByNode() {
		return ""
	}
	return fmt.Sprintf("node-%d", p.ordinal+1)
}

// NodeLabels are the nodes, of three zones.
func (k *Cluster) NodeLabels() map[string]map[string]string {
	all := map[string]map[string]string{}
	for n := range k.Nodes {
		all[fmt.Sprintf("node-%d", n+1)] = map[string]string{"topology.kubernetes.io/zone": "local-" + string("abc"[n%3])}
	}
	return all
}

// mayGo are the members that may be replaced: of Kruise's DaemonSets those on nodes that the partition lets go. These
// are those that have a new pod or none, and then the last ones by their names (v1.8, pkg/controller/daemonset,
// daemonset_update.go: filterDaemonPodsNodeToUpdate).
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

// microNodes is the DaemonSet controller (pkg/controller/daemon), and Kruise's: one pod. It makes each pod that is
// missing of the newest template, and replaces by itself, unless it is told not to, what does not serve and as many
// others as may be missing. maxSurge is not there.
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
			p.uid, p.ordinal = p.Name, n
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
