package cluster

import (
	"cmp"
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// readControllerRevision reads annotations that are copies of the workload's.
func readControllerRevision(r *appsv1.ControllerRevision) (*revision, error) {
	var data struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	_ = json.Unmarshal(r.Data.Raw, &data) // fails for another controller's data, which is not needed
	out, err := newRevision("ControllerRevision", &r.ObjectMeta, &data.Spec.Template)
	if err != nil {
		return nil, err
	}
	out.pin = rollout.Pin{Label: rollout.LabelRevision, Value: cmp.Or(r.Labels[rollout.LabelRevision], r.Name)}
	out.number = int(r.Revision)
	return out, nil
}

func isBaseOrUpdate(objects *kind, r *revision) bool {
	l, known := objects.live.withUID(r.owner)
	return known && l.workload != nil && (r.name == l.workload.base || r.name == l.workload.update)
}

// podsOfRevision returns the workload's pods with the revision's pin.
func podsOfRevision(all *table[*pod], l *live, r *revision) []*pod {
	return slices.DeleteFunc(all.ownedBy(l.uid), func(p *pod) bool { return p.pin != r.pin.Value })
}
