package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testbin"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

// binary is the program under test, built once for all tests.
var binary = sync.OnceValues(testbin.Gitrollout)

func TestMain(m *testing.M) {
	flag.Parse()
	tier.Select(firstTests()...)
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set("8") // releases mostly wait; one test per core would take four times as long
	}
	dir, err := os.MkdirTemp("", "gitrollout-e2e")
	if err != nil {
		panic(err)
	}
	releaseParent = dir
	adoptOrphans()
	code := m.Run()
	for _, process := range leftRunning() {
		fmt.Fprintln(os.Stderr, "a test has started and not ended:", process)
		code = 1
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// world is one test's repository, namespace and reconciler. Its app has the namespace's name, so that tests can share a
// cluster.
type world struct {
	t       *testing.T
	repo    *gittest.Repo
	server  *gittest.Server
	cluster *testcluster.Cluster
	ns      string
	app     string
	pods    *podWatch
	log     *lockedBuffer
	seen    struct {
		sync.Mutex
		head  string
		state rollout.State
	}
	flags []string
	// gitrollout watches only these namespaces; none: the whole cluster.
	namespaces []string
	env        []string // additional environment variables
	home       string
	inside     *container // where the process runs, with the container's program; nil for beside the test

	mu      sync.Mutex // guards the process, which a test may kill and restart
	process *exec.Cmd
	exited  chan error
	stopped bool
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newWorld pushes the files of a single app and starts watching its pods. Paths are relative to the app's folder, and
// "NS" in files is replaced by the namespace.
func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	return newWorldOn(t, testcluster.Shared(t), files)
}

// newWorldOn is newWorld on a separate cluster.
func newWorldOn(t *testing.T, cluster *testcluster.Cluster, files map[string]string) *world {
	t.Helper()
	w := &world{t: t, repo: gittest.New(t), cluster: cluster, ns: cluster.Namespace(t), log: &lockedBuffer{}}
	w.app, w.namespaces = w.ns, []string{w.ns}
	w.repo.Write(map[string]string{".gitrollout/test/config.yaml": fmt.Sprintf(
		"apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/%s\n  namespace: %s\n", w.app, w.ns)})
	w.push("first version", files)
	w.server = w.repo.HTTP(gittest.HTTPOptions{})
	w.pods = watchPods(t, cluster, w.ns)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("gitrollout's log:\n%s", w.log.String())
			t.Logf("state branch:\n%s", strings.Join(w.log0(), "\n"))
			t.Logf("pods over time:\n%s", w.pods.history())
			t.Logf("Deployments:\n%s", w.deployments())
		}
	})
	return w
}

// deployments prints the Deployments' spec and status.
func (w *world) deployments() string {
	list, err := w.cluster.Kube.AppsV1().Deployments(w.ns).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, d := range list.Items {
		fmt.Fprintf(&b, "%s generation %d %v\n  minReadySeconds %d %v\n  %+v\n", d.Name, d.Generation, d.Annotations, d.Spec.MinReadySeconds,
			d.Spec.Strategy.RollingUpdate, d.Status)
	}
	return b.String()
}

// edit changes a file of the state branch like an unauthorised user.
func (w *world) edit(file, old, with string) {
	w.t.Helper()
	dir := w.t.TempDir()
	w.repo.Git("clone", "-q", "--single-branch", "--branch", w.stateBranch(), w.repo.Bare, dir)
	path := filepath.Join(dir, file)
	data, err := os.ReadFile(path)
	must(w.t, err)
	edited := strings.Replace(string(data), old, with, 1)
	if edited == string(data) {
		w.t.Fatalf("%s has no %q:\n%s", file, old, data)
	}
	must(w.t, os.WriteFile(path, []byte(edited), 0o644))
	w.repo.Git("-C", dir, "commit", "-q", "-a", "-m", "by hand")
	w.repo.Git("-C", dir, "push", "-q", "origin", "HEAD:"+w.stateBranch())
}

func (w *world) log0() []string {
	if w.repo.Ref(w.stateBranch()) == "" {
		return nil
	}
	return w.repo.Log(w.stateBranch())
}

func (w *world) stateBranch() string { return "gitrollout/state/test" }

// push commits files of the app on top of the server's branch, and pushes them.
func (w *world) push(message string, files map[string]string) string {
	w.t.Helper()
	if w.repo.Ref("main") != "" {
		w.repo.Pull()
	}
	all := map[string]string{}
	for name, content := range files {
		all["apps/"+w.app+"/"+name] = strings.ReplaceAll(content, "NS", w.ns)
	}
	return w.repo.CommitFiles(message, all)
}

// start runs gitrollout until the test ends or stop is called.
func (w *world) start(flags ...string) *world {
	w.t.Helper()
	if len(w.namespaces) > 0 {
		flags = append([]string{"--namespaces", strings.Join(w.namespaces, ",")}, flags...)
	}
	return w.startExactly(append([]string{
		"run", "--repo", w.server.URL, "--cluster", "test", "--kubeconfig", w.cluster.Kubeconfig, "--interval", "200ms",
		"--analysis-allow-cidr", "127.0.0.0/8", // the tests' metrics servers
	}, flags...)...)
}

// startExactly is start without default flags.
func (w *world) startExactly(args ...string) *world {
	w.t.Helper()
	w.flags = args
	w.home = w.t.TempDir()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = false // a test may have stopped the previous process
	must(w.t, w.spawn())
	w.t.Cleanup(w.stop)
	return w
}

