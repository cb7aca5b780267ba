package cluster

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// podStatus returns kubectl's STATUS, as printPod (k8s.io/kubernetes/pkg/printers/internalversion, 1.36).
func podStatus(p *corev1.Pod) string {
	status := cmp.Or(p.Status.Reason, string(p.Status.Phase))
	if conditionOf(p, corev1.PodScheduled).Reason == corev1.PodReasonSchedulingGated {
		status = corev1.PodReasonSchedulingGated
	}
	initStatus, initializing := initStatus(p)
	if initializing {
		status = initStatus
	}
	if !initializing || hasCondition(p, corev1.PodInitialized) {
		status = containerStatus(p, status)
	}
	finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	switch {
	case p.DeletionTimestamp != nil && p.Status.Reason == "NodeLost": // on an unreachable node
		return "Unknown"
	case p.DeletionTimestamp != nil && !finished:
		return "Terminating"
	}
	return status
}

func initStatus(p *corev1.Pod) (string, bool) {
	for i, s := range p.Status.InitContainerStatuses {
		switch {
		case s.State.Terminated != nil && s.State.Terminated.ExitCode == 0,
			isSidecar(p, s.Name) && s.Started != nil && *s.Started:
			continue
		case s.State.Terminated != nil:
			return "Init:" + ended(s.State.Terminated), true
		case s.State.Waiting != nil && s.State.Waiting.Reason != "" && s.State.Waiting.Reason != "PodInitializing":
			return "Init:" + s.State.Waiting.Reason, true
		default:
			return fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers)), true
		}
	}
	return "", false
}

// isSidecar reports restartPolicy Always: the container runs as long as the pod.
func isSidecar(p *corev1.Pod, name string) bool {
	c, _ := rollout.Find(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name })
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func ended(t *corev1.ContainerStateTerminated) string {
	how := fmt.Sprintf("ExitCode:%d", t.ExitCode)
	if t.Signal != 0 {
		how = fmt.Sprintf("Signal:%d", t.Signal)
	}
	return cmp.Or(t.Reason, how)
}

func containerStatus(p *corev1.Pod, status string) string {
	running, failure := false, ""
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		s := &p.Status.ContainerStatuses[i]
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "":
			status = s.State.Waiting.Reason
		case s.State.Terminated != nil:
			status = ended(s.State.Terminated)
			if s.State.Terminated.ExitCode != 0 {
				failure = status
			}
		case s.Ready && s.State.Running != nil:
			running = true
		}
	}
	switch {
	case status != "Completed":
		return status
	case running && hasCondition(p, corev1.PodReady):
		return "Running"
	case failure != "":
		return failure
	case running:
		return "NotReady"
	}
	return status
}

func hasCondition(p *corev1.Pod, kind corev1.PodConditionType) bool {
	return conditionOf(p, kind).Status == corev1.ConditionTrue
}

func conditionOf(p *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	found, _ := rollout.Find(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	return found
}
