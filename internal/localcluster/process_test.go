package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// asProgram is the environment variable with which the test binary runs as the program, so that Go links only one binary.
const asProgram = "LOCALCLUSTER_TEST_AS_PROGRAM=1"

func TestMain(m *testing.M) {
	name, value, _ := strings.Cut(asProgram, "=")
	if os.Getenv(name) == value {
		main()
		return
	}
	os.Exit(m.Run())
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// localCluster is a running program under test.
type localCluster struct {
	command    *exec.Cmd
	stderr     *bytes.Buffer
	ready      string // the first line of output
	kubeconfig string
	podsURL    string
	client     kubernetes.Interface
}

// start starts the program, and waits until it reports that it is ready.
func start(t *testing.T, env []string, args ...string) *localCluster {
	t.Helper()
	args = append(args, "--exit-with-parent") // the program ends even if the test is killed
	local := &localCluster{command: exec.Command(os.Args[0], args...), stderr: new(bytes.Buffer)}
	local.command.Env = append(append(os.Environ(), asProgram), env...)
	local.command.Stderr = local.stderr
	stdout, err := local.command.StdoutPipe()
	must(t, err)
	must(t, local.command.Start())
	t.Cleanup(func() { local.command.Process.Kill() })

	line := make([]byte, 1024)
	n, _ := stdout.Read(line)
	local.ready = strings.TrimSpace(string(line[:n]))
	if _, err := fmt.Sscanf(local.ready, "ready kubeconfig=%s in", &local.kubeconfig); err != nil {
		local.command.Wait()
		t.Fatalf("program printed %q, on stderr %s", local.ready, local.stderr)
	}
	url, err := os.ReadFile(filepath.Join(filepath.Dir(local.kubeconfig), "pods-url"))
	must(t, err)
	local.podsURL = strings.TrimSpace(string(url))
	local.client = clientOf(t, local.kubeconfig)
	return local
}

func clientOf(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	config.QPS = -1 // otherwise a test would measure the client's rate limit
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

// terminate stops the program and returns its exit code.
func (l *localCluster) terminate(t *testing.T) int {
	t.Helper()
	began := time.Now()
	must(t, l.command.Process.Signal(syscall.SIGTERM))
	if err := l.command.Wait(); err != nil {
		if exit := new(exec.ExitError); !errors.As(err, &exit) {
			t.Fatal(err)
		}
	}
	t.Logf("stopped in %s", time.Since(began).Round(10*time.Millisecond))
	return l.command.ProcessState.ExitCode()
}

func (l *localCluster) residentMemory(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.command.Process.Pid))
	if err != nil {
		return "unknown"
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	value, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(value)
}

// eventually repeats the check until it passes, for at most 5 minutes.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for err := check(); err != nil; err = check() {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestResumesFromItsFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first := start(t, nil, "--dir", dir, "--nodes", "1")
	createPod(t, first.client, "survivor", podSpec("shop:v1"))
	var before string
	eventually(t, "the pod's address", func() error {
		if before = getPod(t, first.client, "survivor").Status.PodIP; before == "" {
			return errors.New("no address yet")
		}
		return nil
	})
	credentials, err := os.ReadFile(first.kubeconfig)
	must(t, err)
	if code := first.terminate(t); code != 0 {
		t.Fatalf("exit code %d, want 0", code)
	}

	second := start(t, nil, "--dir", dir, "--nodes", "1")
	if now := getPod(t, second.client, "survivor").Status.PodIP; now != before {
		t.Errorf("pod after the restart: address %s, want %s", now, before)
	}
	eventually(t, "the pod's answer", func() error {
		answer, err := get(second.podsURL + "/namespaces/default/pods/survivor/")
		if err == nil && !strings.Contains(answer, `"survivor"`) {
			err = errors.New(answer)
		}
		return err
	})
	if _, err := oldCredentials(t, credentials, second).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("credentials of the first run no longer count: %v", err)
	}
	refused := exec.Command(os.Args[0], "--dir", dir)
	refused.Env = append(os.Environ(), asProgram)
	if output, err := refused.CombinedOutput(); err == nil || !strings.Contains(string(output), "in use") {
		t.Errorf("second program in the same folder: %v, %s; want it refused", err, output)
	}
	if code := second.terminate(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// oldCredentials returns a client that has the credentials of an earlier run, but connects to the current run.
func oldCredentials(t *testing.T, kubeconfig []byte, now *localCluster) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	must(t, err)
	current, err := clientcmd.BuildConfigFromFlags("", now.kubeconfig)
	must(t, err)
	config.Host = current.Host
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

func TestEndsWithItsParent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	parent := exec.Command("sh", "-c", `"$0" --exit-with-parent --dir "$1" & wait`, os.Args[0], dir)
	parent.Env = append(os.Environ(), asProgram)
	must(t, parent.Start())
	eventually(t, "the kubeconfig", func() error {
		_, err := os.Stat(filepath.Join(dir, "kubeconfig"))
		return err
	})
	must(t, parent.Process.Kill())
	parent.Wait()
	// The kernel releases the lock of the state folder when the program has ended.
	eventually(t, "the program to end", func() error {
		state, err := openStateDir(dir)
		if err != nil {
			return err
		}
		return state.close()
	})
}
