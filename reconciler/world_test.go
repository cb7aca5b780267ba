package reconciler_test

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var stateBranch = rollout.StateBranch("prod")

// mirror is a mirror of the simulator's Git server. If "fails" is set, each push fails with this error. The function "refuse" is called
// with each update, and its error fails the push. The function "sees" can change the result of a fetch.
type mirror struct {
	*memgit.Clone
	refuse   func(rollout.Update) error
	sees     func(*rollout.Heads)
	fails    error
	author   string   // the author of the next commits
	messages []string // the messages of pushed commits on the state branch
}

func newMirror() *mirror { return mirrorIn(memgit.New(nil), "prod") }

func mirrorIn(server *memgit.Server, cluster string) *mirror {
	m := &mirror{author: "Ann"}
	m.Clone = server.Clone("test", "main", cluster, func(verb, _ string) (bool, error) {
		if verb == "push" {
			return false, m.fails
		}
		return false, nil
	})
	return m
}

func (m *mirror) Fetch(ctx context.Context) (rollout.Heads, error) {
	heads, err := m.Clone.Fetch(ctx)
	if m.sees != nil {
		m.sees(&heads)
	}
	return heads, err
}

func (m *mirror) Push(ctx context.Context, updates []rollout.Update) (map[string]string, error) {
	for _, u := range updates {
		if m.refuse == nil {
			break
		}
		if err := m.refuse(u); err != nil {
			return nil, err
		}
	}
	made, err := m.Clone.Push(ctx, updates)
	for _, u := range updates {
		if err == nil && strings.HasPrefix(u.Branch, rollout.StateBranch("")) {
			m.messages = append(m.messages, u.Message)
		}
	}
	return made, err
}

// commit pushes a user's commit to a branch. Content "" removes a file.
func (m *mirror) commit(branch, message string, files map[string]string) string {
	return m.Server.Commit(memgit.Change{Branch: branch, Author: m.author, Message: message, Edits: reconciler.Contents(files)})
}

// commitOf returns a commit with the given files.
func commitOf(files map[string]string) reconciler.Snapshot {
	git := memgit.New(nil)
	return git.Commits[git.Make("", memgit.Change{Edits: reconciler.Contents(files)})]
}

// main returns the head of the users' branch.
func (m *mirror) main() string { return m.Server.Head("main") }

// state returns the head of the state branch.
func (m *mirror) state() string { return m.Server.Head(stateBranch) }

// server is an in-memory cluster. It models the controllers of Kubernetes, and notes applied and pruned objects.
type server struct {
	*kube.Cluster
	refuses func(o rollout.Object) error // returns the error of an object's apply; if nil, all objects are accepted
	fights  error                        // returned by Apply after all objects were written
	check   error                        // the result of a dry run
	unseen  string                       // why watches are broken; "" while they work
	applied []string
	pruned  []rollout.Ref
	unprune error // if set, Prune returns it and deletes nothing
	hanging bool  // deletions do not complete, as with a finalizer
	foreign []rollout.Foreign
	unasked error // the error that OtherOwners returns
}

func (s *server) Apply(_ context.Context, _ string, objects []rollout.Object) error {
	for _, o := range objects {
		if s.refuses != nil {
			if err := s.refuses(o); err != nil {
				return err
			}
		}
		s.applied = append(s.applied, o.Kind()+"/"+o.Name())
		if err := s.Cluster.Apply(o); err != nil {
			return err
		}
	}
	return s.fights
}

func (s *server) Check(context.Context, string, []rollout.Object) error { return s.check }

func (s *server) Evict(_ context.Context, namespace string, pod rollout.Pod) error {
	s.Cluster.Evict(namespace, pod)
	return nil
}

func (s *server) Prune(_ context.Context, _ string, refs []rollout.Ref) ([]rollout.Ref, error) {
	if s.unprune != nil || s.hanging {
		return nil, s.unprune
	}
	s.pruned = append(s.pruned, refs...)
	return refs, nil
}

func (s *server) Observe(_ string, workloads []rollout.Workload, _ []rollout.Ref) rollout.Observed {
	seen := s.Cluster.Observe()
	seen.Unseen = s.unseen
	maps.DeleteFunc(seen.Workloads, func(w rollout.Workload, _ rollout.ObservedWorkload) bool { return !slices.Contains(workloads, w) })
	return seen
}

func (s *server) Serves(_ context.Context, service rollout.Ref, podHash string) (bool, error) {
	return s.Cluster.Serves(service, podHash), nil
}

func (s *server) SameTemplate(context.Context, rollout.Object) (bool, error) { return false, nil }

func (s *server) OtherOwners(context.Context, string, []rollout.Object, time.Time) ([]rollout.Foreign, error) {
	return s.foreign, s.unasked
}

// world is a test environment in memory: a Git server, a renderer, a cluster, and a reconciler of the app shop.
type world struct {
	*testing.T
	git     *mirror
	cluster *server
	r       *reconciler.Reconciler
	now     time.Time
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 4
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: app, image: "shop:VERSION"}]}
---
apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata: {name: shop}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: shop}
  strategy: {canary: {steps: [{setWeight: 50}, {pause: {}}]}}
