package nodeagent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"gitrollout.dev/gitrollout/internal/localcluster/podsim"
)

// wantsNode reports whether this scheduler must bind the pod to a node.
func wantsNode(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 &&
		pod.Spec.SchedulerName == corev1.DefaultSchedulerName
}

// bind binds the pod to the fitting node with the fewest pods, or marks the pod Unschedulable. It returns nil if it has
// not bound the pod.
func (a *Agent) bind(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	nodes, err := a.nodes.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var fitting []string
	refusals := make(map[string]int)
	for _, node := range nodes {
		if reason := refusal(pod, node); reason != "" {
			refusals[reason]++
			continue
		}
		fitting = append(fitting, node.Name)
	}
	if len(fitting) == 0 {
		return nil, a.markUnschedulable(ctx, pod, explain(len(nodes), refusals))
	}
	node := a.lives.reserve(pod, fitting)
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	err = a.client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil, nil // the pod was deleted or bound meanwhile: an event follows
	}
	if err != nil {
		return nil, fmt.Errorf("bind pod %s/%s to %s: %w", pod.Namespace, pod.Name, node, err)
	}
	bound := pod.DeepCopy()
	bound.Spec.NodeName = node
	return bound, nil
}

// refusal returns, in the scheduler's words, the reason why the pod cannot run on the node, or "" if it can. It
// compares each container's requests with the node's allocatable resources, and ignores other pods' requests.
func refusal(pod *corev1.Pod, node *corev1.Node) string {
	if node.Spec.Unschedulable && !toleratesCordon(pod) {
		return "node(s) were unschedulable"
	}
	if match, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !match {
		return "node(s) didn't match Pod's node affinity/selector"
	}
	taint, untolerated := untoleratedTaint(pod, node)
	if untolerated {
		return fmt.Sprintf("node(s) had untolerated taint {%s: %s}", taint.Key, taint.Value)
	}
	for _, container := range pod.Spec.Containers {
		for name, request := range container.Resources.Requests {
			if allocatable := node.Status.Allocatable[name]; request.Cmp(allocatable) > 0 {
				return "Insufficient " + string(name)
			}
		}
	}
	return ""
}

// keepsPodsAway reports whether a taint prevents binding.
func keepsPodsAway(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }

func toleratesCordon(pod *corev1.Pod) bool {
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	return tolerates(pod, &cordon)
}

func explain(nodes int, refusals map[string]int) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(refusals)) {
		parts = append(parts, fmt.Sprintf("%d %s", refusals[reason], reason))
	}
	return fmt.Sprintf("0/%d nodes are available: %s.", nodes, strings.Join(parts, ", "))
}

func (a *Agent) markUnschedulable(ctx context.Context, pod *corev1.Pod, message string) error {
	status := *pod.Status.DeepCopy()
	podsim.SetCondition(&status, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable, Message: message, LastTransitionTime: metav1.Now(),
	})
	return a.writeStatus(ctx, pod, status)
}
