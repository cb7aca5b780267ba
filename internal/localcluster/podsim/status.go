package podsim

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// Life has a pod's start and addresses, and whether the pod is being deleted.
type Life struct {
	Start    time.Time
	PodIP    string
	HostIP   string
	Stopping bool // the pod's deletion was requested
}

// StatusAt returns the status of a bound pod at the given time, based on pod.Status. It also returns the duration until
// the status changes without an event; 0 means never.
func StatusAt(pod *corev1.Pod, life Life, now time.Time) (corev1.PodStatus, time.Duration) {
	behaviour, err := Of(pod)
	main := container{
		behaviour: behaviour, configErr: err, restarts: pod.Spec.RestartPolicy,
		image: pod.Spec.Containers[0].Image, start: life.Start,
	}.at(now.Sub(life.Start))

	status := *pod.Status.DeepCopy()
	start := stamp(life.Start)
	if status.StartTime == nil {
		status.StartTime = &start
	}
	observe(&status, pod.Generation)
	status.HostIP, status.HostIPs = life.HostIP, []corev1.HostIP{{IP: life.HostIP}}
	status.PodIP, status.PodIPs = life.PodIP, []corev1.PodIP{{IP: life.PodIP}}
	status.InitContainerStatuses = initStatuses(pod, life.Start)
	status.ContainerStatuses = containerStatuses(pod, main, life)
	status.Phase = phase(main)
	setConditions(pod, &status, now)
	return status, main.next
}

// EndedAt returns the status of a deleted pod that has stopped. The API server has such pods only if they
// have finalizers.
func EndedAt(pod *corev1.Pod, life Life, now time.Time) corev1.PodStatus {
	status, _ := StatusAt(pod, life, now)
	status.Phase = corev1.PodSucceeded
	exit, reason := int32(0), "Completed"
	if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		// The container was stopped before its end, so the pod has failed.
		status.Phase, exit, reason = corev1.PodFailed, 143, "Error"
	}
	for i := range status.ContainerStatuses {
		container := &status.ContainerStatuses[i]
		if container.State.Terminated == nil {
			container.State = terminated(life.Start, now, exit, reason)
		}
		container.Ready, container.Started = false, new(bool)
	}
	setConditions(pod, &status, now)
	return status
}

// Serves reports whether the pod's main container runs. The pod then serves requests, even if it is unready.
func Serves(status corev1.PodStatus) bool {
	return len(status.ContainerStatuses) > 0 && status.ContainerStatuses[0].State.Running != nil
}

func phase(main moment) corev1.PodPhase {
	switch {
	case main.state.Terminated != nil && main.state.Terminated.ExitCode == 0:
		return corev1.PodSucceeded
	case main.state.Terminated != nil:
		return corev1.PodFailed
	case main.state.Waiting != nil && main.last.Terminated == nil:
		return corev1.PodPending // the container never ran
	}
	return corev1.PodRunning
}

func containerStatuses(pod *corev1.Pod, main moment, life Life) []corev1.ContainerStatus {
	statuses := make([]corev1.ContainerStatus, len(pod.Spec.Containers))
	for i, spec := range pod.Spec.Containers {
		m := main
		if i > 0 {
			m = sidecar(main, life)
		}
		ready, started := m.ready && !life.Stopping, m.state.Running != nil
		statuses[i] = corev1.ContainerStatus{
			Name: spec.Name, Image: spec.Image, State: m.state, LastTerminationState: m.last,
			RestartCount: m.restarts, Ready: ready, Started: &started,
		}
		if m.state.Running != nil || m.last.Terminated != nil || m.state.Terminated != nil {
			statuses[i].ImageID = imageID(spec.Image)
			statuses[i].ContainerID = containerID(pod, spec.Name, m.restarts)
		}
	}
	return statuses
}

// sidecar returns the state of a container other than the main container. The container runs until the main container terminates.
func sidecar(main moment, life Life) moment {
	if main.state.Terminated != nil {
		ended := main.state.Terminated.FinishedAt.Time
		return moment{state: terminated(life.Start, ended, 0, "Completed")}
	}
	return moment{state: running(life.Start), ready: true}
}

func initStatuses(pod *corev1.Pod, start time.Time) (statuses []corev1.ContainerStatus) {
	for _, spec := range pod.Spec.InitContainers {
		keepsRunning := spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways
		status := corev1.ContainerStatus{
			Name: spec.Name, Image: spec.Image, ImageID: imageID(spec.Image),
			ContainerID: containerID(pod, spec.Name, 0), Ready: true, Started: &keepsRunning,
			State: terminated(start, start, 0, "Completed"),
		}
		if keepsRunning {
			status.State = running(start)
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// setConditions derives the conditions from the containers, in a kubelet's order.
func setConditions(pod *corev1.Pod, status *corev1.PodStatus, now time.Time) {
	var unready []string
	for _, container := range status.ContainerStatuses {
		if !container.Ready {
			unready = append(unready, container.Name)
		}
	}
	reason, message := "", ""
	switch {
	case status.Phase == corev1.PodSucceeded:
		reason = "PodCompleted"
	case status.Phase == corev1.PodFailed:
		reason = "PodFailed"
	case len(unready) > 0:
		reason, message = "ContainersNotReady", fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))
	}
	set := func(kind corev1.PodConditionType, yes bool, reason, message string) {
		condition := corev1.PodCondition{
			Type: kind, Status: conditionStatus(yes), Reason: reason, Message: message, LastTransitionTime: stamp(now),
		}
		observeCondition(&condition, pod.Generation)
		SetCondition(status, condition)
	}
	set(corev1.PodScheduled, true, "", "")
	set(corev1.PodReadyToStartContainers, !podutil.IsPodPhaseTerminal(status.Phase), "", "")
	set(corev1.PodInitialized, true, "", "")
	set(corev1.ContainersReady, reason == "", reason, message)
	if gate := closedGate(pod, status); reason == "" && gate != "" {
		reason, message = "ReadinessGatesNotReady", fmt.Sprintf("the status of pod readiness gate %q is not \"True\"", gate)
	}
	set(corev1.PodReady, reason == "", reason, message)
}

func closedGate(pod *corev1.Pod, status *corev1.PodStatus) corev1.PodConditionType {
	for _, gate := range pod.Spec.ReadinessGates {
		_, condition := podutil.GetPodCondition(status, gate.ConditionType)
		if condition == nil || condition.Status != corev1.ConditionTrue {
			return gate.ConditionType
		}
	}
	return ""
}

// SetCondition replaces the condition of the same type. The last transition time changes only if the condition's status
// changes.
func SetCondition(status *corev1.PodStatus, condition corev1.PodCondition) {
	_, existing := podutil.GetPodCondition(status, condition.Type)
	if existing == nil {
		status.Conditions = append(status.Conditions, condition)
		return
	}
	if existing.Status == condition.Status {
		condition.LastTransitionTime = existing.LastTransitionTime
	}
	*existing = condition
}

func conditionStatus(yes bool) corev1.ConditionStatus {
	if yes {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

func imageID(image string) string {
	name, _ := splitImage(image)
	return fmt.Sprintf("%s@sha256:%x", name, sha256.Sum256([]byte(image)))
}

func containerID(pod *corev1.Pod, name string, restarts int32) string {
	return fmt.Sprintf("containerd://%x", sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", pod.UID, name, restarts)))
}
