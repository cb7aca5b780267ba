package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

const (
	polls  = 20 // polls by gitrollout, and as many by the pipeline
	pushes = 12
)

// BenchmarkAgainstPlainPipeline measures gitrollout and a plain pipeline in turn, on one API server and one Git server. It prints a table.
// The plain pipeline runs:
//
//	git pull && kubectl kustomize DIR | kubectl apply --server-side -f -
//
// No measured time makes the benchmark fail. docs/performance.md explains the table.
func BenchmarkAgainstPlainPipeline(b *testing.B) {
	kube := testcluster.Shared(b)
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("apps=%d", n), func(b *testing.B) {
			w := newBenchWorld(b, kube, n)
			var table strings.Builder
			columns := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
			_, _ = fmt.Fprintf(columns, "%d apps\tgitrollout\tCPU\tGit\tAPI\tplain pipeline\tCPU\tGit\tAPI\tratio\n", n)
			row := func(what string, ours, plain series) {
				_, _ = fmt.Fprintf(columns, "%s\t%s\t%s\t1 : %.1f\n", what, ours, plain, float64(plain.wall())/float64(ours.wall()))
			}
			ours, plain := w.idle()
			row("idle poll", ours, plain)
			ours, plain, floor := w.change()
			row("push to new template", ours, plain)
			_ = columns.Flush()
			b.ReportMetric(0, "ns/op")
			fmt.Printf("\n\n%s\n", table.String())
			low, mid, high := floor.spread()
			fmt.Printf("push to new template beside its floor of %s (%s–%s) ms: %.2f\n", ms(mid), ms(low), ms(high),
				float64(ours.wall())/float64(mid))
			fmt.Printf("first release of all %d: %s\na new process after that, with nothing to do: %s\n\n", n, w.first, w.restart())
		})
	}
}

// idle measures polls of Git without new commits, by gitrollout (ours) and by the pipeline (plain).
func (w *benchWorld) idle() (ours, plain series) {
	for range polls {
		ours = append(ours, w.measure(func() { w.loop.pass(w.b) }))
		plain = append(plain, w.shell("git fetch -q"))
	}
	return ours, plain
}

// change measures the time from a push that changes one app until the API server has the new template. floor is the least time that a
// program needs if it records a release before applying it.
func (w *benchWorld) change() (ours, plain, floor series) {
	apply := fmt.Sprintf("git pull -q --ff-only && $KUBECTL kustomize %s | $KUBECTL apply --server-side -f - >/dev/null", w.plain.folder)
	requests := w.kubectlRequests(apply)
	for range pushes {
		image, at := w.push(w.app)
		s := w.measure(func() { w.loop.pass(w.b) })
		s.wall = w.arrival(image).Sub(at)
		ours = append(ours, s)
		w.shell("git pull -q --ff-only")

		image, at = w.push(w.plain)
		s = w.shell(apply)
		s.wall, s.api = w.arrival(image).Sub(at), requests
		plain = append(plain, s)
		w.loop.pass(w.b)

		floor = append(floor, w.floor())
		w.loop.pass(w.b)
	}
	return ours, plain, floor
}