`

const (
	configFile  = ".gitrollout/prod/config.yaml"
	plainConfig = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/*\n"
	pruneConfig = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- {path: apps/*, prune: true}\n"
	configMap   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\n"
)

// These edits delete the ConfigMap of the app shop, or the whole app.
var (
	withoutConfigMap = map[string]string{"apps/shop/kustomization.yaml": "resources: [app.yaml]\n", "apps/shop/config.yaml": ""}
	withoutShop      = map[string]string{"apps/shop/kustomization.yaml": "", "apps/shop/config.yaml": "", "apps/shop/app.yaml": ""}
)

// newWorld returns a world whose app shop is Healthy at v1. A release of the app stops at a gate when half of the pods have the new
// version.
func newWorld(t *testing.T, options func(*reconciler.Options)) *world {
	t.Helper()
	return worldOf(t, map[string]string{
		configFile:                     plainConfig,
		"apps/shop/kustomization.yaml": "resources: [app.yaml, config.yaml]\n",
		"apps/shop/config.yaml":        configMap,
		"apps/shop/app.yaml":           version("v1"),
	}, options)
}

// worldOf returns a world whose users' branch has the given files. The app shop is Healthy at the version in these files.
func worldOf(t *testing.T, files map[string]string, options func(*reconciler.Options)) *world {
	t.Helper()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	w := &world{
		T: t, now: now, git: newMirror(),
		cluster: &server{Cluster: kube.New(rand.New(rand.NewPCG(1, 1)), now)},
	}
	o := reconciler.Options{
		Cluster: "prod", UID: "uid", Repository: w.git, Past: w.git, Renderer: render.New(render.InProcess{}), Observer: w.cluster,
		Applier: w.cluster, Log: slog.New(slog.DiscardHandler), Writer: "test", Workers: 1,
	}
	if options != nil {
		options(&o)
	}
	w.r = reconciler.New(o)
	w.commit("v1", files)
	w.settle()
	if s := w.state(); s.Phase != rollout.Healthy {
		t.Fatalf("the first version is %s: %s", s.Phase, s.Reason)
	}
	return w
}

func version(v string) string { return strings.Replace(deployment, "VERSION", v, 1) }

// shopAt returns an edit that sets the version of the app shop.
func shopAt(v string) map[string]string { return map[string]string{"apps/shop/app.yaml": version(v)} }

// commit writes files to the users' branch. Content "" removes a file.
func (w *world) commit(message string, files map[string]string) string {
	return w.git.commit("main", message, files)
}

func (w *world) clock() time.Time { return w.now }

// once advances the clock by a second, calls RunOnce, and then runs the controllers of the cluster.
func (w *world) once() error {
	w.now = w.now.Add(time.Second)
	w.cluster.Now = w.now
	for _, app := range append(w.r.Apps(), "shop") { // as the cluster's watches do
		w.r.Touch(app)
	}
	err := w.r.RunOnce(w.Context(), w.clock, true)
	for range 1000 {
		if !w.cluster.Micro() {
			break
		}
	}
	return err
}

// pass runs one pass, which must succeed.
func (w *world) pass() {
	w.Helper()
	if err := w.once(); err != nil {
		w.Fatal(err)
	}
}

// passes runs n passes, which may fail.
func (w *world) passes(n int) {
	for range n {
		_ = w.once()
	}
}

// settle runs 20 passes, which suffice for most changes. Each pass must succeed.
func (w *world) settle() {
	w.Helper()
	for range 20 {
		w.pass()
	}
}

// follow commits files and calls settle.
func (w *world) follow(what string, files map[string]string) {
	w.Helper()
	w.commit(what, files)
	w.settle()
}

// restart replaces the reconciler by a new one, as a restart of the process does. The new reconciler reads the given history.
func (w *world) restart(past *pastOf) {
	o := w.r.Options
	o.Past = past
	w.r = reconciler.New(o)
}

// state returns the recorded state of the app shop.
func (w *world) state() rollout.State { return w.stateOf("shop") }

func (w *world) stateOf(app string) rollout.State { return w.r.StateOf(app) }

// recordsNothing fails the test if the given function makes a commit on the state branch.
func (w *world) recordsNothing(run func()) {
	w.Helper()
	before := len(w.git.messages)
	if run(); len(w.git.messages) > before {
		w.Errorf("recorded again: %q", w.git.messages[before:])
	}
}

// want fails the test unless the app shop has the given phase and the given number of pods with version v2.
func (w *world) want(phase rollout.Phase, pods int) {
	w.Helper()
	if s := w.state(); s.Phase != phase || w.pods("v2") != pods {
		w.Errorf("%s with %d pods of v2, want %s with %d; held %+v, reason %q", s.Phase, w.pods("v2"), phase, pods, s.Held, s.Reason)
	}
}

// wantBack fails the test unless all pods have version v1 and no release is on record.
func (w *world) wantBack() {
	w.Helper()
	if w.wantBackPods(); w.state().Release != nil {
		w.Errorf("release %+v is in flight: %s", w.state().Release, w.state().Phase)
	}
}

// wantBackPods fails the test unless all pods have version v1.
func (w *world) wantBackPods() {
	w.Helper()
	if w.pods("v1") != 4 || w.pods("v2") > 0 {
		w.Errorf("%s, held %+v, %d pods of v1, %d of v2", w.state().Phase, w.state().Held, w.pods("v1"), w.pods("v2"))
	}
}

// wantBegun fails the test unless a release of the app shop has pods with version v2 and the app is not held.
func (w *world) wantBegun() {
	w.Helper()
	if s := w.state(); s.Held != nil || s.Release == nil || w.pods("v2") == 0 {
		w.Errorf("%s, held %+v, release %+v, %d pods of v2", s.Phase, s.Held, s.Release, w.pods("v2"))
	}
}

// pods returns the number of replicas of a version in all ReplicaSets.
func (w *world) pods(version string) int {
	n := 0
	for _, d := range w.cluster.Deployments {
		for _, set := range d.Sets {
			if strings.Contains(set.Template, ":"+version+`"`) {
				n += set.Replicas
			}
		}
	}
	return n
}
