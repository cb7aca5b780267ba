package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/rollout"
)

// revisionAnnotation is the Deployment controller's own numbering of templates,
// on the Deployment and on each ReplicaSet.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// deployment is what Observe needs of a Deployment.
type deployment struct {
	hash       rollout.Hash
	serial     int
	commit     string // rollout.AnnotationCommit
	status     string // rollout.AnnotationStatus
	revision   int
	template   string // digest of the pod template
	generation int64
	observed   int64 // the generation that the Deployment controller has seen

	replicas  int // spec
	total     int // status: all pods, of any template
	updated   int // status: pods of the newest template
	available int // status
	failure   string
}

// replicaSet is what is kept of a ReplicaSet.
type replicaSet struct {
	stamp
	hash     rollout.Hash
	podHash  string
	revision int
	template string // digest of the pod template without pod-template-hash
	created  time.Time
	desired  int
	pods     int // status
	failure  string
	configs  []configRef
}

// pod is what is kept of a pod.
type pod struct {
	stamp
	created     time.Time
	readySince  time.Time // zero while it is not Ready
	terminating bool
	finished    bool // Succeeded or Failed: it does not come back and its controller does not count it
	restarts    int
	status      string
	trouble     trouble
	configs     []configRef
}

func (r *replicaSet) inUse() bool { return r.desired > 0 || r.pods > 0 }

func (r *replicaSet) same(o *replicaSet) bool {
	a, b := *r, *o
	a.version, b.version, a.configs, b.configs = "", "", nil, nil
	return a.stamp == b.stamp && a.hash == b.hash && a.podHash == b.podHash && a.revision == b.revision &&
		a.template == b.template && a.desired == b.desired && a.pods == b.pods && a.failure == b.failure
}

func (p *pod) same(o *pod) bool {
	a, b := *p, *o
	a.version, b.version = "", ""
	return a.stamp == b.stamp && a.readySince.Equal(b.readySince) && a.terminating == b.terminating &&
		a.finished == b.finished && a.restarts == b.restarts && a.status == b.status && a.trouble == b.trouble
}

func readDeployment(u *unstructured.Unstructured) (*deployment, error) {
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &d); err != nil {
		return nil, fmt.Errorf("read Deployment %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	template, err := templateDigest(&d.Spec.Template)
	if err != nil {
		return nil, err
	}
	out := &deployment{
		hash:       rollout.Hash(d.Annotations[rollout.AnnotationHash]),
		serial:     number(d.Annotations[rollout.AnnotationSerial]),
		commit:     d.Annotations[rollout.AnnotationCommit],
		status:     d.Annotations[rollout.AnnotationStatus],
		revision:   number(d.Annotations[revisionAnnotation]),
		template:   template,
		generation: d.Generation,
		observed:   d.Status.ObservedGeneration,
		replicas:   1,
		total:      int(d.Status.Replicas),
		updated:    int(d.Status.UpdatedReplicas),
		available:  int(d.Status.AvailableReplicas),
	}
	if d.Spec.Replicas != nil {
		out.replicas = int(*d.Spec.Replicas)
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			out.failure = oneLine(c.Message)
		}
	}
	return out, nil
}

func (c *Client) readReplicaSet(obj any) (*replicaSet, error) {
	r, ok := obj.(*appsv1.ReplicaSet)
	if !ok {
		return nil, fmt.Errorf("watch of ReplicaSets brought a %T", obj)
	}
	template, err := templateDigest(&r.Spec.Template)
	if err != nil {
		return nil, err
	}
	out := &replicaSet{
		stamp:    stampOf(&r.ObjectMeta),
		hash:     rollout.Hash(r.Annotations[rollout.AnnotationHash]),
		podHash:  r.Labels[rollout.LabelPodHash],
		revision: number(r.Annotations[revisionAnnotation]),
		template: template,
		created:  r.CreationTimestamp.Time,
		desired:  1,
		pods:     int(r.Status.Replicas),
		configs:  configsOf(&r.Spec.Template.Spec),
	}
	if r.Spec.Replicas != nil {
		out.desired = int(*r.Spec.Replicas)
	}
	for _, c := range r.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			out.failure = oneLine(c.Message)
		}
	}
	return out, nil
}

func (c *Client) readPod(obj any) (*pod, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("watch of Pods brought a %T", obj)
	}
	out := &pod{
		stamp:       stampOf(&p.ObjectMeta),
		created:     p.CreationTimestamp.Time,
		terminating: p.DeletionTimestamp != nil,
		finished:    p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
		restarts:    restarts(p),
		status:      podStatus(p),
		configs:     configsOf(&p.Spec),
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			out.readySince = condition.LastTransitionTime.Time
			if out.readySince.IsZero() {
				out.readySince = out.created
			}
		}
	}
	if out.readySince.IsZero() && !out.terminating {
		out.trouble = podTrouble(p)
	}
	return out, nil
}

// stampOf takes the owner from the controller reference, by uid: names can be
// used again, and labels say nothing about who owns an object.
func stampOf(m *metav1.ObjectMeta) stamp {
	owner := types.UID("")
	if ref := metav1.GetControllerOfNoCopy(m); ref != nil {
		owner = ref.UID
	}
	return stamp{key: key{m.Namespace, m.Name}, uid: m.UID, version: m.ResourceVersion, owner: owner}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// templateDigest is equal for a Deployment's template and that of the ReplicaSet
// made of it, which has one more label. It is compared within one process only:
// both sides went through the same library and the same API server's defaults.
func templateDigest(t *corev1.PodTemplateSpec) (string, error) {
	plain := *t
	if _, ok := plain.Labels[rollout.LabelPodHash]; ok {
		plain.Labels = maps.Clone(plain.Labels)
		delete(plain.Labels, rollout.LabelPodHash)
	}
	raw, err := json.Marshal(&plain)
	if err != nil {
		return "", fmt.Errorf("digest of a pod template: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16]), nil
}

// byRevision orders ReplicaSets as people expect: newest first.
func byRevision(sets []*replicaSet) {
	slices.SortFunc(sets, func(a, b *replicaSet) int {
		if a.revision != b.revision {
			return b.revision - a.revision
		}
		if order := b.created.Compare(a.created); order != 0 {
			return order
		}
		if a.name < b.name {
			return -1
		}
		return 1
	})
}
