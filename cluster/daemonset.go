package cluster

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// daemonSets are apps/v1 DaemonSets: a ControllerRevision for each template, and pods that the DaemonSet owns itself,
// one for each node that is to have one.
var daemonSets = workloadKind{
	gvk:     appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
	read:    readDaemonSet,
	current: equalRevision,
	pods:    podsOfRevision,
	finish:  byNodes,
	inUse:   isOfTemplate,
	onNodes: true,
}

// isOfTemplate reports whether a workload makes pods of a revision: of the newest template alone.
func isOfTemplate(objects *kind, r *revision) bool {
	l, known := objects.live.withUID(r.owner)
	return known && l.workload != nil && l.workload.hash == r.hash
}

func readDaemonSet(o rollout.Object) (out *workload, err error) {
	out = readFields(rollout.Partitioned{Nodes: "status.desiredNumberScheduled", Status: rollout.PartitionStatus{
		ObservedGeneration: "status.observedGeneration", Replicas: "status.currentNumberScheduled",
		Updated: "status.updatedNumberScheduled", Available: "status.numberAvailable"}}, o)
	out.template, err = templateOf(o)
	return out, err
}

// equalRevision is the newest one that is the template, as the controller has it (k8s.io/kubernetes
// pkg/controller/daemon, update.go: Match), or where none is, as with a controller of another Kubernetes than the API
// server, one that was made for what was applied. Its number alone does not tell: the watches of DaemonSets and of
// ControllerRevisions are not in step.
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

// byNodes says how many nodes are, or will be, of each revision: those without a pod are of the newest one. Its hash is
// the DaemonSet's, whatever it was made as. A revision with pods and without a hash was there when the DaemonSet was
// adopted.
func byNodes(w *workload, out *rollout.ObservedWorkload) {
	left := w.replicas
	out.Floor = w.partition
	for i := range out.Revisions {
		r := &out.Revisions[i]
		if r.Current && w.hash != "" {
			r.Hash = w.hash
		}
		if !r.Current {
			r.Desired, r.Base = r.Pods, r.Hash == "" && r.Pods > 0
			left -= r.Pods
		}
	}
	for i := range out.Revisions {
		if out.Revisions[i].Current {
			out.Revisions[i].Desired = max(0, left)
		}
	}
}
