package podsim

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func podOf(image string, env ...string) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways,
		Containers:    []corev1.Container{{Name: "app", Image: image}},
	}}
	for _, assignment := range env {
		name, value, _ := strings.Cut(assignment, "=")
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: name, Value: value})
	}
	return pod
}

func TestOf(t *testing.T) {
	plain := func(*Behaviour) {}
	for name, test := range map[string]struct {
		image   string
		env     []string
		version string
		change  func(*Behaviour) // applied to the behaviour of a plain image
	}{
		"ordinary image":    {"nginx:1.27-alpine", nil, "1.27-alpine", plain},
		"rollouts demo":     {"argoproj/rollouts-demo:blue", nil, "blue", plain},
		"no tag":            {"registry.example:5000/team/shop", nil, "latest", plain},
		"digest only":       {"shop@sha256:0123456789abcdef", nil, "0123456789ab", plain},
		"tag and digest":    {"shop:v2@sha256:0123456789abcdef", nil, "v2", plain},
		"version variable":  {"shop:v2", []string{"VERSION=2.1.0"}, "2.1.0", plain},
		"slow":              {"shop:v2-slow", nil, "v2-slow", func(b *Behaviour) { b.ReadyAfter = 3 * time.Second }},
		"slow with value":   {"shop:v2-slow1.5s", nil, "v2-slow1.5s", func(b *Behaviour) { b.ReadyAfter = 1500 * time.Millisecond }},
		"never ready":       {"shop:v2-neverready", nil, "v2-neverready", func(b *Behaviour) { b.NeverReady = true }},
		"unready later":     {"shop:v2-unready30s", nil, "v2-unready30s", func(b *Behaviour) { b.UnreadyAfter = 30 * time.Second }},
		"crash":             {"shop:v2-crash", nil, "v2-crash", func(b *Behaviour) { b.Crashes = true }},
		"crash by variable": {"shop:v2", []string{"LOCALCLUSTER_CRASH=1"}, "v2", func(b *Behaviour) { b.Crashes = true }},
		"crash later":       {"shop:v2-crash2s", nil, "v2-crash2s", func(b *Behaviour) { b.Crashes, b.CrashAfter = true, 2*time.Second }},
		"bad image":         {"shop:v2-badimage", nil, "v2-badimage", func(b *Behaviour) { b.BadImage = true }},
		"several words": {"shop:v2-fail0.05-latency100ms-stop1s", nil, "v2-fail0.05-latency100ms-stop1s", func(b *Behaviour) {
			b.FailRate, b.Latency, b.StopAfter = 0.05, 100*time.Millisecond, time.Second
		}},
		"variable wins over tag": {"shop:v2-slow-neverready-crash",
			[]string{"LOCALCLUSTER_READY_AFTER=1s", "LOCALCLUSTER_READY=always", "LOCALCLUSTER_CRASH=0"},
			"v2-slow-neverready-crash", func(b *Behaviour) { b.ReadyAfter = time.Second }},
		"empty variable says nothing": {"shop:v2", []string{"LOCALCLUSTER_READY_AFTER="}, "v2", plain},
	} {
		want := Behaviour{Version: test.version, StopAfter: defaultStopAfter, RunFor: defaultRunFor}
		test.change(&want)
		if got, err := Of(podOf(test.image, test.env...)); err != nil || got != want {
			t.Errorf("%s: behaviour of %s %v:\n got %+v, %v\nwant %+v", name, test.image, test.env, got, err, want)
		}
	}
}

func TestOfHonoursProbeDelay(t *testing.T) {
	pod := podOf("shop:v1")
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{InitialDelaySeconds: 4}
	got, err := Of(pod)
	if err != nil || got.ReadyAfter != 4*time.Second {
		t.Errorf("ReadyAfter = %v, %v; want 4s", got.ReadyAfter, err)
	}
}

func TestOfRefuses(t *testing.T) {
	for _, test := range []struct{ image, env, want string }{
		{"shop:v2-slow3", "OTHER=x", `tag word "slow3"`},
		{"shop:v2-fail5", "OTHER=x", "not between 0 and 1"},
		{"shop:v2", "LOCALCLUSTER_LATENCY=fast", "LOCALCLUSTER_LATENCY"},
		{"shop:v2", "LOCALCLUSTER_READY=maybe", "want never or always"},
		{"shop:v2", "LOCALCLUSTER_STOP_AFTER=-1s", "negative"},
	} {
		if _, err := Of(podOf(test.image, test.env)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Of(%s %s) = %v, want an error with %q", test.image, test.env, err, test.want)
		}
	}
}
