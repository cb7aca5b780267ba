package traffic

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

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/proxytest"
	"gitrollout.dev/gitrollout/internal/testbin"
	"gitrollout.dev/gitrollout/rollout"
)

// timeout is far longer than any event takes, so that no test fails on a busy machine.
const timeout = 5 * time.Minute

// world has users, a repository with apps, and a gitrollout process that releases the apps. If releases have analyses, a Prometheus scrapes
// the apps' pods.
type world struct {
	*proxytest.World
	t          *testing.T
	repo       *gittest.Repo
	server     *gittest.Server
	prometheus *prometheus // scrapes the pods; nil without analyses
	apps       []*app
	log        testbin.Output
	began      time.Time
	head       string // the last pushed commit
	command    *exec.Cmd
	exited     chan error

	settled time.Duration // alone or beside

	mu      sync.Mutex
	history []record
}

// app is one app and its users.
type app struct {
	w    *world
	name string // name of the app, its folder and its namespace
	host string
	shop shop
	load *proxytest.Load
}

// record is a commit on the state branch, and the time when the test first saw the commit. Commit times have only whole seconds.
type record struct {
	at      time.Time
	subject string
	states  map[string]rollout.State
}

const stateRef = "refs/heads/gitrollout/state/test"

// newWorld pushes the apps, lets gitrollout deploy them, and waits until each app has its pods and responds through its routes.
func newWorld(t *testing.T, settled time.Duration, shops ...shop) *world {
	t.Helper()
	return (&world{t: t, settled: settled}).begin(shops)
}

// token is the credential in the Secret metrics of each measured app.
const token = "Zm9v-s3cr3t-t0ken"

// newMeasured returns a world with a Prometheus. In the apps' files, PROMETHEUS stands for the Prometheus's address. Tests with this world
// do not check the proxy's delay after a change of weights.
func newMeasured(t *testing.T, shops ...measured) *world {
	t.Helper()
	w := &world{t: t, settled: alone, prometheus: startPrometheus(t)}
	return w.begin(rollout.Mapped(shops, measured.shop))
}

func (w *world) begin(shops []shop) *world {
	w.t.Helper()
	w.World, w.repo, w.began = proxytest.Start(w.t), gittest.New(w.t), time.Now()
	config := "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n"
	for _, s := range shops {
		ns := w.Namespace(w.t)
		w.apps = append(w.apps, &app{w: w, name: ns, host: ns + ".test", shop: s})
		if s.template != "" {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "metrics", Labels: map[string]string{"gitrollout.dev/analysis": "true"}},
				StringData: map[string]string{"token": token}}
			_, err := w.Kube.CoreV1().Secrets(ns).Create(w.t.Context(), secret, metav1.CreateOptions{})
			must(w.t, err)
		}
		config += fmt.Sprintf("- path: apps/%s\n  namespace: %s\n", ns, ns)
	}
	w.repo.Write(map[string]string{".gitrollout/test/config.yaml": config})
	w.push("first version", func(s shop) shop { return s })
	w.server = w.repo.HTTP(gittest.HTTPOptions{})
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.t.Logf("gitrollout's log:\n%s", w.log.String())
			w.t.Logf("state branch:\n%s", w.told())
		}
	})
	w.background(w.watch)
	if w.prometheus != nil {
		w.background(func(ctx context.Context) { w.prometheus.follow(ctx, w) })
	}
	w.start()
	w.t.Cleanup(w.stop)
	w.awaitAnswers()
	return w
}

// awaitAnswers waits until each app has its pods and responds through its routes.
func (w *world) awaitAnswers() {
	w.t.Helper()
	for _, a := range w.apps {
		a.awaitHealthy(w.began)
		if a.shop.replicas == 0 {
			a.scale(10)
		}
	}
	for _, a := range w.apps {
		if !a.shop.unasked {
			proxytest.Await(w.t, timeout, a.user(), func(r proxytest.Result) bool { return r.Version == a.shop.version })
		}
	}
}

// background runs a function until the test ends.
func (w *world) background(run func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { run(ctx) })
	w.t.Cleanup(func() { stop(); done.Wait() })
}

// watch polls the state branch every few milliseconds.
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

// note records the states of all apps at a commit. The polls miss no commit, because a push takes longer than the interval between two
// polls.
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

