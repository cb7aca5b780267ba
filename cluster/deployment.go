package cluster

import (
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"gitrollout.dev/gitrollout/rollout"
)

var deployments = workloadKind{
	gvk:          appsv1.SchemeGroupVersion.WithKind("Deployment"),
	read:         readDeployment,
	readRevision: reading(readReplicaSet),
	watchRevisions: func(b *background, kube typed, t *table[*revision]) {
		watchTyped(b, t, "replicasets.apps", &appsv1.ReplicaSet{}, kube.apps.ReplicaSets)
	},
	current: currentOf,
	pods:    func(pods *table[*pod], _ *live, r *revision) []*pod { return pods.ownedBy(r.uid) },
	inUse:   func(_ *kind, r *revision) bool { return r.desired > 0 || r.pods > 0 },
}

const revisionAnnotation = "deployment.kubernetes.io/revision"

func readDeployment(o rollout.Object) (out *workload, err error) {
	out = readFields(rollout.Partitioned{Status: appsStatus}, o)
	out.number = number(o.Annotation(revisionAnnotation))
	if message, is := condition(o, string(appsv1.DeploymentReplicaFailure), string(corev1.ConditionTrue)); is {
		out.failure = failureOf(message)
	}
	out.revised = rollout.In(o, "spec.paused") != true
	var surge rollout.Amount
	if set := rollout.In(o, "spec.strategy.rollingUpdate.maxSurge"); set != nil && surge.ReadValue(set) == nil {
		out.surge = surge.RoundUp(out.replicas)
	}
	out.template, err = templateOf(o)
	return out, err
}

func templateOf(o rollout.Object) (string, error) {
	var t corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Map("spec", "template"), &t); err != nil {
		return "", fmt.Errorf("read the template of %s: %w", o.Ref().Title(), err)
	}
	return templateDigest(&t)
}

func readReplicaSet(r *appsv1.ReplicaSet) (*revision, error) {
	out, err := newRevision("ReplicaSet", &r.ObjectMeta, &r.Spec.Template)
	if err != nil {
		return nil, err
	}
	out.pin, out.number = rollout.PodHash(r.Labels[rollout.LabelPodHash]), number(r.Annotations[revisionAnnotation])
	out.desired, out.pods, out.available = 1, int(r.Status.Replicas), int(r.Status.AvailableReplicas)
	out.late = r.Status.ObservedGeneration < r.Generation
	if r.Spec.Replicas != nil {
		out.desired = int(*r.Spec.Replicas)
	}
	for _, c := range r.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			out.failure = failureOf(c.Message)
		}
	}
	return out, nil
}

// currentOf returns the current template's ReplicaSet, or nil. If several match, it prefers the ReplicaSet with the
// Deployment's revision number, and then the oldest, like Kubernetes' FindNewReplicaSet.
func currentOf(w *workload, synced bool, sets []*revision) *revision {
	var equal, numbered *revision
	for _, r := range sets {
		if w.number != 0 && r.number == w.number {
			numbered = r
		}
		if r.template == w.template && (equal == nil || r.created.Before(equal.created)) {
			equal = r
		}
	}
	switch {
	case numbered != nil && numbered.template == w.template:
		return numbered
	case equal != nil:
		return equal
	case synced:
		// This ReplicaSet's template probably differs only in API defaults.
		return numbered
	}
	return nil
}

// templateDigest ignores pod-template-hash, so that a Deployment and its ReplicaSet have equal digests. Digests must
// not be stored, because a newer API server may set other defaults.
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
	return rollout.Digest(raw, 16), nil
}
