package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// insideNamespace is the environment variable that marks the test program inside the network namespace.
const insideNamespace = "LOCALCLUSTER_TEST_INSIDE_NAMESPACE"

// TestPodsListenOnTheirAddresses checks that a pod listens on its own address, in a network namespace
// where pod addresses are local addresses.
func TestPodsListenOnTheirAddresses(t *testing.T) {
	if os.Getenv(insideNamespace) == "" {
		command := exec.Command(os.Args[0], "-test.v", "-test.run=^TestPodsListenOnTheirAddresses$")
		command.Env = append(os.Environ(), insideNamespace+"=1")
		command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		output, err := command.CombinedOutput()
		if err != nil && len(output) == 0 {
			t.Skipf("no network namespace can be made here: %v", err)
		}
		if t.Log(string(output)); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, setup := range []string{"link set lo up", "route add local 10.244.0.0/16 dev lo"} {
		if output, err := exec.Command("ip", strings.Fields(setup)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", setup, err, output)
		}
	}
	local := start(t, nil, "--bind-pod-ips", "--nodes", "1")
	createPod(t, local.client, "web", podSpec("shop:v3"))
	var address string
	eventually(t, "a ready pod", func() error {
		pod := getPod(t, local.client, "web")
		if address = "http://" + pod.Status.PodIP + ":8080/"; !hasCondition(pod, corev1.PodReady, corev1.ConditionTrue) {
			return fmt.Errorf("status %v", pod.Status)
		}
		return nil
	})
	if answer, err := get(address); err != nil || !strings.Contains(answer, `"version":"v3"`) {
		t.Errorf("answer at %s: %q, %v; want version v3", address, answer, err)
	}
	must(t, local.client.CoreV1().Pods("default").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	eventually(t, "the address to be closed", func() error {
		if answer, err := get(address); err == nil {
			return fmt.Errorf("still answers %s", answer)
		}
		return nil
	})
	if code := local.terminate(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}
