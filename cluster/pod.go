package cluster

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

type pod struct {
	stamp
	created     time.Time
	node        string    // for a DaemonSet's pod; else ""
	pin         string    // value of the revision's label
	readySince  time.Time // zero if not Ready
	terminating bool
	finished    bool // Succeeded or Failed: not restarted, not counted by the controller
	restarts    int
	status      string
	trouble     trouble
	role        string // rollout.AnnotationRole
	configs     []configRef
}

func readPod(p *corev1.Pod) (*pod, error) {
	out := &pod{
		stamp:       stampOf(&p.ObjectMeta),
		created:     p.CreationTimestamp.Time,
		pin:         pinOf(p),
		terminating: p.DeletionTimestamp != nil,
		finished:    p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
		restarts:    restarts(p),
		status:      podStatus(p),
		role:        p.Annotations[rollout.AnnotationRole],
		configs:     configsOf(&p.Spec),
	}
	by := metav1.GetControllerOfNoCopy(p)
	onNodes := func(k *workloadKind) bool { return k.onNodes && k.gvk.Kind == by.Kind }
	if by != nil && slices.ContainsFunc(workloadKinds, onNodes) {
		out.node = p.Spec.NodeName
	}
	// Before an in-place update changes a pod's label, with old containers Ready, it sets a readiness gate to false.
	if hasCondition(p, corev1.PodReady) && gates(p) == "" {
		if out.readySince = conditionOf(p, corev1.PodReady).LastTransitionTime.Time; out.readySince.IsZero() {
			out.readySince = out.created
		}
	}
	if out.readySince.IsZero() && !out.terminating {
		out.trouble = podTrouble(p)
	}
	return out, nil
}

func pinOf(p *corev1.Pod) string {
	return cmp.Or(p.Labels[rollout.LabelRevision], p.Labels[rollout.LabelPodHash])
}