// floor measures the least cost of a program that records a push before applying the Deployment. The program fetches into its own mirror,
// dry-runs a Deployment, pushes to its own branch, and applies the Deployment.
func (w *benchWorld) floor() sample {
	w.b.Helper()
	ctx := w.b.Context()
	w.version++
	tag := fmt.Sprintf("v%d", w.version)
	w.repo.CommitFiles("floor "+tag, map[string]string{"floor/version": tag})
	object := fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "floor"}, "spec": {"replicas": 0,
		"selector": {"matchLabels": {"app": "floor"}}, "template": {"metadata": {"labels": {"app": "floor"}},
		"spec": {"containers": [{"name": "app", "image": "floor:%s"}]}}}}`, tag)
	send := func(dryRun ...string) {
		options := metav1.PatchOptions{FieldManager: "floor", DryRun: dryRun}
		_, err := w.kube.Kube.AppsV1().Deployments(w.plain.ns).Patch(ctx, "floor", types.ApplyPatchType, []byte(object), options)
		must(w.b, err)
	}
	began := time.Now()
	must(w.b, errorOf(w.mirror.Fetch(ctx)))
	send(metav1.DryRunAll)
	const branch = "gitrollout/state/floor"
	ids, err := w.mirror.Push(ctx, []rollout.Update{{Branch: branch, Old: w.recorded, Parent: w.recorded, When: began,
		Message: tag, Edits: map[string][]byte{rollout.StatePath("floor"): []byte(tag + "\n")}}})
	must(w.b, err)
	w.recorded = ids[branch]
	send()
	return sample{wall: time.Since(began)}
}

// restart measures the start and the first pass of a new process while no app has a release in flight.
func (w *benchWorld) restart() sample {
	w.loop.close()
	s := w.measure(func() {
		w.loop = startLoop(w.b, w.server, w.kube)
		w.loop.pass(w.b)
	})
	cost := w.loop.costs()
	s.api, s.builds = cost.writes+cost.dryRuns+cost.reads, cost.builds
	return s
}

// sample is the cost of one action.
type sample struct {
	wall, cpu time.Duration
	git, api  int // requests
	builds    int
}

func (s sample) String() string {
	return fmt.Sprintf("%.2f s, %.2f s CPU, %d requests to Git, %d to the API, %d builds",
		s.wall.Seconds(), s.cpu.Seconds(), s.git, s.api, s.builds)
}

// series has one sample for each repetition of an action.
type series []sample

func (s series) wall() time.Duration { _, m, _ := s.spread(); return m }

func (s series) spread() (low, median, high time.Duration) {
	walls := make([]time.Duration, len(s))
	for i := range s {
		walls[i] = s[i].wall
	}
	slices.Sort(walls)
	return walls[0], walls[len(walls)/2], walls[len(walls)-1]
}

// String returns four columns of the table: the time, the CPU time, and the requests to Git and to the API server.
func (s series) String() string {
	low, mid, high := s.spread()
	middle := func(of func(sample) int) int {
		values := make([]int, len(s))
		for i := range s {
			values[i] = of(s[i])
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	cpu := time.Duration(middle(func(s sample) int { return int(s.cpu) }))
	return fmt.Sprintf("%s (%s–%s) ms\t%s\t%d\t%d", ms(mid), ms(low), ms(high), ms(cpu)+" ms",
		middle(func(s sample) int { return s.git }), middle(func(s sample) int { return s.api }))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

// benchWorld has a repository with n apps for gitrollout and one app for the pipeline. Pushes change only the pipeline's app (plain) and
// one of the others (app).
type benchWorld struct {
	b          *testing.B
	kube       *testcluster.Cluster
	repo       *gittest.Repo
	server     *gittest.Server
	loop       *testLoop
	app, plain benchApp
	clone      string // the pipeline's working copy
	env        []string
	version    int
	first      sample // the cost of the first release of all apps
	arrivals   chan arrival
	mirror     *git.Repo // the mirror of w.floor
	recorded   string    // the last commit that w.floor pushed
}

type benchApp struct {
	folder, name, ns string
}

// arrival is the image of a new pod template, and the time at which the watch received the template.
type arrival struct {
	image string
	at    time.Time
}

func newBenchWorld(b *testing.B, kube *testcluster.Cluster, n int) *benchWorld {
	b.Helper()
	w := &benchWorld{b: b, kube: kube, repo: gittest.New(b), arrivals: make(chan arrival, 10_000)}
	config := "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n"
	for i := range n {
		app := benchApp{folder: fmt.Sprintf("apps/%02d/app-%04d", i/100, i), name: fmt.Sprintf("app-%04d", i)}
		if i%100 == 0 {
			w.app.ns = kube.Namespace(b)
			config += fmt.Sprintf("- path: %s/*\n  namespace: %s\n", filepath.Dir(app.folder), w.app.ns)
		}
		if i == n-1 {
			app.ns = w.app.ns
			w.app = app
		}
		w.repo.Write(app.files("v0"))
	}
	w.plain = benchApp{folder: "pipeline", name: "shop", ns: kube.Namespace(b)}
	files := w.plain.files("v0")
	files[configFile] = config
	w.repo.CommitFiles("first versions", files)
	w.server = w.repo.HTTP(gittest.HTTPOptions{})
	var err error
	w.mirror, err = git.Open(b.Context(), git.Options{URL: w.server.URL, Branch: "main", Cluster: "floor"})
	must(b, err)

	w.watch(w.app)
	w.watch(w.plain)
	w.clone = filepath.Join(b.TempDir(), "clone")
	kubectl, err := filepath.Abs("../../bin/kubectl")
	must(b, err)
	w.env = append(gittest.Env(), "HOME="+b.TempDir(), "KUBECONFIG="+kube.Kubeconfig, "KUBECTL="+kubectl)
	w.shellIn(b.TempDir(), "git clone -q "+w.server.URL+" "+w.clone)
	w.shell(fmt.Sprintf("$KUBECTL kustomize %s | $KUBECTL apply --server-side -f - >/dev/null", w.plain.folder))

	w.loop = startLoop(b, w.server, kube)
	w.first = w.measure(func() { w.loop.pass(b) })
	w.loop.atRest(b)
	return w
}

func (a benchApp) files(version string) map[string]string {
	kustomization := "resources: [app.yaml]\nconfigMapGenerator:\n- name: " + a.name + "\n  literals: [colour=blue]\n" +
		"images:\n- name: app\n  newName: " + a.name + "\n  newTag: " + version + "\n"
	if a.ns != "" {
		kustomization += "namespace: " + a.ns + "\n"
	}
	return map[string]string{
		a.folder + "/kustomization.yaml": kustomization,
		a.folder + "/app.yaml": fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
      - {name: app, image: app, envFrom: [{configMapRef: {name: %[1]s}}], ports: [{containerPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {selector: {app: %[1]s}, ports: [{port: 80, targetPort: 8080}]}
`, a.name),
	}
}

