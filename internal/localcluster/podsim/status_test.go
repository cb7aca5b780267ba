package podsim

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

var born = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// summary has the important fields of a pod.
type summary struct {
	phase    corev1.PodPhase
	reason   string // of the main container's state
	restarts int32
	ready    bool
	next     time.Duration
}

func summarize(status corev1.PodStatus, next time.Duration) summary {
	main := status.ContainerStatuses[0]
	s := summary{phase: status.Phase, restarts: main.RestartCount, next: next}
	switch {
	case main.State.Waiting != nil:
		s.reason = main.State.Waiting.Reason
	case main.State.Terminated != nil:
		s.reason = main.State.Terminated.Reason
	case main.State.Running != nil:
		s.reason = "Running"
	}
	for _, condition := range status.Conditions {
		if condition.Type == corev1.PodReady {
			s.ready = condition.Status == corev1.ConditionTrue
		}
	}
	return s
}

func TestStatusAt(t *testing.T) {
	const always, never, onFailure = corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure
	tests := []struct {
		image   string
		restart corev1.RestartPolicy
		age     time.Duration
		want    summary
	}{
		{"shop:v1", always, 0, summary{"Running", "Running", 0, true, 0}},
		{"shop:v1-slow2s", always, time.Second, summary{"Running", "Running", 0, false, time.Second}},
		{"shop:v1-slow2s", always, 2 * time.Second, summary{"Running", "Running", 0, true, 0}},
		{"shop:v1-neverready", always, time.Hour, summary{"Running", "Running", 0, false, 0}},
		{"shop:v1-unready5s", always, 4 * time.Second, summary{"Running", "Running", 0, true, time.Second}},
		{"shop:v1-unready5s", always, 5 * time.Second, summary{"Running", "Running", 0, false, 0}},
		{"shop:v1-badimage", always, 0, summary{"Pending", "ErrImagePull", 0, false, time.Second}},
		{"shop:v1-badimage", always, time.Second, summary{"Pending", "ImagePullBackOff", 0, false, 0}},
		{"shop:v1-slow3", always, 0, summary{"Pending", "CreateContainerConfigError", 0, false, 0}},
		{"shop:v1-crash", always, 0, summary{"Running", "CrashLoopBackOff", 0, false, time.Second}},
		{"shop:v1-crash", always, time.Second, summary{"Running", "CrashLoopBackOff", 1, false, 2 * time.Second}},
		{"shop:v1-crash", always, 3 * time.Second, summary{"Running", "CrashLoopBackOff", 2, false, 4 * time.Second}},
		{"shop:v1-crash2s", always, time.Second, summary{"Running", "Running", 0, true, time.Second}},
		{"shop:v1-crash2s", always, 2 * time.Second, summary{"Running", "CrashLoopBackOff", 0, false, time.Second}},
		{"shop:v1-crash2s", always, 4 * time.Second, summary{"Running", "Running", 1, true, time.Second}},
		{"job:v1", never, 0, summary{"Running", "Running", 0, true, 200 * time.Millisecond}},
		{"job:v1", never, time.Second, summary{"Succeeded", "Completed", 0, false, 0}},
		{"job:v1-crash", never, time.Second, summary{"Failed", "Error", 0, false, 0}},
		{"job:v1-crash", onFailure, time.Second, summary{"Running", "CrashLoopBackOff", 1, false, 2 * time.Second}},
	}
	for _, test := range tests {
		pod := podOf(test.image)
		pod.Spec.RestartPolicy = test.restart
		got := summarize(StatusAt(pod, Life{Start: born}, born.Add(test.age)))
		if got != test.want {
			t.Errorf("%s after %s:\n got %+v\nwant %+v", test.image, test.age, got, test.want)
		}
	}
}

// TestStatusAtIsStable checks that a later call of StatusAt returns the pod's present status if nothing has changed.
// Otherwise the agent would repeat the write forever.
func TestStatusAtIsStable(t *testing.T) {
	pod := podOf("shop:v1-crash")
	life := Life{Start: born.Add(123 * time.Millisecond), PodIP: "10.244.0.1", HostIP: "10.244.255.1"}
	pod.Status, _ = StatusAt(pod, life, born.Add(1500*time.Millisecond))
	again, _ := StatusAt(pod, life, born.Add(1900*time.Millisecond))
	if got, want := again.String(), pod.Status.String(); got != want {
		t.Errorf("second status differs:\n got %s\nwant %s", got, want)
	}
}

func TestTransitionTimeMovesWithTheStatusOnly(t *testing.T) {
	pod := podOf("shop:v1-slow2s")
	readyChanged := func(age time.Duration) time.Time {
		pod.Status, _ = StatusAt(pod, Life{Start: born}, born.Add(age))
		return podutil.GetPodReadyCondition(pod.Status).LastTransitionTime.Time
	}
	for _, c := range []struct {
		what     string
		age, due time.Duration
	}{{"first seen", time.Second, time.Second}, {"became ready", 3 * time.Second, 3 * time.Second},
		{"stayed ready", 9 * time.Second, 3 * time.Second}} {
		if got := readyChanged(c.age); !got.Equal(born.Add(c.due)) {
			t.Errorf("%s: changed at %s, want %s", c.what, got, born.Add(c.due))
		}
	}
}

func TestStoppingPodIsNotReady(t *testing.T) {
	status, _ := StatusAt(podOf("shop:v1"), Life{Start: born, Stopping: true}, born)
	if got := summarize(status, 0); got.ready || got.reason != "Running" {
		t.Errorf("stopping pod: %+v, want running and not ready", got)
	}
}

func TestReadinessGateHoldsBackReady(t *testing.T) {
	pod := podOf("shop:v1")
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	if got := summarize(StatusAt(pod, Life{Start: born}, born)); got.ready {
		t.Error("ready although its gate is closed")
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: "example.com/gate", Status: corev1.ConditionTrue}}
	if got := summarize(StatusAt(pod, Life{Start: born}, born)); !got.ready {
		t.Error("not ready although its gate is open")
	}
}

func TestEndedAt(t *testing.T) {
	pod := podOf("job:v1-run1m")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	if got := EndedAt(pod, Life{Start: born}, born.Add(time.Second)); got.Phase != corev1.PodFailed {
		t.Errorf("job that was cut short: phase %s, want Failed", got.Phase)
	}
	if got := EndedAt(podOf("shop:v1"), Life{Start: born}, born.Add(time.Second)); got.Phase != corev1.PodSucceeded {
		t.Errorf("server that was stopped: phase %s, want Succeeded", got.Phase)
	}
}
