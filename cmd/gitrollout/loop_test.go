package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// loopWorld has a real Git server and a real API server, both with injectable faults. It has a clock for the loops, and one app. The app
// and its namespace have the same name.
type loopWorld struct {
	*testing.T
	repo       *gittest.Repo
	server     *gittest.Server
	kube       *testcluster.Cluster
	api        *apiGate
	ns         string
	app        string
	namespaces []string      // the namespaces to which the next loop is restricted; nil for the whole cluster
	skew       time.Duration // how far the clock of the loops is ahead of the real time
	log        *safeBuffer
	keys       trustOptions
	signing    string // the key with which loops sign commits, "" for none
	author     string // the author of commits by the loops, "" for the default
	who        writer // the identity of the next loop as a writer of the state branch
}

const stateBranch = "gitrollout/state/test"

// newLoopWorld returns a world with the given files pushed as the first version of the app.
func newLoopWorld(t *testing.T, files map[string]string) *loopWorld {
	t.Helper()
	t.Parallel()
	kube := testcluster.Shared(t)
	w := &loopWorld{
		T: t, repo: gittest.New(t), kube: kube, api: newAPIGate(t, kube), ns: kube.Namespace(t), log: &safeBuffer{},
		who: writer{id: hostname()}, keys: trustOptions{allowed: []string{"127.0.0.0/8"}},
	}
	w.app, w.namespaces = w.ns, []string{w.ns}
	w.server = w.repo.HTTP(gittest.HTTPOptions{})
	w.repo.Write(map[string]string{configFile: w.config("- path: apps/*")})
	w.push("first version", files)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("state branch, newest first:\n%s\nlog:\n%s", strings.Join(w.history(), "\n"), w.log)
		}
	})
	return w
}

// newHealthyWorld returns a world in which the first version is deployed, and the process that deployed this version.
func newHealthyWorld(t *testing.T, files map[string]string) (*loopWorld, *loopProcess) {
	t.Helper()
	w := newLoopWorld(t, files)
	return w, w.startHealthy()
}

// newPausedWorld returns a world in which v1 is stable and v2 is paused at a weight of 50%. It also returns the app's record.
func newPausedWorld(t *testing.T) (*loopWorld, *loopProcess, rollout.State) {
	t.Helper()
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	return w, p, p.awaitPaused(w.pushVersion("v2"))
}

// config returns a configuration with the given app entries, each in the namespace of the test.
func (w *loopWorld) config(apps ...string) string { return configOf(w.ns, apps...) }

func configOf(namespace string, apps ...string) string {
	text := "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n"
	for _, entry := range apps {
		text += entry + "\n  namespace: " + namespace + "\n"
	}
	return text
}

// configure commits a configuration, and returns the commit.
func (w *loopWorld) configure(text string) string {
	w.Helper()
	w.repo.Pull()
	return w.repo.CommitFiles("configuration", map[string]string{configFile: text})
}

// push writes files to the app's folder in one commit on the server's users' branch, and returns the commit.
func (w *loopWorld) push(message string, files map[string]string) string {
	w.Helper()
	return w.pushAs(w.app, message, files)
}

// pushVersion pushes a version whose release pauses at a weight of 50%.
func (w *loopWorld) pushVersion(tag string) string {
	w.Helper()
	return w.push(tag, version(tag, halfThenGate))
}

// pushImage pushes only a Deployment with the given image tag. The other files of the app stay.
func (w *loopWorld) pushImage(tag string) string {
	w.Helper()
	return w.push(tag, map[string]string{"app.yaml": version(tag, "")["app.yaml"]})
}

func (w *loopWorld) pushAs(app, message string, files map[string]string) string {
	w.Helper()
	if w.repo.Ref("main") != "" {
		w.repo.Pull()
	}
	for name, content := range files {
		w.repo.Write(map[string]string{"apps/" + app + "/" + name: strings.ReplaceAll(content, "APP", app)})
	}
	return w.repo.Commit(message)
}

