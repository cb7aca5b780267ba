package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

const (
	manyReleases = 50
	shortPause   = 5 * time.Second
	benchBound   = 5 * time.Minute // limit for one wait
)

// BenchmarkReleasesAtOnce releases one app, and then fifty apps together. Each app has five pods, which become ready immediately. The
// weights are 20, 50 and 80, with pauses of five seconds. To measure the cluster alone, a script without gitrollout sends the same patches
// to as many Deployments. The benchmark fails only if one wait exceeds benchBound. docs/performance.md explains the printed table.
func BenchmarkReleasesAtOnce(b *testing.B) {
	b.Run("default-limits", func(b *testing.B) { benchReleases(b, "--default-limits") })
	b.Run("raised-limits", func(b *testing.B) { benchReleases(b) })
}

func benchReleases(b *testing.B, flags ...string) {
	audit := filepath.Join(b.TempDir(), "audit.log")
	kube, stop, err := testcluster.Launch(append(flags, "--audit-log", audit)...)
	must(b, err)
	b.Cleanup(stop)
	f := newFleet(b, kube, manyReleases, "")
	f.audit = audit
	var table strings.Builder
	columns := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(columns,
		"releases at once\tall pods new\trecorded as healthy\tstate commits\tAPI writes\tdeployment controller's writes\tdry runs\tEvents\tCPU")
	row := func(what string, c fleetCost) {
		_, _ = fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", what,
			seconds(c.pods), seconds(c.recorded), count(c.commits), count(c.writes), count(c.controller),
			count(c.dryRuns), count(c.events), seconds(c.cpu))
	}
	recorded := f.patches.follow(f.apps[0])
	one := f.release("v2", f.apps[:1])
	patches := recorded()
	many := f.release("v3", f.apps)
	f.stop()

	script := newScripted(b, kube, manyReleases, patches, f.apps[0])
	alone := func(version string, n int) fleetCost {
		before := controllerWrites(b, audit)
		took := script.release(version, n)
		return fleetCost{pods: took, writes: len(patches) * n, controller: controllerWrites(b, audit) - before}
	}
	aloneOne, aloneMany := alone("v2", 1), alone("v3", manyReleases)

	row("1", one)
	row(strconv.Itoa(manyReleases), many)
	row("1, the cluster alone", aloneOne)
	row(fmt.Sprintf("%d, the cluster alone", manyReleases), aloneMany)
	_ = columns.Flush()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(one.recorded.Seconds(), "s/one")
	b.ReportMetric(many.recorded.Seconds(), "s/many")
	fmt.Printf("\n\n%s\n%d at once beside one: %.2f; beside what the cluster alone needs for them: %.2f; one beyond its pauses: %.1f s\n\n",
		table.String(),
		manyReleases, ratio(many.recorded, one.recorded), ratio(many.pods, aloneMany.pods), (one.recorded - 3*shortPause).Seconds())
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func seconds(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func count(n int) string {
	if n == 0 {
		return "–"
	}
	return strconv.Itoa(n)
}

// fleetCost has the durations of a fleet's releases, and the numbers of requests.
type fleetCost struct {
	pods, recorded  time.Duration // time from the end of the push until all pods are new, and until Git records the release
	commits         int
	writes, dryRuns int // numbers of object writes and of dry runs
	events          int
	controller      int           // writes of the deployment controller
	cpu             time.Duration // CPU time of gitrollout's process
	reads, builds   int
}

// fleet is a repository of apps, and the gitrollout process that releases them.
type fleet struct {
	b       testing.TB
	kube    *testcluster.Cluster
	repo    *gittest.Repo
	server  *gittest.Server
	process *exec.Cmd
	metrics string
	pprof   string // address of profiles, "" without profiles
	log     lockedBuffer
	apps    []string
	ns      string
	patches *deployments
	audit   string // the API server's audit log, "" without a log
}

// emptyFleet returns a fleet without apps, and does not start the program. It appends the entries, with NS replaced by the fleet's
// namespace, to the configuration.
func emptyFleet(b testing.TB, kube *testcluster.Cluster, entries string) *fleet {
	b.Helper()
	f := &fleet{b: b, kube: kube, repo: gittest.New(b), ns: kube.Namespace(b), metrics: freeAddress(b)}
	f.patches, f.server = watchDeployments(b, kube, f.ns), f.repo.HTTP(gittest.HTTPOptions{})
	f.repo.Write(map[string]string{configFile: configOf("*", f.ns, strings.ReplaceAll(entries, "NS", f.ns))})
	return f
}

// newFleet starts a fleet with n apps. It treats the entries as emptyFleet does, and adds the flags to the program's flags.
func newFleet(b testing.TB, kube *testcluster.Cluster, n int, entries string, flags ...string) *fleet {
	b.Helper()
	f := emptyFleet(b, kube, entries)
	for i := range n {
		f.apps = append(f.apps, fmt.Sprintf("shop-%02d", i))
	}
	f.write("v1", f.apps)
	began, head := time.Now(), f.repo.Commit("first versions")
	f.start(flags...)
	f.await(began, head, "v1", f.apps)
	return f
}

// start runs the program until the test ends or stop is called.
func (f *fleet) start(flags ...string) {
	f.b.Helper()
	path, err := binary()
	must(f.b, err)
	f.process = exec.Command(path, append([]string{
		"run", "--repo", f.server.URL, "--cluster", "test", "--kubeconfig", f.kube.Kubeconfig, "--interval", "200ms",
		"--metrics-address", f.metrics, "--pprof-address", f.pprof,
	}, flags...)...)
	f.process.Env = append(gittest.Env(), "HOME="+f.b.TempDir())
	f.process.Stdout, f.process.Stderr = &f.log, &f.log
	must(f.b, f.process.Start())
	f.b.Cleanup(f.stop)
}

func (f *fleet) stop() {
	if f.process.ProcessState == nil {
		_ = f.process.Process.Signal(syscall.SIGTERM)
		_ = f.process.Wait()
	}
	if f.b.Failed() {
		f.b.Log(f.log.String())
	}
}

func (f *fleet) write(version string, apps []string) {
	for _, app := range apps {
		f.writeApp(app, benchDeployment(app, version, 5), fmt.Sprintf(`{steps: [{setWeight: 20}, {pause: {duration: %[1]s}},
    {setWeight: 50}, {pause: {duration: %[1]s}}, {setWeight: 80}, {pause: {duration: %[1]s}}]}`, shortPause))
	}
}

// writeApp writes the files of an app with a canary strategy.
func (f *fleet) writeApp(app, deployment, canary string) {
	f.repo.Write(map[string]string{
		"apps/" + app + "/kustomization.yaml": "resources:\n- app.yaml\n- rollout.yaml\n",
		"apps/" + app + "/app.yaml":           deployment,
		"apps/" + app + "/rollout.yaml": fmt.Sprintf(`apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata: {name: %[1]s}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: %[1]s}
  strategy: {canary: %[2]s}
`, app, canary),
	})
}

func benchDeployment(name, version string, replicas int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: shop, image: "shop:%[2]s"}]}
`, name, version, replicas)
}

// release pushes a version of the given apps, waits until all apps have released this version, and returns the cost.
func (f *fleet) release(version string, apps []string) fleetCost {
	f.b.Helper()
	time.Sleep(2 * time.Second) // the controllers finish earlier work
	before := f.costs()
	f.write(version, apps)
	head := f.repo.Commit(version)
	began := time.Now()
	c := f.await(began, head, version, apps)
	after := f.costs()
	c.commits, c.dryRuns, c.cpu = after.commits-before.commits, after.dryRuns-before.dryRuns, after.cpu-before.cpu
	c.events, c.controller = after.events-before.events, after.controller-before.controller
	c.writes = after.writes - before.writes - c.events
	return c
}

// await waits until the apps have only pods of a version and Git records the release. It measures both durations from the given start.
func (f *fleet) await(began time.Time, head, version string, apps []string) (c fleetCost) {
	f.b.Helper()
	done := f.patches.awaitNew(apps, version)
	c.pods = done.Sub(began)
	var s rollout.State
	eventually(f.b, "recorded as healthy", func() bool {
		return !slices.ContainsFunc(apps, func(app string) bool {
			s = f.state(app)
			return s.Phase != rollout.Healthy || s.Stable == nil || s.Stable.Commit != head
		})
	}, func() any { return shown(s) })
	c.recorded = time.Since(began)
	return c
}

func (f *fleet) state(app string) rollout.State {
	f.b.Helper()
	return stateOf(f.b, f.repo, "gitrollout/state/test", app)
}

// costs returns the counters of the program's metrics, and counts gitrollout's Events and the Deployment controller's writes.
func (f *fleet) costs() (c fleetCost) {
	f.b.Helper()
	code, page := getPage(f.b, "http://"+f.metrics+"/metrics")
	if code != 200 {
		f.b.Fatalf("metrics: status %d: %s", code, page)
	}
	number := func(series string) float64 {
		m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(page)
		if m == nil {
			f.b.Fatalf("metrics have no %s", series)
		}
		n, err := strconv.ParseFloat(m[1], 64)
		must(f.b, err)
		return n
	}
	c.commits = int(number("gitrollout_state_commits_total"))
	c.writes = int(number(`gitrollout_kubernetes_requests_total{verb="write"}`))
	c.dryRuns = int(number(`gitrollout_kubernetes_requests_total{verb="dry_run"}`))
	c.reads = int(number(`gitrollout_kubernetes_requests_total{verb="read"}`))
	c.builds = int(number("gitrollout_builds_total"))
	events, err := f.kube.Kube.EventsV1().Events(f.ns).List(context.Background(), metav1.ListOptions{})
	must(f.b, err)
	for _, e := range events.Items {
		if strings.HasPrefix(e.ReportingController, "gitrollout") {
			c.events++
		}
	}
	c.cpu = time.Duration(number("process_cpu_seconds_total") * float64(time.Second))
	if f.audit != "" {
		c.controller = controllerWrites(f.b, f.audit)
	}
	return c
}

// controllerWrites counts the writes of the Deployment controller in an audit log.
func controllerWrites(tb testing.TB, audit string) int {
	tb.Helper()
	return len(deploymentControllerWrites.FindAllString(readText(tb, audit), -1))
}

// deploymentControllerWrites matches the audit log's lines for writes whose user agent is the Deployment controller.
var deploymentControllerWrites = regexp.MustCompile(`"stage":"ResponseComplete","requestURI":"/apis/apps/[^"]*",` +
	`"verb":"(?:create|update|patch|delete)".*"userAgent":"[^"]*deployment-controller`)

