package e2e

import (
	"bytes"
	"cmp"
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

// world is one test's repository, namespace and gitrollout process. Its app has the namespace's name, so that tests can share a cluster.
type world struct {
	t       *testing.T
	repo    *gittest.Repo
	server  *gittest.Server
	cluster *testcluster.Cluster
	name    string // the cluster's name in the repository; "" means test
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
	// gitrollout watches only these namespaces; if the list is empty, gitrollout watches the whole cluster.
	namespaces []string
	env        []string // additional environment variables
	home       string
	inside     *container // the container that runs the process, or nil

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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// output runs a command, and returns its output. A command that fails ends the test.
func output(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out)
}

func readText(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	return string(data)
}

// tempFile writes a file to a new folder, and returns its path.
func tempFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// oneLine joins the lines of an output, which commands wrap at the terminal's width.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// running starts gitrollout in a new world, and returns the world once the first version is healthy.
func running(t *testing.T, files map[string]string) *world {
	t.Helper()
	w := newWorld(t, files).start()
	w.awaitHealthy(w.repo.Head())
	return w
}

// newWorld pushes the files of a single app and starts watching the app's pods. Paths in files are relative to the app's folder. "NS" in
// contents is replaced by the namespace.
func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	return newWorldOn(t, testcluster.Shared(t), files)
}

// newWorldOn pushes the files of a single app and starts watching its pods on the given cluster.
func newWorldOn(t *testing.T, cluster *testcluster.Cluster, files map[string]string) *world {
	t.Helper()
	w := emptyWorld(t, cluster, gittest.New(t))
	w.app = w.ns
	w.repo.Write(map[string]string{configFile: configOf(w.app, w.ns, "")})
	w.push("first version", files)
	w.server = w.repo.HTTP(gittest.HTTPOptions{})
	return w
}

