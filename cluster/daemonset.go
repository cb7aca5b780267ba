package cluster

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"gitrollout.dev/gitrollout/rollout"
)

var daemonSets = workloadKind{
	gvk: appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
	read: func(o rollout.Object) (out *workload, err error) {
		out = readFields(rollout.Partitioned{Nodes: "status.desiredNumberScheduled", Status: rollout.PartitionStatus{
			ObservedGeneration: "status.observedGeneration", Replicas: "status.currentNumberScheduled",
			Updated: "status.updatedNumberScheduled", Available: "status.numberAvailable"}}, o)
		out.template, err = templateOf(o)
		return out, err
	},
	current: equalRevision,
	pods:    podsOfRevision,
	finish:  byNodes,
	inUse:   isOfTemplate,
	onNodes: true,
}

func isOfTemplate(objects *kind, r *revision) bool {
	l, known := objects.live.withUID(r.owner)
	return known && l.workload != nil && l.workload.hash == r.hash
}

// equalRevision returns the newest ControllerRevision with the workload's template (Match in k8s.io/kubernetes
// pkg/controller/daemon/update.go). If none matches, it returns the revision with the applied hash. Until the
// controller has seen the spec (synced), equalRevision returns nil.
func equalRevision(w *workload, synced bool, revisions []*revision) *revision {
	for _, is := range []func(*revision) bool{
		func(r *revision) bool { return r.template == w.template },
		func(r *revision) bool { return r.hash == w.hash },
	} {
		if i := slices.IndexFunc(revisions, is); i >= 0 && synced {
			return revisions[i]
		}
	}
	return nil
}

// byNodes sets each revision's desired pods. A node without a pod counts for the current revision. The current revision
// gets the DaemonSet's hash. Strays are old pods on nodes that should have no pod. Base is true for an old revision
// from before the adoption.
func byNodes(w *workload, out *rollout.ObservedWorkload) {
	left, strays := w.replicas, w.strays
	out.Floor, out.Strays = w.partition, w.strays
	for i := range out.Revisions {
		r := &out.Revisions[i]
		if r.Current && w.hash != "" {
			r.Hash = w.hash
		}
		if !r.Current {
			r.Desired, r.Base = max(0, r.Pods-strays), r.Hash == "" && r.Pods > 0
			left, strays = left-r.Desired, strays+r.Desired-r.Pods
		}
	}
	for i := range out.Revisions {
		if out.Revisions[i].Current {
			out.Revisions[i].Desired = max(0, left)
		}
	}
}