// deployments watches the Deployments of a namespace.
type deployments struct {
	b       testing.TB
	mu      sync.Mutex
	now     map[string]*appsv1.Deployment
	history map[string][]seen   // for each Deployment that follow() records, its states in order
	turns   map[string][]string // the versions of each Deployment, in order
	last    time.Time           // time of the last change
}

// settle waits until no Deployment has changed for three seconds.
func (w *deployments) settle() {
	eventually(w.b, "no change of a Deployment for three seconds", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return time.Since(w.last) > 3*time.Second
	}, func() any { return w.last })
}

// seen is the state of a Deployment at a time.
type seen struct {
	at time.Time
	d  *appsv1.Deployment
}

func watchDeployments(b testing.TB, kube *testcluster.Cluster, ns string) *deployments {
	b.Helper()
	events, err := kube.Kube.AppsV1().Deployments(ns).Watch(context.Background(), metav1.ListOptions{})
	must(b, err)
	b.Cleanup(events.Stop)
	w := &deployments{b: b, now: map[string]*appsv1.Deployment{}, history: map[string][]seen{}, turns: map[string][]string{}}
	go func() {
		for e := range events.ResultChan() {
			if d, ok := e.Object.(*appsv1.Deployment); ok {
				w.note(d)
			}
		}
	}()
	return w
}