// told lists the state branch's commits, with the times when the test saw each commit.
func (w *world) told() string {
	var b strings.Builder
	for _, r := range w.records() {
		fmt.Fprintf(&b, "%s %8.3fs %s\n", r.at.Format("15:04:05.000"), r.at.Sub(w.began).Seconds(), r.subject)
	}
	return b.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// gitrollout returns a command for the world's repository and cluster.
func (w *world) gitrollout(args ...string) *exec.Cmd {
	w.t.Helper()
	path, err := binary()
	must(w.t, err)
	cmd := exec.Command(path, append(args, "--repo", w.server.URL, "--cluster", "test")...)
	cmd.Env = append(gittest.Env(), "HOME="+w.t.TempDir(), "KUBECONFIG="+w.Kubeconfig)
	return cmd
}

func (w *world) start() {
	w.t.Helper()
	w.command = w.gitrollout("run", "--kubeconfig", w.Kubeconfig, "--interval", "200ms", "--analysis-allow-cidr", "127.0.0.0/8")
	w.command.Stdout, w.command.Stderr = &w.log, &w.log
	must(w.t, w.command.Start())
	w.exited = make(chan error, 1)
	go func(c *exec.Cmd, exited chan error) { exited <- c.Wait() }(w.command, w.exited)
}

// stop terminates gitrollout, and waits until the process has ended.
func (w *world) stop() {
	_ = w.command.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-w.exited:
		if err != nil {
			w.t.Errorf("gitrollout ended with %v", err)
		}
	case <-time.After(timeout):
		w.t.Errorf("gitrollout did not end within %s of SIGTERM", timeout)
		_ = w.command.Process.Kill()
	}
}

func (w *world) killAndStart() {
	w.t.Helper()
	_ = w.command.Process.Kill()
	<-w.exited
	fmt.Fprintln(&w.log, "--- killed, started again ---")
	w.start()
}

// push changes all apps, and commits and pushes the change. It returns the commit and the time of the push.
func (w *world) push(message string, change func(shop) shop) (string, time.Time) {
	w.t.Helper()
	for _, a := range w.apps {
		a.shop = change(a.shop)
		for name, content := range a.shop.files() {
			w.repo.Write(map[string]string{"apps/" + a.name + "/" + name: w.filled(a, content)})
		}
	}
	at := time.Now()
	w.head = w.repo.Commit(message)
	return w.head, at
}

// filled fills in the names and addresses in a file of an app.
func (w *world) filled(a *app, content string) string {
	prometheus := ""
	if w.prometheus != nil {
		prometheus = w.prometheus.URL
	}
	return strings.NewReplacer("HOST", a.host, "SETTLE", w.settled.String(), "NS", a.name, "PROMETHEUS", prometheus).Replace(content)
}

// release pushes a version of all apps. It returns the commit and the time of the push.
func (w *world) release(version string) (string, time.Time) {
	w.t.Helper()
	return w.push(version, func(s shop) shop { return s.at(version) })
}

func (w *world) app(name string) *app {
	w.t.Helper()
	i := slices.IndexFunc(w.apps, func(a *app) bool { return a.shop.name == name })
	if i < 0 {
		w.t.Fatalf("there is no app %s", name)
	}
	return w.apps[i]
}

// decide pushes one commit with the same decision for the releases of all apps. It returns the time of the push.
func (w *world) decide(decision rollout.Verb, through string) time.Time {
	w.t.Helper()
	for _, a := range w.apps {
		s := a.state()
		if s.Release == nil {
			w.t.Fatalf("%s: no release to %s; the state is %s", a, decision, s.Phase)
		}
		file := rollout.Promotion{Release: s.Release.Hash, Decision: decision}
		if decision == rollout.Promote {
			file.Through = through
		}
		data, err := file.Encode()
		must(w.t, err)
		w.repo.Write(map[string]string{rollout.PromotionPath("test", a.name): string(data)})
	}
	at := time.Now()
	w.repo.Commit(string(decision) + " " + through)
	return at
}

// users starts the given number of requests per second to each app.
func (w *world) users(perSecond float64) {
	w.t.Helper()
	for _, a := range w.apps {
		a.load = proxytest.StartLoad(w.t, perSecond, proxytest.Always(a.user()))
	}
}

