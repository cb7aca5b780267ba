package cluster

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"gitrollout.dev/gitrollout/rollout"
)

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

var appsStatus = rollout.PartitionStatus{
	ObservedGeneration: "status.observedGeneration", Replicas: "status.replicas", Updated: "status.updatedReplicas",
	Available: "status.availableReplicas", CurrentRevision: "status.currentRevision",
	UpdateRevision: "status.updateRevision",
}

func readStatefulSet(o rollout.Object) (*workload, error) {
	out := readFields(rollout.Partitioned{Partition: "spec.updateStrategy.rollingUpdate.partition", Status: appsStatus}, o)
	out.room = rollout.In(o, "spec.updateStrategy.rollingUpdate.maxUnavailable") != nil
	return out, nil
}

func updateRevisionOf(w *workload, synced bool, revisions []*revision) *revision {
	found, _ := rollout.Find(revisions, func(r *revision) bool {
		return synced && (r.name == w.update || r.pin.Value == w.update)
	})
	return found
}

// byOrdinals sets each revision's desired pods. A missing pod below the partition counts for the base (old) revision.
// Other missing pods count for the newest revision. The current revision gets the StatefulSet's hash, because the
// revision's annotation may be missing or outdated.
func byOrdinals(w *workload, out *rollout.ObservedWorkload) {
	of := map[int]int{} // index in out.Revisions by ordinal
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
		if !there {
			i = index(map[bool]string{true: w.base, false: w.update}[n < out.Floor])
		}
		if i >= 0 {
			out.Revisions[i].Desired++
		}
	}
	// Synced stays false until the watch has the newest revision.
	out.Synced = out.Synced && (w.update == "" || index(w.update) >= 0)
	out.Complete = out.Complete && w.base == w.update && out.Synced
}
