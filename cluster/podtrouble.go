package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"gitrollout.dev/gitrollout/rollout"
)

type trouble struct {
	rank rank
	text string
}

// rank orders reasons for a stalled release: "can never start" is above "is starting".
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

// podTrouble returns in one line why a pod is not Ready, without ages and counters except restarts.
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
	worst := slices.MaxFunc(all, func(a, b trouble) int { return cmp.Compare(a.rank, b.rank) }) // the first of equal rank
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
	lines := strings.Split(strings.TrimSpace(t.Message), "\n") // the message may be a log's end
	if message := rollout.Cut(rollout.OneLine(lines[len(lines)-1]), maxTrouble); message != "" {
		how += ": " + message
	}
	return rollout.Count(int(restarts), "restart") + ", " + how
}

func joined(parts ...string) string {
	kept := slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return rollout.Cut(rollout.OneLine(strings.Join(kept, ": ")), maxTrouble)
}

// maxTrouble is in characters. Long output of schedulers or registries would fill the state branch.
const maxTrouble = 300

func restarts(p *corev1.Pod) int {
	n := 0
	for _, s := range p.Status.ContainerStatuses {
		n += int(s.RestartCount)
	}
	return n
}