func (w *deployments) note(d *appsv1.Deployment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now[d.Name], w.last = d, time.Now()
	if v, all := tagOf(d), w.turns[d.Name]; len(all) == 0 || all[len(all)-1] != v {
		w.turns[d.Name] = append(all, v)
	}
	if _, followed := w.history[d.Name]; followed {
		w.history[d.Name] = append(w.history[d.Name], seen{time.Now(), d})
	}
}

func tagOf(d *appsv1.Deployment) string {
	_, tag, _ := strings.Cut(d.Spec.Template.Spec.Containers[0].Image, ":")
	return tag
}

// versions returns the versions that a Deployment has had so far, in order.
func (w *deployments) versions(name string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.turns[name])
}

func (w *deployments) get(name string) *appsv1.Deployment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now[name]
}

// await waits until all Deployments satisfy a condition, and returns the time.
func (w *deployments) await(names []string, wanted func(*appsv1.Deployment) bool) time.Time {
	left := map[string]bool{}
	for _, name := range names {
		left[name] = true
	}
	for deadline := time.Now().Add(benchBound); ; time.Sleep(10 * time.Millisecond) {
		maps.DeleteFunc(left, func(name string, _ bool) bool {
			d := w.get(name)
			return d != nil && wanted(d)
		})
		if len(left) == 0 {
			return time.Now()
		}
		if time.Now().After(deadline) {
			w.b.Errorf("not within %s: %v", benchBound, slices.Sorted(maps.Keys(left)))
			return time.Now()
		}
	}
}

