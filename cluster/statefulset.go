package cluster

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// statefulSets are apps/v1 StatefulSets: a ControllerRevision for each template,
// and pods that the StatefulSet owns itself, one for each ordinal.
var statefulSets = workloadKind{
	gvk:          appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
	read:         readStatefulSet,
	readRevision: reading(readControllerRevision),
	watchRevisions: func(b *background, kube typed, t *table[*revision]) {
		watchTyped(b, t, "controllerrevisions.apps", &appsv1.ControllerRevision{}, kube.apps.ControllerRevisions)
	},
	current: updateRevisionOf,
	pods:    podsOfRevision,
	finish:  byOrdinals,
	inUse:   isBaseOrUpdate,
}

// appsStatus are the fields in which the controllers of Deployments and StatefulSets say how far they are.
var appsStatus = rollout.PartitionStatus{
	ObservedGeneration: "status.observedGeneration", Replicas: "status.replicas", Updated: "status.updatedReplicas",
	Available: "status.availableReplicas", CurrentRevision: "status.currentRevision",
	UpdateRevision: "status.updateRevision",
}

func readStatefulSet(o rollout.Object) (*workload, error) {
	out := readFields(rollout.Partitioned{
		Partition: "spec.updateStrategy.rollingUpdate.partition", Status: appsStatus}, o)
	first, _ := rollout.In(o, "spec.ordinals.start").(int64)
	out.first = int(first)
	out.room = rollout.In(o, "spec.updateStrategy.rollingUpdate.maxUnavailable") != nil
	return out, nil
}

// updateRevisionOf is the revision that the controller says the template is, by its name or by what its pods have as a
// label, nil while it has not seen the newest template.
func updateRevisionOf(w *workload, synced bool, revisions []*revision) *revision {
	found, _ := rollout.Find(revisions, func(r *revision) bool {
		return synced && (r.name == w.update || r.pin.Value == w.update)
	})
	return found
}

// byOrdinals says of which revision the pod of each ordinal is, or will be: one that is not there is made of the base
// below the partition, and of the template from it on. The template's revision has the StatefulSet's hash, whatever it
// was made as: a StatefulSet that was adopted has one without, and a template that differs only in what the API server
// defaults has another one's.
func byOrdinals(w *workload, out *rollout.ObservedWorkload) {
	of := map[int]int{} // ordinal -> place among the revisions
	index := func(name string) int {
		return slices.IndexFunc(out.Revisions, func(r rollout.Revision) bool { return r.Name == name })
	}
	for i := range out.Revisions {
		r := &out.Revisions[i]
		r.Base = r.Name == w.base
		if r.Current && w.hash != "" {
			r.Hash = w.hash
		}
		for _, p := range r.Members {
			if n, err := strconv.Atoi(p.Name[strings.LastIndex(p.Name, "-")+1:]); err == nil {
				of[n] = i
			}
		}
	}
	out.First, out.Floor, out.Room = w.first, w.first+w.partition, w.room
	for n := w.first; n < w.first+w.replicas; n++ {
		i, there := of[n]
		switch {
		case there:
		case n < out.Floor:
			i = index(w.base)
		default:
			i = index(w.update)
		}
		if i >= 0 {
			out.Revisions[i].Desired++
		}
	}
	// The watch of revisions may lag behind the watch of StatefulSets: without the newest revision it is not synced.
	out.Synced = out.Synced && (w.update == "" || index(w.update) >= 0)
	out.Complete = out.Complete && w.base == w.update && out.Synced
}