// emptyWorld returns a world without an app, in a new namespace. A failed test prints logs, pods and Deployments of the namespace.
func emptyWorld(t *testing.T, cluster *testcluster.Cluster, repo *gittest.Repo) *world {
	w := &world{t: t, repo: repo, cluster: cluster, ns: cluster.Namespace(t), log: &lockedBuffer{}}
	w.namespaces = []string{w.ns}
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

const configFile = ".gitrollout/test/config.yaml"

// configOf returns a configuration with one app. The argument "more" has further lines of the app's entry, indented by two spaces, and then
// other sections.
func configOf(app, namespace, more string) string {
	return fmt.Sprintf("apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/%s\n  namespace: %s\n%s", app, namespace, more)
}

// deployments returns the Deployments' spec and status as text.
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

// edit replaces a text in a file of the state branch, as a user might do by hand.
func (w *world) edit(file, old, with string) {
	w.t.Helper()
	dir := w.t.TempDir()
	w.repo.Git("clone", "-q", "--single-branch", "--branch", w.stateBranch(), w.repo.Bare, dir)
	path := filepath.Join(dir, file)
	data := readText(w.t, path)
	edited := strings.Replace(data, old, with, 1)
	if edited == data {
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

func (w *world) clusterName() string { return cmp.Or(w.name, "test") }

func (w *world) stateBranch() string { return rollout.StateBranch(w.clusterName()) }

// push commits files of the app on top of the server's branch, and pushes them.
func (w *world) push(message string, files map[string]string) string {
	w.t.Helper()
	if w.repo.Ref("main") != "" {
		w.repo.Pull()
	}
	w.write(files)
	return w.repo.Commit(message)
}

// write writes files of the app to the worktree.
func (w *world) write(files map[string]string) {
	w.t.Helper()
	for name, content := range files {
		w.repo.Write(map[string]string{"apps/" + w.app + "/" + name: strings.ReplaceAll(content, "NS", w.ns)})
	}
}

// stage pushes a version, and waits until the version's release pauses at step 1.
func (w *world) stage(message string, files map[string]string) string {
	w.t.Helper()
	commit := w.push(message, files)
	w.awaitPause(1)
	return commit
}

// supersede pushes a version during the release of another version, and waits until the new release pauses at step 1.
func (w *world) supersede(message string, files map[string]string) string {
	w.t.Helper()
	commit := w.push(message, files)
	w.await(message+" at step 1", func(s rollout.State) bool {
		return s.Phase == rollout.Paused && len(s.Progress) == 1 && s.Progress[0].Step == 1 && s.Release.Commit == commit
	})
	return commit
}

// release pushes a version, promotes the release at step 1, and waits until the app is healthy.
func (w *world) release(message string, files map[string]string) {
	w.t.Helper()
	commit := w.stage(message, files)
	w.promote().awaitHealthy(commit)
}

// revert reverts a commit, and waits until the previous version serves.
func (w *world) revert(commit string) rollout.State {
	w.t.Helper()
	w.repo.Revert(commit)
	return w.await("healthy after the revert", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Release == nil })
}

// abort runs the command abort, and waits until the rollback has ended.
func (w *world) abort(flags ...string) rollout.State {
	w.t.Helper()
	w.ran(append([]string{"abort", w.app}, flags...)...)
	return w.await("rolled back", func(s rollout.State) bool { return s.Phase == rollout.Degraded && s.Release == nil })
}

// configure pushes configOf's configuration, and returns it.
func (w *world) configure(more string) (config string) {
	w.t.Helper()
	w.repo.Pull()
	config = configOf(w.app, w.ns, more)
	w.repo.CommitFiles("another configuration", map[string]string{configFile: config})
	return config
}

// start runs gitrollout until the test ends or stop is called.
func (w *world) start(flags ...string) *world {
	w.t.Helper()
	if len(w.namespaces) > 0 {
		flags = append([]string{"--namespaces", strings.Join(w.namespaces, ",")}, flags...)
	}
	return w.startExactly(append([]string{
		"run", "--repo", w.server.URL, "--cluster", w.clusterName(), "--kubeconfig", w.cluster.Kubeconfig, "--interval", "200ms",
		"--analysis-allow-cidr", "127.0.0.0/8", // the tests' metrics servers
	}, flags...)...)
}

// startExactly runs gitrollout with only the given arguments until the test ends or stop is called.
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

// killedMark separates the output of two processes in the log.
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

// stop terminates gitrollout, and waits until the process ends.
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
		// An error right after restartAfterKill is ignored, because the new process perhaps does not handle signals yet.
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
	cmd := exec.Command(path, append(args, "--repo", w.server.URL, "--cluster", w.clusterName())...)
	cmd.Env = append(gittest.Env(), "HOME="+w.t.TempDir(), "KUBECONFIG="+w.cluster.Kubeconfig, "GIT_AUTHOR_NAME=Ann",
		"GIT_AUTHOR_EMAIL=ann@example.com")
	cmd.Env = append(cmd.Env, w.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// ran runs another gitrollout command, and returns its output. A command that fails ends the test.
func (w *world) ran(args ...string) string {
	w.t.Helper()
	out, err := w.cli(args...)
	if err != nil {
		w.t.Fatalf("gitrollout %v: %v\n%s", args, err, out)
	}
	return out
}

// failed runs another gitrollout command, which must fail, and returns its output.
func (w *world) failed(args ...string) string {
	w.t.Helper()
	out, err := w.cli(args...)
	if err == nil {
		w.t.Fatalf("gitrollout %v succeeds:\n%s", args, out)
	}
	return out
}

// promote merges the branch of the promotion's proposal, as a user of a plain Git server does.
func (w *world) promote() *world {
	w.t.Helper()
	branch := "gitrollout/promote/test/" + w.app
	w.until("a proposal "+branch, func() bool { return w.repo.Ref(branch) != "" })
	w.repo.Merge(branch)
	return w
}

func (w *world) deployment() *appsv1.Deployment {
	w.t.Helper()
	d, err := w.cluster.Kube.AppsV1().Deployments(w.ns).Get(context.Background(), "shop", metav1.GetOptions{})
	must(w.t, err)
	return d
}

func (w *world) image() string {
	w.t.Helper()
	return w.deployment().Spec.Template.Spec.Containers[0].Image
}

func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	return output(w.t, w.kubectlCommand(args))
}

// tryKubectl runs bin/kubectl, and returns the command's output and error.
func (w *world) tryKubectl(args ...string) (string, error) {
	out, err := w.kubectlCommand(args).CombinedOutput()
	return string(out), err
}

func (w *world) kubectlCommand(args []string) *exec.Cmd {
	return exec.Command(kubectl, append([]string{"--kubeconfig", w.cluster.Kubeconfig, "-n", w.ns}, args...)...)
}

var kubectl = filepath.Join("..", "..", "bin", "kubectl")

func (w *world) apply(manifests string) {
	w.t.Helper()
	w.kubectl("apply", "-f", tempFile(w.t, "manifests.yaml", manifests))
}
