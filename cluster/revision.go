package cluster

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// revision is a ReplicaSet or ControllerRevision.
type revision struct {
	stamp
	kind      string
	hash      rollout.Hash
	pin       rollout.Pin
	number    int
	template  string // digest of the template without pod-template-hash
	created   time.Time
	desired   int
	pods      int // ReplicaSet's status.replicas
	available int // ReplicaSet's status.availableReplicas
	late      bool
	failure   string
	configs   []configRef
}

func newRevision(kind string, m *metav1.ObjectMeta, template *corev1.PodTemplateSpec) (*revision, error) {
	digest, err := templateDigest(template)
	return &revision{
		stamp: stampOf(m), kind: kind, hash: rollout.Hash(m.Annotations[rollout.AnnotationHash]),
		created: m.CreationTimestamp.Time, template: digest, configs: configsOf(&template.Spec),
	}, err
}

// failureOf returns the text for a condition ReplicaFailure. The text is equal for a Deployment and its ReplicaSet,
// which may get this condition at different times.
func failureOf(message string) string { return "pods cannot be created: " + rollout.OneLine(message) }

func (r *revision) observe(pods []*pod) rollout.Revision {
	out := rollout.Revision{
		Name: r.name, Hash: r.hash, Pin: r.pin, Number: r.number, Desired: r.desired,
		Available: r.available, Late: r.late, Created: r.created.UTC(),
	}
	slices.SortFunc(pods, func(a, b *pod) int { return cmp.Compare(a.name, b.name) })
	worst := trouble{}
	if r.failure != "" {
		worst = trouble{rank: cannotCreate, text: r.failure}
	}
	for _, p := range pods {
		ready := !p.readySince.IsZero()
		out.Members = append(out.Members, rollout.Pod{
			Name: p.name, Ready: ready, Terminating: p.terminating,
			Restarts: p.restarts, Status: p.status, Created: p.created.UTC(), UID: string(p.uid), Node: p.node, Role: p.role,
		})
		if p.terminating {
			continue
		}
		if !p.finished {
			out.Pods++
		}
		if ready && !p.finished {
			out.ReadySince = append(out.ReadySince, p.readySince.UTC())
		}
		if p.trouble.rank > worst.rank {
			worst = trouble{rank: p.trouble.rank, text: "pod " + p.name + ": " + p.trouble.text}
		}
	}
	slices.SortFunc(out.ReadySince, time.Time.Compare)
	out.Problem = worst.text
	return out
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

func readControllerRevision(r *appsv1.ControllerRevision) (*revision, error) {
	var data struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	_ = json.Unmarshal(r.Data.Raw, &data) // fails only for another controller's data, which is not needed
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

func podsOfRevision(all *table[*pod], l *live, r *revision) []*pod {
	return slices.DeleteFunc(all.ownedBy(l.uid), func(p *pod) bool { return p.pin != r.pin.Value })
}