// awaitNew waits until the Deployments have only ready pods of one version, and minReadySeconds is 0 again, as in Git.
func (w *deployments) awaitNew(names []string, version string) time.Time {
	return w.await(names, func(d *appsv1.Deployment) bool {
		return tagOf(d) == version && d.Spec.MinReadySeconds == 0 &&
			d.Status.ObservedGeneration == d.Generation && numbers(d) == [3]int32{5, 5, 5}
	})
}

// numbers returns how many pods of a Deployment exist, are updated, and are ready.
func numbers(d *appsv1.Deployment) [3]int32 {
	return [3]int32{d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas}
}

// patch is one change of a Deployment during a release, and its effect.
type patch struct {
	spec   string   // JSON of the changed fields
	pods   [3]int32 // result of numbers() after the change
	paused bool     // whether a pause followed the change
}

// follow starts to record the changes of one Deployment. The returned function stops the recording and returns the changes.
func (w *deployments) follow(name string) func() []patch {
	w.mu.Lock()
	w.history[name] = []seen{{time.Now(), w.now[name]}}
	w.mu.Unlock()
	return func() []patch {
		w.mu.Lock()
		defer w.mu.Unlock()
		var all []patch
		history := w.history[name]
		delete(w.history, name)
		settled := history[0].at
		for i, s := range history[1:] {
			before := history[i]
			if s.d.Generation == before.d.Generation {
				if numbers(s.d) != numbers(before.d) {
					settled = s.at
				}
				continue
			}
			if len(all) > 0 {
				all[len(all)-1].pods, all[len(all)-1].paused = numbers(before.d), s.at.Sub(settled) > shortPause*9/10
			}
			all = append(all, patch{spec: w.patchOf(s.d)})
		}
		if len(all) == 0 {
			w.b.Fatal("the release changed nothing")
		}
		all[len(all)-1].pods = numbers(history[len(history)-1].d)
		return all
	}
}

func (w *deployments) patchOf(d *appsv1.Deployment) string {
	data, err := json.Marshal(map[string]any{"spec": map[string]any{
		"minReadySeconds": d.Spec.MinReadySeconds, "progressDeadlineSeconds": d.Spec.ProgressDeadlineSeconds,
		"strategy": d.Spec.Strategy, "template": d.Spec.Template,
	}})
	must(w.b, err)
	return string(data)
}

// scripted is a set of Deployments that a script patches without gitrollout.
type scripted struct {
	*deployments
	kube     *testcluster.Cluster
	ns       string
	patches  []patch
	recorded string // name of the Deployment from which the patches were recorded
	names    []string
}

func newScripted(b *testing.B, kube *testcluster.Cluster, n int, patches []patch, recorded string) *scripted {
	b.Helper()
	ns := kube.Namespace(b)
	s := &scripted{deployments: watchDeployments(b, kube, ns), kube: kube, ns: ns, patches: patches, recorded: recorded}
	for i := range n {
		name := fmt.Sprintf("script-%02d", i)
		s.names = append(s.names, name)
		s.apply(name, types.ApplyPatchType, benchDeployment(name, "v1", 5))
	}
	s.awaitNew(s.names, "v1")
	return s
}

func (s *scripted) apply(name string, how types.PatchType, patch string) {
	options := metav1.PatchOptions{FieldManager: "script"}
	if _, err := s.kube.Kube.AppsV1().Deployments(s.ns).Patch(context.Background(), name, how, []byte(patch), options); err != nil {
		s.b.Errorf("patch %s: %v", name, err)
	}
}

// release sends the recorded patches to the first n Deployments. After each patch, it waits until the Deployment has the recorded numbers
// of pods. If a pause followed in the recorded release, it then waits for shortPause.
func (s *scripted) release(version string, n int) time.Duration {
	time.Sleep(2 * time.Second)
	began := time.Now()
	var all sync.WaitGroup
	for _, name := range s.names[:n] {
		all.Go(func() {
			for _, p := range s.patches {
				spec := strings.NewReplacer(s.recorded, name, "shop:v2", "shop:"+version).Replace(p.spec)
				if generation := s.get(name).Generation; !strings.Contains(spec, "shop:"+version) {
					s.b.Errorf("patch %s of generation %d has no version %s: %s", name, generation, version, spec)
				}
				s.apply(name, types.StrategicMergePatchType, spec)
				s.await([]string{name}, func(d *appsv1.Deployment) bool {
					return tagOf(d) == version &&
						d.Status.ObservedGeneration == d.Generation && numbers(d) == p.pods
				})
				if p.paused {
					time.Sleep(shortPause)
				}
			}
		})
	}
	all.Wait()
	return s.awaitNew(s.names[:n], version).Sub(began)
}
