package simulate

import (
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

var (
	pushApps     = flag.String("push-apps", "100,10000", "the numbers of apps of BenchmarkPushes")
	pushProfiles = flag.String("push-profiles", "", "a folder for BenchmarkPushes' profiles of the heap and of the CPU")
)

const pushRounds = 8

// BenchmarkPushes measures fleets of healthy apps, in turn, with a real Git server and the simulator's clusters. All apps of a fleet read
// one base. The output has the times and CPU times of pushes to one app, of polls, and of a push to the base. CPU times include the Git
// server's handler, but no git processes. No measured time fails the benchmark.
func BenchmarkPushes(b *testing.B) {
	var fleets []*pushFleet
	for n := range strings.SplitSeq(*pushApps, ",") {
		apps, err := strconv.Atoi(n)
		must(b, err)
		fleets = append(fleets, newPushFleet(b, apps))
	}
	stop := profileCPU(b, "pushes")
	for i := range pushRounds {
		for _, f := range fleets {
			f.push(fmt.Sprintf("v%d", i+1), "idle/0/00/app-00000/app.yaml")
			f.polls.time(f.pass)
		}
	}
	stop()
	fmt.Printf("resident memory of the process, with its Git server and clusters: %d MB\n", resident())
	for _, f := range fleets {
		fmt.Printf("%6d apps: push to new object %s; poll %s; heap %.1f kB for each app\n", f.apps, f.pushes, f.polls,
			float64(f.heap)/1024/float64(f.apps))
	}
	stop = profileCPU(b, "base")
	for _, f := range fleets {
		f.pushes = nil
		f.push("v1", "base/base.yaml")
		fmt.Printf("%6d apps: push to the base of all until the first app has the new object %s; %d apps written\n", f.apps, f.pushes, f.written)
	}
	stop()
	b.ReportMetric(0, "ns/op")
}

// profileCPU writes a profile to pushProfiles.
func profileCPU(b *testing.B, name string) (stop func()) {
	b.Helper()
	if *pushProfiles == "" {
		return func() {}
	}
	file, err := os.Create(filepath.Join(*pushProfiles, name+".prof"))
	must(b, err)
	must(b, pprof.StartCPUProfile(file))
	return pprof.StopCPUProfile
}

type pushFleet struct {
	b       *testing.B
	apps    int
	repo    *gittest.Repo
	loop    *reconciler.Reconciler
	heap    int // bytes
	first   time.Time
	written int

	pushes, polls costs
}

func newPushFleet(b *testing.B, apps int) *pushFleet {
	b.Helper()
	f := &pushFleet{b: b, apps: apps, repo: gittest.New(b)}
	config := "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\nsharedChanges: {over: 20}\napps:\n"
	f.repo.Write(map[string]string{"base/kustomization.yaml": "resources: [base.yaml]\n", "base/base.yaml": pushMap("base", "v0")})
	var names []string
	for i := range apps {
		group := fmt.Sprintf("%d/%02d", i/1000, i%1000/100)
		if i%1000 == 0 {
			config += fmt.Sprintf("- path: idle/%d/*/*\n  namespace: ns%d\n", i/1000, i/1000)
		}
		name := fmt.Sprintf("app-%05d", i)
		names = append(names, strings.TrimPrefix(group, strconv.Itoa(i/1000)+"/")+"-"+name)
		folder := "idle/" + group + "/" + name
		f.repo.Write(map[string]string{folder + "/app.yaml": pushMap("app", "v0"),
			folder + "/kustomization.yaml": "namePrefix: " + name + "-\nresources: [app.yaml, ../../../../base]\n"})
	}
	f.repo.Write(map[string]string{rollout.ConfigPath("prod"): config})
	commit := f.repo.Commit("first versions")
	var stream strings.Builder
	stream.WriteString("commit refs/heads/gitrollout/state/prod\ncommitter a <a@b> 1000000000 +0000\ndata 5\nstate\n")
	for i, name := range names {
		s := rollout.State{App: name, Path: fmt.Sprintf("idle/%d/%02d/app-%05d", i/1000, i%1000/100, i), Serial: 1,
			Phase: rollout.Healthy, Source: commit}
		for _, of := range []string{"app", "base"} {
			s.Inventory = append(s.Inventory, rollout.Ref{Kind: "ConfigMap", Namespace: fmt.Sprintf("ns%d", i/1000),
				Name: fmt.Sprintf("app-%05d-%s", i, of)})
		}
		data, err := s.Encode()
		must(b, err)
		fmt.Fprintf(&stream, "M 644 inline %s\ndata %d\n%s\n", rollout.StatePath(name), len(data), data)
	}
	f.repo.FastImport(stream.String() + "\n")
	f.start()
	return f
}

func pushMap(name, version string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {version: %s}\n", name, version)
}

// start starts a reconciler, makes passes until nothing is written, and measures the heap.
func (f *pushFleet) start() {
	f.b.Helper()
	before := heapInUse()
	mirror, err := git.Open(f.b.Context(), git.Options{URL: f.repo.HTTP(gittest.HTTPOptions{}).URL, Branch: "main", Cluster: "prod"})
	must(f.b, err)
	server := adapters.Repository{Repo: mirror}
	cluster := NewCluster(rand.New(rand.NewPCG(1, 1)), time.Now())
	view := cluster.View("prod", func(Effect) Outcome { return Outcome{} })
	view.refresh()
	view.Stale = true // a current view would copy the cluster for each write
	cluster.wrote = func(by *View, o rollout.Object, digest string) {
		if f.written++; f.first.IsZero() {
			f.first = time.Now()
		}
		by.digests[o.Ref()] = digest
	}
	f.loop = reconciler.New(reconciler.Options{
		Cluster: "prod", UID: "prod", Source: rollout.Source{Repo: "deploy", Branch: "main"}, Writer: "bench", Repository: &server,
		Past: &server, Observer: view, Applier: view, Annotations: view, Jobs: view, Nodes: view.Nodes, Know: view.Know,
		Renderer: render.New(render.InProcess{}), Log: slog.New(slog.DiscardHandler),
	})
	for written := -1; written < f.written; {
		written = f.written
		f.pass()
	}
	f.heap = heapInUse() - before
	debug.FreeOSMemory() // frees the garbage of the first renders
	if *pushProfiles != "" {
		file, err := os.Create(filepath.Join(*pushProfiles, fmt.Sprintf("%d.heap", f.apps)))
		must(f.b, err)
		must(f.b, pprof.WriteHeapProfile(file))
	}
}

func heapInUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// resident returns the process's memory in MB, without file-backed pages.
func resident() (megabytes int) {
	data, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); fields[0] == "RssAnon:" {
			megabytes, _ = strconv.Atoi(fields[1])
		}
	}
	return megabytes / 1000
}

