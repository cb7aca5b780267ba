package analysis

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/proxytest"
	"gitrollout.dev/gitrollout/rollout"
)

// patience is generous: test packages share few cores.
const patience = 90 * time.Second

// token is the credential in each app's Secret metrics.
const token = "Zm9v-s3cr3t-t0ken"

const stateRef = "refs/heads/gitrollout/state/test"

// world is a repository with apps, a gitrollout that releases them, a Prometheus
// that scrapes their pods, and users.
type world struct {
	*proxytest.World
	t          *testing.T
	repo       *gittest.Repo
	server     *gittest.Server
	prometheus *prometheus
	apps       []*app
	log        lockedBuffer
	began      time.Time
	head       string // the commit that was pushed last
	command    *exec.Cmd
	exited     chan error

	mu      sync.Mutex
	history []record
}

// app is one app and its users.
type app struct {
	w    *world
	name string // of the app, its folder and its namespace
	shop shop
	load *proxytest.Load
}

// record is what one commit on the state branch says, and when it was first seen.
type record struct {
	at      time.Time
	subject string
	states  map[string]rollout.State
}

// newWorld pushes the apps, lets gitrollout deploy them, and returns when all
// answer. PROMETHEUS in their files becomes its address unless replaced before.
func newWorld(t *testing.T, shops ...shop) *world {
	t.Helper()
	w := &world{World: proxytest.Start(t), t: t, repo: gittest.New(t), prometheus: startPrometheus(t), began: time.Now()}
	config := "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n"
	for _, s := range shops {
		ns := w.Namespace(t)
		w.apps = append(w.apps, &app{w: w, name: ns, shop: s})
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "metrics"}, StringData: map[string]string{"token": token}}
		if _, err := w.Kube.CoreV1().Secrets(ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		config += fmt.Sprintf("- path: apps/%s\n  namespace: %s\n", ns, ns)
	}
	w.repo.Write(map[string]string{".gitrollout/test/config.yaml": config})
	w.push("first version", func(s shop) shop { return s })
	w.server = w.repo.HTTP(gittest.HTTPOptions{})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("gitrollout's log:\n%s", w.log.String())
			t.Logf("state branch:\n%s", w.told())
		}
	})
	w.background(w.watch)
	w.background(func(ctx context.Context) { w.prometheus.follow(ctx, w) })
	w.start()
	t.Cleanup(w.stop)
	for _, a := range w.apps {
		a.awaitHealthy(w.began)
	}
	for _, a := range w.apps {
		if !a.shop.plain {
			proxytest.Await(t, patience, a.user(), func(r proxytest.Result) bool { return r.Version == a.shop.version })
		}
	}
	return w
}

// background runs something until the test ends.
func (w *world) background(run func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { run(ctx) })
	w.t.Cleanup(func() { stop(); done.Wait() })
}

// watch looks at the state branch every few milliseconds.
func (w *world) watch(ctx context.Context) {
	for last := ""; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		at := time.Now()
		data, err := os.ReadFile(filepath.Join(w.repo.Bare, filepath.FromSlash(stateRef)))
		if head := strings.TrimSpace(string(data)); err == nil && head != last && head != "" {
			last = head
			w.note(at, head)
		}
	}
}

// note adds the state of all apps at a commit.
func (w *world) note(at time.Time, commit string) {
	show := func(args ...string) []byte {
		cmd := exec.Command("git", append([]string{"-C", w.repo.Bare}, args...)...)
		cmd.Env = gittest.Env()
		out, _ := cmd.Output()
		return out
	}
	r := record{at: at, subject: strings.TrimSpace(string(show("log", "-1", "--format=%s", commit))), states: map[string]rollout.State{}}
	for _, a := range w.apps {
		file := rollout.StatePath(a.name)
		if data := show("cat-file", "blob", commit+":"+file); len(data) > 0 {
			if s, err := rollout.ParseState(file, data); err == nil {
				r.states[a.name] = *s
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, r)
}

func (w *world) records() []record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.history)
}

// told is what the state branch said and when, for people.
func (w *world) told() string {
	var b strings.Builder
	for _, r := range w.records() {
		fmt.Fprintf(&b, "%8.3fs %s\n", r.at.Sub(w.began).Seconds(), r.subject)
	}
	return b.String()
}

