package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"gitrollout.dev/gitrollout/rollout"
)

// statefulSets are apps/v1 StatefulSets: a ControllerRevision for each template,
// and pods that the StatefulSet owns itself, one for each ordinal.
var statefulSets = workloadKind{
	gvk:          appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
	read:         readStatefulSet,
	readRevision: readControllerRevision,
	watchRevisions: func(b *background, kube typed, t *table[*revision]) {
		watchTyped(b, t, "controllerrevisions.apps", &appsv1.ControllerRevision{},
			kube.apps.ControllerRevisions(metav1.NamespaceAll))
	},
	current: updateRevisionOf,
	pods:    podsOfRevision,
	finish:  byOrdinals,
	inUse:   isBaseOrUpdate,
}

func readStatefulSet(u *unstructured.Unstructured) (*workload, error) {
	var s appsv1.StatefulSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
		return nil, fmt.Errorf("read StatefulSet %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	out := &workload{
		generation: s.Generation,
		observed:   s.Status.ObservedGeneration,
		replicas:   1,
		total:      int(s.Status.Replicas),
		updated:    int(s.Status.UpdatedReplicas),
		available:  int(s.Status.AvailableReplicas),
		base:       s.Status.CurrentRevision,
		update:     s.Status.UpdateRevision,
	}
	if s.Spec.Replicas != nil {
		out.replicas = int(*s.Spec.Replicas)
	}
	if s.Spec.Ordinals != nil {
		out.first = int(s.Spec.Ordinals.Start)
	}
	if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		out.partition = int(*r.Partition)
	}
	return out, nil
}

// updateRevisionOf is the revision that the controller says the template is, by its name or by what its pods have as a
// label, nil while it has not seen the newest template.
func updateRevisionOf(w *workload, synced bool, revisions []*revision) *revision {
	i := slices.IndexFunc(revisions, func(r *revision) bool {
		return synced && (r.name == w.update || r.pin.Value == w.update)
	})
	if i < 0 {
		return nil
	}
	return revisions[i]
}

// byOrdinals says of which revision the pod of each ordinal is, or will be: one that
// is not there is made of the base below the partition, and of the template from it
// on. The template's revision has the StatefulSet's hash, whatever it was made as: a
// StatefulSet that was adopted has one without, and a template that differs only in
// what the API server defaults has another one's.
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
	out.First, out.Floor = w.first, w.first+w.partition
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
	out.Complete = out.Complete && w.base == w.update
}