func (f *pushFleet) pass() {
	f.b.Helper()
	must(f.b, f.loop.RunOnce(f.b.Context(), time.Now, true))
}

// push commits a new version of a file, and measures the time until the first write. The CPU time includes the whole pass and the next
// pass, which reads the record.
func (f *pushFleet) push(version, file string) {
	f.b.Helper()
	f.repo.CommitFiles(file+" "+version, map[string]string{file: pushMap(strings.TrimSuffix(filepath.Base(file), ".yaml"), version)})
	f.first, f.written = time.Time{}, 0
	began := time.Now()
	f.pushes.time(func() { f.pass(); f.pass() })
	if f.written == 0 {
		f.b.Fatalf("%s %s is not written", file, version)
	}
	f.pushes[len(f.pushes)-1][0] = f.first.Sub(began)
}

// costs are pairs: a wall time and a CPU time.
type costs [][2]time.Duration

func (c *costs) time(do func()) {
	began, cpu := time.Now(), cpuTime()
	do()
	*c = append(*c, [2]time.Duration{time.Since(began), cpuTime() - cpu})
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// String returns the medians and extremes.
func (c costs) String() string {
	part := func(i int) string {
		of := rollout.Mapped(c, func(pair [2]time.Duration) time.Duration { return pair[i] })
		slices.Sort(of)
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
		return fmt.Sprintf("%.1f (%.1f–%.1f) ms", ms(of[len(of)/2]), ms(of[0]), ms(of[len(of)-1]))
	}
	return part(0) + ", CPU " + part(1)
}
