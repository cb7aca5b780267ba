package kube

import (
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// forever is the minReadySeconds that stops a Deployment at a step.
const forever = 1 << 30

// NextDue returns when the next pod becomes ready or available, or zero.
func (k *Cluster) NextDue() (due time.Time) {
	for _, d := range k.Deployments {
		for _, rs := range d.Sets {
			for _, p := range rs.Pods {
				at := p.Due
				if p.Ready {
					at = p.Since.Add(time.Duration(rs.minReady) * time.Second)
				}
				if !p.Terminating && !p.Never && at.After(k.Now) && (rs.minReady < forever || !p.Ready) {
					due = rollout.Soonest(due, at)
				}
			}
		}
	}
	return due
}

// Observe returns the state of the given workloads or, without arguments, of all workloads.
func (k *Cluster) Observe(only ...rollout.Workload) rollout.Observed {
	o := rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{}}
	all := k.Deployments
	if len(only) > 0 {
		all = map[rollout.Workload]*Deployment{}
	}
	for _, w := range only {
		if d := k.Deployments[w]; d != nil {
			all[w] = d
		}
	}
	for w, d := range all {
		fresh, _ := d.split()
		if d.sets != nil {
			d.ask()
		}
		live := rollout.ObservedWorkload{
			Replicas: d.Replicas, Hash: rollout.Hash(d.Annotations[rollout.AnnotationHash]), Synced: d.Observed == d.Generation,
			Complete: d.Observed == d.Generation && d.status.updated == d.Replicas &&
				d.status.Replicas == d.Replicas && d.status.available == d.Replicas,
			Available: d.status.available, Serial: d.serial, BreakGlass: d.BreakGlass, Surge: d.surge.RoundUp(d.Replicas),
		}
		for _, rs := range d.Sets {
			r := rollout.Revision{
				Name: rs.Name, Hash: rollout.Hash(rs.Annotations[rollout.AnnotationHash]), Pin: rollout.PodHash(rs.PodHash),
				Current: rs == fresh, Number: rs.number, Desired: rs.Replicas, Pods: len(rs.Live()),
				Available: rs.status.available, Late: k.Late && rs.late > 0, Created: rs.created.Truncate(time.Second),
			}
			for _, p := range rs.Pods {
				if d.sets != nil || !p.Terminating {
					r.Members = append(r.Members, rollout.Pod{Name: p.Name, UID: p.uid, Ready: p.Ready, Terminating: p.Terminating,
						Created: p.created.Truncate(time.Second), Node: nodeOf(d, p), Role: p.Role})
				}
			}
			for _, p := range rs.Live() {
				if p.Ready {
					r.ReadySince = append(r.ReadySince, p.Since)
				} else if p.Never {
					if r.Problem = "CrashLoopBackOff"; k.Restarts {
						times := int(k.Now.Sub(p.created).Minutes())
						r.Problem = fmt.Sprintf("pod %s: CrashLoopBackOff, restarted %d times", p.Name, times)
					}
				}
			}
			slices.SortFunc(r.ReadySince, time.Time.Compare)
			live.Revisions = append(live.Revisions, r)
		}
		slices.SortFunc(live.Revisions, func(a, b rollout.Revision) int { return b.Number - a.Number })
		if d.sets != nil {
			d.observeOrdinals(&live)
		}
		o.Workloads[w] = live
	}
	return o
}

// Serves reports whether a ready pod has the pod hash or, if pin is "", any hash.
func (d *Deployment) Serves(pin string) bool {
	return slices.ContainsFunc(d.Sets, func(rs *ReplicaSet) bool {
		return (pin == "" || rs.PodHash == pin) && rs.Ready() > 0
	})
}

// Serves reports whether a Service selects a ready pod with the pod hash.
func (k *Cluster) Serves(service rollout.Ref, podHash string) bool {
	pin, exists := k.Pins[service]
	for _, d := range k.Deployments {
		if exists && d.Workload.Namespace == service.Namespace && (pin == "" || pin == podHash) && d.Serves(podHash) {
			return true
		}
	}
	return false
}