// spawn starts the process; the caller holds the lock.
func (w *world) spawn() error {
	if w.inside != nil {
		w.process = w.inside.command(w.flags...)
		w.process.Env = append(w.process.Env, w.env...)
	} else {
		path, err := binary()
		if err != nil {
			return err
		}
		w.process = exec.Command(path, w.flags...)
		w.process.Env = append(append(gittest.Env(), "HOME="+w.home), w.env...)
	}
	w.process.Stdout, w.process.Stderr = w.log, w.log
	if err := w.process.Start(); err != nil {
		return err
	}
	w.exited = make(chan error, 1)
	go func(p *exec.Cmd, exited chan error) { exited <- p.Wait() }(w.process, w.exited)
	return nil
}

// killedMark separates two processes in the log.
const killedMark = "--- killed, started again ---"

// restartAfterKill kills gitrollout and restarts it.
func (w *world) restartAfterKill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return // the test is over
	}
	_ = w.process.Process.Kill()
	<-w.exited
	fmt.Fprintln(w.log, killedMark)
	if err := w.spawn(); err != nil {
		w.t.Error(err)
	}
}

// kill ends gitrollout with SIGKILL.
func (w *world) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	_ = w.process.Process.Kill()
	<-w.exited
}

// stop terminates gitrollout and waits for it.
func (w *world) stop() {
	w.mu.Lock()
	done := w.stopped || w.process == nil
	w.stopped = true
	w.mu.Unlock() // restartAfterKill may be waiting for the lock
	if done {
		return
	}
	_ = w.process.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-w.exited:
		// A process that was killed at the last effect has only just been restarted, and may not handle signals yet.
		if hasBegun := !strings.HasSuffix(strings.TrimSpace(w.log.String()), killedMark); err != nil && hasBegun {
			w.t.Errorf("gitrollout ended with %v", err)
		}
	case <-time.After(timeout):
		w.t.Errorf("gitrollout did not end within %s of SIGTERM", timeout)
		_ = w.process.Process.Kill()
	}
}

// cli runs another gitrollout command on the same repository and cluster.
func (w *world) cli(args ...string) (string, error) {
	path, err := binary()
	must(w.t, err)
	cmd := exec.Command(path, append(args, "--repo", w.server.URL, "--cluster", "test")...)
	cmd.Env = append(gittest.Env(), "HOME="+w.t.TempDir(), "KUBECONFIG="+w.cluster.Kubeconfig, "GIT_AUTHOR_NAME=Ann",
		"GIT_AUTHOR_EMAIL=ann@example.com")
	cmd.Env = append(cmd.Env, w.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// ran runs another gitrollout command, and ends the test if it fails.
func (w *world) ran(args ...string) {
	w.t.Helper()
	if out, err := w.cli(args...); err != nil {
		w.t.Fatalf("gitrollout %v: %v\n%s", args, err, out)
	}
}

// state reads the app's state from the state branch. It runs git only if the branch has moved: a process for each poll
// of eight parallel tests takes a whole core.
func (w *world) state() rollout.State {
	w.t.Helper()
	head, err := os.ReadFile(filepath.Join(w.repo.Bare, "refs", "heads", filepath.FromSlash(w.stateBranch())))
	if err != nil {
		return rollout.State{} // no branch yet
	}
	w.seen.Lock()
	defer w.seen.Unlock()
	if id := strings.TrimSpace(string(head)); id != w.seen.head {
		w.seen.state, w.seen.head = w.readState(id), id
	}
	return w.seen.state
}

func (w *world) readState(commit string) rollout.State {
	w.t.Helper()
	file := rollout.StatePath(w.app)
	show := exec.Command("git", "-C", w.repo.Bare, "cat-file", "blob", commit+":"+file)
	show.Env = gittest.Env()
	data, err := show.Output()
	if err != nil {
		return rollout.State{} // no such file
	}
	s, err := rollout.ParseState(file, data)
	if err != nil {
		w.t.Fatalf("state on the branch: %v", err)
	}
	return *s
}

// glance is the poll interval of await and others.
const glance = 100 * time.Millisecond

const timeout = 5 * time.Minute

// await waits until the state satisfies a condition.
func (w *world) await(what string, ok func(rollout.State) bool) rollout.State {
	w.t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		s := w.state()
		if ok(s) {
			return s
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not within %s: %s; the state is %s step %+v reason %q held %+v", timeout, what, s.Phase, s.Progress, s.Reason, s.Held)
		}
		time.Sleep(glance)
	}
}

func (w *world) awaitHealthy(commit string) rollout.State {
	w.t.Helper()
	return w.await("healthy at "+rollout.ShortID(commit), func(s rollout.State) bool {
		return s.Phase == rollout.Healthy && s.Stable != nil && s.Stable.Commit == commit
	})
}

// awaitStep waits until the release is at a step in a phase.
func (w *world) awaitStep(step int, phase rollout.Phase) rollout.State {
	w.t.Helper()
	return w.await(fmt.Sprintf("%s at step %d", phase, step), func(s rollout.State) bool {
		return s.Phase == phase && len(s.Progress) == 1 && s.Progress[0].Step == step
	})
}

// promote merges the proposal, like a user of a plain Git server.
func (w *world) promote() {
	w.t.Helper()
	branch := "gitrollout/promote/test/" + w.app
	deadline := time.Now().Add(timeout)
	for w.repo.Ref(branch) == "" {
		if time.Now().After(deadline) {
			w.t.Fatalf("no proposal %s within %s", branch, timeout)
		}
		time.Sleep(glance)
	}
	w.repo.Merge(branch)
}

func (w *world) deployment() *appsv1.Deployment {
	w.t.Helper()
	d, err := w.cluster.Kube.AppsV1().Deployments(w.ns).Get(context.Background(), "shop", metav1.GetOptions{})
	must(w.t, err)
	return d
}

// kubectl runs bin/kubectl.
func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	cmd := exec.Command(filepath.Join("..", "..", "bin", "kubectl"),
		append([]string{"--kubeconfig", w.cluster.Kubeconfig, "-n", w.ns}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