// start starts a new process without the data of earlier processes.
func (w *loopWorld) start() *loopProcess {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	source := sourceOptions{
		repo: w.server.URL, branch: "main", cluster: "test", author: w.author, signingKey: w.signing,
	}
	l, err := newLoop(ctx, source, w.keys, clusterOptions{kubeconfig: w.api.kubeconfig, namespaces: w.namespaces}, w.who,
		slog.New(slog.NewTextHandler(w.log, nil)), streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
	must(w, err)
	p := &loopProcess{loop: l, w: w, ctx: ctx}
	p.end = sync.OnceFunc(func() { l.close(); cancel() })
	w.Cleanup(p.end)
	return p
}

// startHealthy starts a new process, and makes passes until the head of the users' branch is deployed.
func (w *loopWorld) startHealthy() *loopProcess {
	w.Helper()
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	return p
}

// loopProcess is one process of the reconciler. It makes a pass only when the test calls for one.
type loopProcess struct {
	*loop
	w   *loopWorld
	ctx context.Context
	end func()
}

func (p *loopProcess) restart() *loopProcess {
	p.w.Helper()
	p.end()
	return p.w.start()
}

// now returns the time on the clock of the loops.
func (w *loopWorld) now() time.Time { return time.Now().Add(w.skew) }

// pass makes one pass, which polls Git and the cluster.
func (p *loopProcess) pass() error { return p.RunOnce(p.ctx, p.w.now, true) }

// passes makes n passes, one second apart on the clock of the loops and 20 ms apart in real time. It returns the last error.
func (p *loopProcess) passes(n int) (last error) {
	for range n {
		if err := p.pass(); err != nil {
			last = err
		}
		p.w.skew += time.Second
		time.Sleep(20 * time.Millisecond)
	}
	return last
}

// passWell makes n passes. The test fails if a pass returns an error.
func (p *loopProcess) passWell(n int) {
	p.w.Helper()
	if err := p.passes(n); err != nil {
		p.w.Error(err)
	}
}

// await makes passes until the app's record in Git satisfies a condition, and returns the record.
func (p *loopProcess) await(what string, ok func(rollout.State) bool) rollout.State {
	p.w.Helper()
	return p.awaitOf(p.w.app, what, ok)
}

func (p *loopProcess) awaitOf(app, what string, ok func(rollout.State) bool) rollout.State {
	p.w.Helper()
	var err error
	var s rollout.State
	defer func() {
		if p.w.Failed() && !ok(s) {
			p.w.Logf("last error %v; %s is %s %s held %+v progress %+v", err, app, s.Phase, s.Reason, s.Held, s.Progress)
		}
	}()
	await(p.w.T, what, func() bool {
		err = p.passes(1)
		s = p.w.stateOf(app)
		return ok(s)
	})
	return s
}

// await polls until ok returns true. After five minutes it fails the test.
func await(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("not within five minutes: %s", what)
		}
	}
}

func (p *loopProcess) awaitPhase(phase rollout.Phase) rollout.State {
	p.w.Helper()
	return p.await(string(phase), func(s rollout.State) bool { return s.Phase == phase })
}

func (p *loopProcess) awaitHealthy(commit string) rollout.State {
	p.w.Helper()
	return p.await("healthy at "+rollout.ShortID(commit), func(s rollout.State) bool {
		return s.Phase == rollout.Healthy && s.Stable != nil && s.Stable.Commit == commit
	})
}

func pausedAt(step int) func(rollout.State) bool {
	return func(s rollout.State) bool { return s.Phase == rollout.Paused && s.Progress[0].Step == step }
}

// awaitSource makes passes until an app's record has the given commit of the users' branch as its source.
func (p *loopProcess) awaitSource(app, commit string) rollout.State {
	p.w.Helper()
	what := app + " at " + rollout.ShortID(commit)
	return p.awaitOf(app, what, func(s rollout.State) bool { return s.Source == commit })
}

// promotion and revert return the names of the branches that propose a promotion or a revert of the app.
func (w *loopWorld) promotion() string { return "gitrollout/promote/test/" + w.app }
func (w *loopWorld) revert() string    { return "gitrollout/revert/test/" + w.app }

// release pushes a version, promotes it at its pause, waits until the app is healthy, and returns the commit.
func (p *loopProcess) release(tag string) string {
	p.w.Helper()
	s := p.awaitPaused(p.w.pushVersion(tag))
	p.w.decide(s.Release.Hash, "promote", "")
	return p.awaitHealthy(s.Release.Commit).Stable.Commit
}

// awaitPaused makes passes until the release of the given commit is paused.
func (p *loopProcess) awaitPaused(commit string) rollout.State {
	p.w.Helper()
	return p.await("paused at "+rollout.ShortID(commit), func(s rollout.State) bool {
		return s.Phase == rollout.Paused && s.Release.Commit == commit
	})
}

func (w *loopWorld) state() rollout.State { w.Helper(); return w.stateOf(w.app) }

// stateOf returns an app's record in Git. If Git has no valid record, stateOf returns an empty record.
func (w *loopWorld) stateOf(app string) rollout.State {
	w.Helper()
	file := rollout.StatePath(app)
	if w.repo.Ref(stateBranch) == "" || !slices.Contains(w.repo.Files(stateBranch), file) {
		return rollout.State{}
	}
	s, err := rollout.ParseState(file, []byte(w.repo.Show(stateBranch, file)))
	if err != nil {
		return rollout.State{}
	}
	return *s
}

// history returns the subjects of the state branch's commits, newest first, with APP for the app's name and without the cluster's name.
func (w *loopWorld) history() []string {
	if w.repo.Ref(stateBranch) == "" {
		return nil
	}
	var subjects []string
	for _, s := range w.repo.Log(stateBranch) {
		subjects = append(subjects, strings.TrimPrefix(strings.ReplaceAll(s, w.app, "APP"), "test: "))
	}
	return subjects
}

