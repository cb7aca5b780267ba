package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	finished    bool // Succeeded or Failed, so not restarted and not counted by the controller
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
	// An in-place update sets a readiness gate to false before it changes a pod's label, while the old containers are
	// Ready.
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

// podStatus returns kubectl's STATUS, like printPod (k8s.io/kubernetes/pkg/printers/internalversion, 1.36).
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
	case p.DeletionTimestamp != nil && p.Status.Reason == "NodeLost": // the node is unreachable
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
	for _, s := range slices.Backward(p.Status.ContainerStatuses) {
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

type trouble struct {
	rank rank
	text string
}

// rank orders the reasons for a stalled release: "can never start" is above "is starting".
type rank int

const (
	noTrouble rank = iota
	starting
	notReady
	evicted
	unschedulable
	crashing
	wrongConfig
	wrongImage
	cannotCreate
)

// podTrouble returns one line about why a pod is not Ready. The line has no ages, and no counter except restarts.
func podTrouble(p *corev1.Pod) trouble {
	if p.Status.Phase == corev1.PodFailed {
		return trouble{evicted, joined("failed", p.Status.Reason, p.Status.Message)}
	}
	all := []trouble{{}}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		all = append(all, containerTrouble(&s))
	}
	if c := conditionOf(p, corev1.PodScheduled); c.Status == corev1.ConditionFalse {
		all = append(all, trouble{unschedulable, joined(c.Reason, c.Message)})
	}
	worst := slices.MaxFunc(all, func(a, b trouble) int { return cmp.Compare(a.rank, b.rank) }) // first of equal rank
	if worst.rank == noTrouble && p.Status.Phase == corev1.PodRunning {
		return trouble{notReady, "runs but is not Ready" + gates(p)}
	}
	return worst
}

func gates(p *corev1.Pod) string {
	for _, gate := range p.Spec.ReadinessGates {
		if !hasCondition(p, gate.ConditionType) {
			return fmt.Sprintf(": readiness gate %s is not met", gate.ConditionType)
		}
	}
	return ""
}

func containerTrouble(s *corev1.ContainerStatus) trouble {
	who := "container " + s.Name
	if w := s.State.Waiting; w != nil {
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable",
			"ImageInspectError", "SignatureValidationFailed":
			return trouble{wrongImage, joined(fmt.Sprintf("%s: %s: image %s", who, w.Reason, s.Image), w.Message)}
		case "CrashLoopBackOff":
			return trouble{crashing, fmt.Sprintf("%s: CrashLoopBackOff%s", who, lastExit(s))}
		case "ContainerCreating", "PodInitializing", "":
			return trouble{starting, fmt.Sprintf("%s: is being created", who)}
		default: // such as CreateContainerConfigError
			return trouble{wrongConfig, joined(who+": "+w.Reason, w.Message)}
		}
	}
	if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
		return trouble{crashing, fmt.Sprintf("%s: %s", who, exit(t, s.RestartCount))}
	}
	if s.State.Running != nil && !s.Ready {
		if s.RestartCount > 0 {
			return trouble{crashing, fmt.Sprintf("%s: runs again but is not Ready%s", who, lastExit(s))}
		}
		return trouble{notReady, fmt.Sprintf("%s: runs but is not Ready", who)}
	}
	return trouble{}
}

func lastExit(s *corev1.ContainerStatus) string {
	if t := s.LastTerminationState.Terminated; t != nil {
		return ", " + exit(t, s.RestartCount)
	}
	return ", " + rollout.Count(int(s.RestartCount), "restart")
}

func exit(t *corev1.ContainerStateTerminated, restarts int32) string {
	how := fmt.Sprintf("last exit code %d", t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" {
		how += " (" + t.Reason + ")"
	}
	lines := strings.Split(strings.TrimSpace(t.Message), "\n") // the message may be the end of a log
	if message := rollout.Cut(rollout.OneLine(lines[len(lines)-1]), maxTrouble); message != "" {
		how += ": " + message
	}
	return rollout.Count(int(restarts), "restart") + ", " + how
}

func joined(parts ...string) string {
	kept := slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return rollout.Cut(rollout.OneLine(strings.Join(kept, ": ")), maxTrouble)
}

// maxTrouble, in characters, keeps long output of schedulers and registries out of the state branch.
const maxTrouble = 300

func restarts(p *corev1.Pod) int {
	n := 0
	for _, s := range p.Status.ContainerStatuses {
		n += int(s.RestartCount)
	}
	return n
}

// Evict deletes a pod, if it exists, and marks it as terminating in the cache.
func (c *Client) Evict(ctx context.Context, namespace string, pod rollout.Pod) error {
	ctx, cancel := context.WithTimeout(As(ctx, ""), requestTimeout)
	defer cancel()
	err := c.kube.core.Pods(namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(pod.UID)})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		pods := c.workloads.pods
		if was, known := pods.get(key{namespace, pod.Name}); known && string(was.uid) == pod.UID {
			is := *was
			is.terminating = true // until the watch reports the deletion
			pods.swap(was, &is)
		}
		return nil
	}
	ref := rollout.Ref{Kind: "Pod", Namespace: namespace, Name: pod.Name}
	return fmt.Errorf("cannot delete pods: %w", explain(err, ref, "delete"))
}
