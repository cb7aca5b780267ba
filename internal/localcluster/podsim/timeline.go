package podsim

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The back-off of crash loops doubles up to a limit, like a kubelet's. It begins at 1s, because a kubelet's 10s is too
// long for tests.
const (
	firstBackOff = time.Second
	maxBackOff   = 5 * time.Minute
)

// pullBackOffAfter is the time after which a failed pull is reported as ImagePullBackOff.
const pullBackOffAfter = time.Second

// moment is the state of the pod's main container at one time.
type moment struct {
	state    corev1.ContainerState
	last     corev1.ContainerState // result of the previous run
	restarts int32
	ready    bool
	next     time.Duration // until the next change; 0: never
}

// container has the inputs of a main container's timeline.
type container struct {
	behaviour Behaviour
	configErr error
	restarts  corev1.RestartPolicy
	image     string
	start     time.Time
}

// at returns the container's state at an age.
func (c container) at(age time.Duration) moment {
	switch {
	case c.configErr != nil:
		return moment{state: waiting("CreateContainerConfigError", c.configErr.Error())}
	case c.behaviour.BadImage:
		return c.pulling(age)
	case c.behaviour.Crashes && c.restarts != corev1.RestartPolicyNever:
		return c.crashLooping(age)
	case c.behaviour.Crashes:
		return c.finishing(age, c.behaviour.CrashAfter, 1, "Error")
	case c.restarts != corev1.RestartPolicyAlways:
		return c.finishing(age, c.behaviour.RunFor, 0, "Completed")
	default:
		m := c.running(age)
		m.state = running(c.start)
		return m
	}
}

// running returns a running container's readiness at an age, and the time until the readiness changes.
func (c container) running(age time.Duration) moment {
	b := c.behaviour
	switch {
	case b.NeverReady:
		return moment{}
	case age < b.ReadyAfter:
		return moment{next: b.ReadyAfter - age}
	case b.UnreadyAfter == 0:
		return moment{ready: true}
	case age < b.UnreadyAfter:
		return moment{ready: true, next: b.UnreadyAfter - age}
	}
	return moment{}
}

func (c container) pulling(age time.Duration) moment {
	if age < pullBackOffAfter {
		return moment{
			state: waiting("ErrImagePull", fmt.Sprintf("failed to pull image %q: not found", c.image)),
			next:  pullBackOffAfter - age,
		}
	}
	return moment{state: waiting("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q", c.image))}
}

// finishing returns the state of a container that runs once, for the given length of time.
func (c container) finishing(age, length time.Duration, exit int32, reason string) moment {
	if age < length {
		m := c.running(age)
		m.state = running(c.start)
		m.next = sooner(m.next, length-age)
		return m
	}
	return moment{state: terminated(c.start, c.start.Add(length), exit, reason)}
}

// crashLooping returns the state of a container in a crash loop. It iterates over the runs and back-offs.
func (c container) crashLooping(age time.Duration) moment {
	var m moment
	begin := time.Duration(0) // of the current run
	for backOff := firstBackOff; ; backOff = min(2*backOff, maxBackOff) {
		end := begin + c.behaviour.CrashAfter
		if age < end {
			now := c.running(age - begin)
			now.state = running(c.start.Add(begin))
			now.last, now.restarts = m.last, m.restarts
			now.next = sooner(now.next, end-age)
			return now
		}
		m.last = terminated(c.start.Add(begin), c.start.Add(end), 1, "Error")
		begin = end + backOff
		if age < begin {
			m.state = waiting("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container", backOff))
			m.next = begin - age
			return m
		}
		m.restarts++
	}
}

// sooner returns the shorter of two times until a change. The time 0 means that no change follows.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func running(since time.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: stamp(since)}}
}

func terminated(from, to time.Time, exit int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: exit, Reason: reason, StartedAt: stamp(from), FinishedAt: stamp(to),
	}}
}

// stamp truncates a time to the API's precision, so that a status read from the API equals the written status.
func stamp(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