// edit writes files to a branch of the server, in a commit by another writer. A file with empty content is deleted.
func (w *loopWorld) edit(branch string, files map[string]string) {
	w.Helper()
	dir := w.TempDir()
	w.repo.Git("clone", "-q", "--single-branch", "--branch", branch, w.repo.Bare, dir)
	for name, content := range files {
		path := filepath.Join(dir, name)
		if content == "" {
			must(w, os.Remove(path))
			continue
		}
		writeFile(w, path, content)
	}
	w.repo.Git("-C", dir, "add", "--all")
	w.repo.Git("-C", dir, "commit", "-q", "-m", "by another writer")
	w.repo.Git("-C", dir, "push", "-q", "origin", "HEAD:"+branch)
}

func (w *loopWorld) deployment() *appsv1.Deployment {
	w.Helper()
	d, err := w.kube.Kube.AppsV1().Deployments(w.ns).Get(context.Background(), w.app, metav1.GetOptions{})
	must(w, err)
	return d
}

func (w *loopWorld) image() string {
	w.Helper()
	_, tag, _ := strings.Cut(w.deployment().Spec.Template.Spec.Containers[0].Image, ":")
	return tag
}

// pods returns the names of the namespace's pods by image tag, without pods that are being deleted.
func (w *loopWorld) pods() map[string][]string {
	w.Helper()
	list, err := w.kube.Kube.CoreV1().Pods(w.ns).List(context.Background(), metav1.ListOptions{})
	must(w, err)
	pods := map[string][]string{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			_, tag, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
			pods[tag] = append(pods[tag], pod.Name)
		}
	}
	return pods
}

// halfThenGate is the strategy of most tests: a weight of 50%, and then a gate (a pause without a duration).
const halfThenGate = "    canary:\n      scaling: surge\n      steps:\n      - setWeight: 50\n      - pause: {}\n"

// canaryOf returns a canary strategy with "scaling: surge" and the given steps.
func canaryOf(steps ...string) string {
	return "    canary:\n      scaling: surge\n      steps:\n      - " + strings.Join(steps, "\n      - ") + "\n"
}

// version returns the files of an app with a Deployment, a Service, a ConfigMap and a Rollout. In them, APP stands for the app's name.
func version(tag, strategy string) map[string]string {
	return map[string]string{
		"kustomization.yaml": "resources: [app.yaml, service.yaml, rollout.yaml]\n",
		"app.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: APP}
spec:
  replicas: 2
  selector: {matchLabels: {app: APP}}
  template:
    metadata: {labels: {app: APP}}
    spec:
      containers:
      - {name: app, image: "APP:` + tag + `"}
`,
		"service.yaml": `apiVersion: v1
kind: Service
metadata: {name: APP}
spec: {selector: {app: APP}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: APP}
data: {tag: "` + tag + `"}
`,
		"rollout.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Rollout\nmetadata: {name: APP}\nspec:\n" +
			"  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: APP}\n  strategy:\n" + strategy,
	}
}

// with adds `more` to `files`. A file in `more` replaces the file of the same name.
func with(files map[string]string, more map[string]string) map[string]string {
	for name, content := range more {
		files[name] = content
	}
	return files
}

// apiGate is a proxy in front of the API server. It records the writes, and refuses writes that the test selects.
type apiGate struct {
	kubeconfig string

	mu     sync.Mutex
	writes []string
	deny   func(*http.Request) bool
	wait   func(*http.Request) // called before each request, to delay the request; may be nil
}

func (g *apiGate) hold(wait func(*http.Request)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wait = wait
}

func newAPIGate(t *testing.T, kube *testcluster.Cluster) *apiGate {
	t.Helper()
	target, err := url.Parse(kube.Config.Host)
	must(t, err)
	transport, err := rest.TransportFor(kube.Config)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.FlushInterval = transport, -1
	proxy.ErrorHandler = func(rw http.ResponseWriter, _ *http.Request, _ error) { rw.WriteHeader(http.StatusBadGateway) }
	g := &apiGate{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if g.refuses(r) {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,
				"message":"the test says no"}`)
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	content := fmt.Sprintf("apiVersion: v1\nkind: Config\n"+
		"clusters: [{name: gate, cluster: {server: %q}}]\nusers: [{name: nobody, user: {}}]\n"+
		"contexts: [{name: gate, context: {cluster: gate, user: nobody}}]\ncurrent-context: gate\n", server.URL)
	must(t, os.WriteFile(g.kubeconfig, []byte(content), 0o600))
	return g
}

// refuses reports whether the request is a write that must fail, after it has called g.wait. It records other writes, except dry runs and
// Events.
func (g *apiGate) refuses(r *http.Request) bool {
	g.mu.Lock()
	wait := g.wait
	g.mu.Unlock()
	if wait != nil {
		wait(r)
	}
	if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/events") {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.deny != nil && g.deny(r) {
		return true
	}
	if r.URL.Query().Get("dryRun") == "" {
		g.writes = append(g.writes, r.Method+" "+r.URL.Path)
	}
	return false
}

// refuse makes a write fail if the path contains one of the given parts; "$" in a part matches the end of the path. Without parts, all
// writes succeed.
func (g *apiGate) refuse(parts ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deny = func(r *http.Request) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(r.URL.Path+"$", part) })
	}
}

func (g *apiGate) since(n int) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.writes[n:])
}

func (g *apiGate) count() int { return len(g.since(0)) }

type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