// start runs gitrollout.
func (w *world) start() {
	w.t.Helper()
	path, err := binary()
	if err != nil {
		w.t.Fatal(err)
	}
	w.command = exec.Command(path, "run", "--repo", w.server.URL, "--cluster", "test", "--kubeconfig", w.Kubeconfig, "--interval", "200ms")
	w.command.Env = append(gittest.Env(), "HOME="+w.t.TempDir())
	w.command.Stdout, w.command.Stderr = &w.log, &w.log
	if err := w.command.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.exited = make(chan error, 1)
	go func(c *exec.Cmd, exited chan error) { exited <- c.Wait() }(w.command, w.exited)
}

// stop asks gitrollout to end and waits for it.
func (w *world) stop() {
	_ = w.command.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-w.exited:
		if err != nil {
			w.t.Errorf("gitrollout ended with %v", err)
		}
	case <-time.After(15 * time.Second):
		w.t.Error("gitrollout did not end within 15s of SIGTERM")
		_ = w.command.Process.Kill()
	}
}

// killAndStart ends gitrollout as a power cut does, and starts it again.
func (w *world) killAndStart() {
	w.t.Helper()
	_ = w.command.Process.Kill()
	<-w.exited
	fmt.Fprintln(&w.log, "--- killed, started again ---")
	w.start()
}

// push commits a change of all apps and pushes it. It returns the moment.
func (w *world) push(message string, change func(shop) shop) time.Time {
	w.t.Helper()
	for _, a := range w.apps {
		a.shop = change(a.shop)
		for name, content := range a.shop.files() {
			content = strings.NewReplacer("NS", a.name, "PROMETHEUS", w.prometheus.URL).Replace(content)
			w.repo.Write(map[string]string{"apps/" + a.name + "/" + name: content})
		}
	}
	at := time.Now()
	w.head = w.repo.Commit(message)
	return at
}

// app is the one with a name.
func (w *world) app(name string) *app {
	w.t.Helper()
	i := slices.IndexFunc(w.apps, func(a *app) bool { return a.shop.name == name })
	if i < 0 {
		w.t.Fatalf("there is no app %s", name)
	}
	return w.apps[i]
}

func (a *app) String() string { return a.shop.name }

func (a *app) user() proxytest.Request {
	return proxytest.Request{URL: a.w.GatewayURL + "/any", Host: a.name + ".test"}
}

// state is the newest.
func (a *app) state() rollout.State {
	history := a.w.records()
	if len(history) == 0 {
		return rollout.State{}
	}
	return history[len(history)-1].states[a.name]
}

// await returns the first record since a moment whose state is as wanted.
func (a *app) await(since time.Time, what string, ok func(rollout.State) bool) record {
	a.w.t.Helper()
	return a.awaitFor(patience, since, what, ok)
}

func (a *app) awaitFor(d time.Duration, since time.Time, what string, ok func(rollout.State) bool) record {
	a.w.t.Helper()
	for deadline := time.Now().Add(d); ; time.Sleep(20 * time.Millisecond) {
		for _, r := range a.w.records() {
			if s, known := r.states[a.name]; known && !r.at.Before(since) && ok(s) {
				return r
			}
		}
		if time.Now().After(deadline) {
			s := a.state()
			a.w.t.Fatalf("%s: not within %s: %s; the state is %s step %+v reason %q held %+v, analyses %+v", a, d, what, s.Phase, s.Progress, s.Reason, s.Held, s.Analyses)
		}
	}
}

// awaitHealthy waits until what was pushed last is through.
func (a *app) awaitHealthy(since time.Time) record {
	a.w.t.Helper()
	return a.await(since, "healthy", func(s rollout.State) bool {
		return s.Phase == rollout.Healthy && s.Stable != nil && s.Stable.Commit == a.w.head
	})
}

// awaitRejected waits until the way back has ended.
func (a *app) awaitRejected(since time.Time) record {
	a.w.t.Helper()
	return a.await(since, "back and rejected", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
}

// runs are the analyses of an app's last release: a release that is through keeps
// them in Git's history alone.
func (a *app) runs() []rollout.AnalysisRun {
	a.w.t.Helper()
	for _, r := range slices.Backward(a.w.records()) {
		if runs := r.states[a.name].Analyses; len(runs) > 0 {
			return runs
		}
	}
	a.w.t.Fatalf("%s: there is no analysis on record", a)
	return nil
}