// quiet ends the requests of all users and fails the test if a request failed.
func (w *world) quiet() {
	w.t.Helper()
	for _, a := range w.apps {
		results := a.load.Stop()
		results.WantNoFailure(w.t, a.String())
		w.t.Logf("%-10s %6d requests, %d failed, %d to pods that were not ready; median %s, 99 %% within %s", a, len(results),
			len(results.Failures()), len(results.Unready()),
			results.Latency(0.5).Round(10*time.Microsecond), results.Latency(0.99).Round(10*time.Microsecond))
	}
}

func (a *app) String() string { return a.shop.name }

func (a *app) user() proxytest.Request {
	return proxytest.Request{URL: a.shop.url(a.w.World) + "/any", Host: a.host}
}

// state returns the app's newest state.
func (a *app) state() rollout.State {
	history := a.w.records()
	if len(history) == 0 {
		return rollout.State{}
	}
	return history[len(history)-1].states[a.name]
}

// await returns the first record whose state satisfies a condition. Records before `since` do not count.
func (a *app) await(since time.Time, what string, ok func(rollout.State) bool) record {
	a.w.t.Helper()
	for deadline := time.Now().Add(timeout); ; time.Sleep(10 * time.Millisecond) {
		for _, r := range a.w.records() {
			if s, known := r.states[a.name]; known && !r.at.Before(since) && ok(s) {
				return r
			}
		}
		if time.Now().After(deadline) {
			s := a.state()
			a.w.t.Fatalf("%s: not within %s: %s; the state is %s step %+v reason %q held %+v, analyses %+v", a, timeout, what, s.Phase, s.Progress,
				s.Reason, s.Held, s.Analyses)
		}
	}
}

func (a *app) awaitHealthy(since time.Time) record {
	a.w.t.Helper()
	return a.await(since, "healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Release == nil })
}

// awaitReleased waits until the last push is released.
func (a *app) awaitReleased(since time.Time) record {
	a.w.t.Helper()
	return a.await(since, "healthy", func(s rollout.State) bool {
		return s.Phase == rollout.Healthy && s.Stable != nil && s.Stable.Commit == a.w.head
	})
}

// awaitRejected waits until the new version is rolled back.
func (a *app) awaitRejected(since time.Time) record {
	a.w.t.Helper()
	return a.await(since, "back and rejected", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
}

// runs returns the analyses of an app's last release. After the release, the analyses are only in the state branch's history.
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

// awaitRouted returns the first record whose routes have the given weight. Records before `since` do not count.
func (a *app) awaitRouted(since time.Time, weight int) record {
	a.w.t.Helper()
	return a.await(since, fmt.Sprintf("routes %d", weight), func(s rollout.State) bool {
		return len(s.Progress) == 1 && s.Progress[0].Routed != nil && s.Progress[0].Routed.Weight == weight
	})
}

// paused waits until all apps are paused at a step, and returns the time when the last app paused.
func (w *world) paused(since time.Time, step int) (last time.Time) {
	w.t.Helper()
	for _, a := range w.apps {
		if paused := a.awaitPaused(since, step); paused.at.After(last) {
			last = paused.at
		}
	}
	return last
}

func (a *app) awaitPaused(since time.Time, step int) record {
	a.w.t.Helper()
	return a.await(since, fmt.Sprintf("paused at step %d", step), func(s rollout.State) bool {
		return s.Phase == rollout.Paused && len(s.Progress) == 1 && s.Progress[0].Step == step
	})
}

// scale sets the replicas as an autoscaler does.
func (a *app) scale(n int32) {
	a.w.t.Helper()
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: a.name, Name: "shop"}, Spec: autoscalingv1.ScaleSpec{Replicas: n}}
	if _, err := a.w.Kube.AppsV1().Deployments(a.name).UpdateScale(a.w.t.Context(), "shop", scale, metav1.UpdateOptions{}); err != nil {
		a.w.t.Fatalf("scale %s: %v", a, err)
	}
}

// awaitPods waits until each version has exactly the given number of ready pods, and no other pods exist.
func (a *app) awaitPods(want map[string]int) {
	a.w.t.Helper()
	var got map[string]int
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		pods, err := a.w.Kube.CoreV1().Pods(a.name).List(a.w.t.Context(), metav1.ListOptions{})
		must(a.w.t, err)
		got = map[string]int{}
		for _, pod := range pods.Items {
			_, version, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
			if pod.DeletionTimestamp != nil {
				continue
			}
			if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				version += " not ready"
			}
			got[version]++
		}
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
	}
	a.w.t.Fatalf("%s: the pods are %v, want %v", a, got, want)
}