// watch sends an arrival each time the image of the app's Deployment changes.
func (w *benchWorld) watch(app benchApp) {
	named := metav1.ListOptions{FieldSelector: "metadata.name=" + app.name}
	events, err := w.kube.Kube.AppsV1().Deployments(app.ns).Watch(w.b.Context(), named)
	must(w.b, err)
	go func() {
		last := ""
		for e := range events.ResultChan() {
			if d, ok := e.Object.(*appsv1.Deployment); ok && d.Spec.Template.Spec.Containers[0].Image != last {
				last = d.Spec.Template.Spec.Containers[0].Image
				w.arrivals <- arrival{image: last, at: time.Now()}
			}
		}
	}()
}

// arrival waits until the watch has received a template with the given image, and returns the time of its arrival.
func (w *benchWorld) arrival(image string) time.Time {
	w.b.Helper()
	for late := time.After(time.Minute); ; {
		select {
		case a := <-w.arrivals:
			if a.image == image {
				return a.at
			}
		case <-late:
			w.b.Fatalf("no template with %s within a minute", image)
		}
	}
}

// push pushes a change of the given app. It returns the new image, and the time at which the push ended.
func (w *benchWorld) push(app benchApp) (image string, at time.Time) {
	w.version++
	tag := fmt.Sprintf("v%d", w.version)
	w.repo.CommitFiles(app.name+" "+tag, app.files(tag))
	return app.name + ":" + tag, time.Now()
}

// measure runs an action of gitrollout in this process, and returns the action's cost.
func (w *benchWorld) measure(do func()) sample {
	git, before, cpu, start := len(w.server.Requests()), w.loop.costs(), ownCPU(), time.Now()
	do()
	wall, cost := time.Since(start), w.loop.costs().minus(before)
	return sample{
		wall: wall, cpu: ownCPU() - cpu, builds: cost.builds,
		git: len(w.server.Requests()) - git, api: cost.writes + cost.dryRuns + cost.reads,
	}
}

// ownCPU returns the CPU time of this process, which includes the test's Git server. git commands are other processes and are not included.
func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// shell runs a shell script in the working copy of the pipeline, and returns its cost.
func (w *benchWorld) shell(script string) sample { return w.shellIn(w.clone, script) }

func (w *benchWorld) shellIn(dir, script string) sample {
	w.b.Helper()
	git, start := len(w.server.Requests()), time.Now()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir, cmd.Env = dir, w.env
	if out, err := cmd.CombinedOutput(); err != nil {
		w.b.Fatalf("%s: %v\n%s", script, err, out)
	}
	return sample{
		wall: time.Since(start), git: len(w.server.Requests()) - git,
		cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
	}
}

// kubectlRequests pushes a version, deploys it with a script, and counts the requests of kubectl to the API server. kubectl logs its
// requests at level 6.
func (w *benchWorld) kubectlRequests(script string) int {
	w.push(w.plain)
	log := filepath.Join(w.b.TempDir(), "requests")
	w.shell(fmt.Sprintf("{ %s; } 2>%s", strings.ReplaceAll(script, "$KUBECTL", "$KUBECTL -v=6"), log))
	w.loop.pass(w.b)
	data, err := os.ReadFile(log)
	must(w.b, err)
	return strings.Count(string(data), "https://")
}
