package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

const (
	idlePolls  = 20
	idleRest   = 30 * time.Second // until Go has returned most of the memory of the first builds
	idlePushes = 12
	perSpace   = 1000 // apps in one namespace
	servesEach = 10   // one in servesEach apps has a Deployment; with more, the control plane would be the bottleneck
)

// idleNamespaces creates the namespaces of idle apps, and returns their entries of the configuration.
func idleNamespaces(b testing.TB, kube *testcluster.Cluster, apps int) (entries string, namespaces []string) {
	b.Helper()
	for i := 0; i < apps; i += perSpace {
		namespaces = append(namespaces, kube.Namespace(b))
		entries += fmt.Sprintf("- path: idle/%d/*/*\n  namespace: %s\n", i/perSpace, namespaces[i/perSpace])
	}
	return entries, namespaces
}

// writeIdle writes the files of idle apps in folders of 100, and the files of the app that measurePushes changes. The returned function
// records the idle apps as Healthy at a commit, so that no idle app needs a first release.
func (f *fleet) writeIdle(namespaces []string, apps int) (records func(commit string)) {
	f.b.Helper()
	var all []rollout.State
	for i := range apps {
		group, name := fmt.Sprintf("%02d", i%perSpace/100), fmt.Sprintf("idle-%05d", i)
		s := f.writeIdleApp(fmt.Sprintf("idle/%d/%s/%s", i/perSpace, group, name), name, "v1", namespaces[i/perSpace], i%servesEach == 0)
		s.App = group + "-" + name // the names of the folders that the entry's stars match
		all = append(all, s)
	}
	if apps > 0 {
		f.writeIdleApp("apps/pushed", "pushed", "v0", f.ns, true)
	}
	return func(commit string) {
		if apps == 0 {
			return
		}
		var stream strings.Builder
		stream.WriteString("commit refs/heads/gitrollout/state/test\ncommitter a <a@b> 1000000000 +0000\ndata 5\nstate\n")
		for _, s := range all {
			s.Source = commit
			data, err := s.Encode()
			must(f.b, err)
			fmt.Fprintf(&stream, "M 644 inline %s\ndata %d\n%s\n", rollout.StatePath(s.App), len(data), data)
		}
		f.repo.FastImport(stream.String() + "\n")
	}
}

// writeIdleApp writes the files of an app with a ConfigMap, or, if serves is true, with a Service and a Deployment with 0 replicas. It
// returns the app's record, which has no commit.
func (f *fleet) writeIdleApp(folder, name, version, namespace string, serves bool) rollout.State {
	f.b.Helper()
	manifest := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {version: %s}\n", name, version)
	inventory := []rollout.Ref{{Kind: "ConfigMap", Namespace: namespace, Name: name}}
	if serves {
		manifest = benchDeployment(name, version, 0) + fmt.Sprintf("---\napiVersion: v1\nkind: Service\nmetadata: {name: %[1]s}\n"+
			"spec: {selector: {app: %[1]s}, ports: [{port: 80}]}\n", name)
		inventory = []rollout.Ref{{Group: "apps", Kind: "Deployment", Namespace: namespace, Name: name},
			{Kind: "Service", Namespace: namespace, Name: name}}
	}
	f.repo.Write(map[string]string{folder + "/kustomization.yaml": "resources:\n- app.yaml\n", folder + "/app.yaml": manifest})
	return rollout.State{App: name, Path: folder, Serial: 1, Phase: rollout.Healthy, Inventory: inventory}
}

// awaitRest waits until the program has rendered all apps, and has written nothing for five seconds.
func (f *fleet) awaitRest(began time.Time) {
	f.b.Helper()
	var last, active fleetCost // active has the costs up to the last change
	go f.profile("profile?seconds=30", "start")
	for quiet := time.Now(); time.Since(quiet) < idleRest; time.Sleep(200 * time.Millisecond) {
		if code, _ := getPage(f.b, "http://"+f.metrics+"/metrics"); code != http.StatusOK {
			quiet = time.Now()
			continue
		}
		now := f.costs()
		if now.builds < *idleApps+len(f.apps) || now.writes != last.writes || now.builds != last.builds || now.commits != last.commits {
			quiet, active = time.Now(), now
		}
		last = now
	}
	fmt.Printf("\nat rest %s after the start: %s of CPU, %d builds, %d writes, %d commits\n", seconds(time.Since(began)-idleRest),
		seconds(active.cpu), active.builds, active.writes, active.commits)
}

// printMemory prints the memory of the program without its render processes, and writes a heap profile to restartProfiles.
func (f *fleet) printMemory(process string) {
	f.b.Helper()
	resident := readText(f.b, fmt.Sprintf("/proc/%d/status", f.process.Process.Pid))
	_, heap := getPage(f.b, "http://"+f.pprof+"/debug/pprof/heap?gc=1&debug=1")
	find := func(text, pattern string) float64 {
		m := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if m == nil {
			f.b.Fatalf("no %s in %s", pattern, text)
		}
		n, err := strconv.ParseFloat(m[1], 64)
		must(f.b, err)
		return n
	}
	fmt.Printf("memory: %.0f MB, of which %.0f MB are the program's file, peak %.0f MB, live heap %.0f MB\n",
		find(resident, `VmRSS:\s+(\d+)`)/1000, find(resident, `RssFile:\s+(\d+)`)/1000,
		find(resident, `VmHWM:\s+(\d+)`)/1000, find(heap, `# HeapAlloc = (\d+)`)/1e6)
	f.profile("heap", process)
}

// profile writes a profile to restartProfiles.
func (f *fleet) profile(what, process string) {
	f.b.Helper()
	for ; *restartProfiles != ""; time.Sleep(100 * time.Millisecond) { // retries until the program serves and no other profile runs
		if code, profile := getPage(f.b, "http://"+f.pprof+"/debug/pprof/"+what); code == http.StatusOK {
			must(f.b, os.WriteFile(filepath.Join(*restartProfiles, process+"."+what[:4]), []byte(profile), 0o600))
			return
		}
	}
}

// measurePolls prints the costs of polls without changes.
func (f *fleet) measurePolls() {
	f.b.Helper()
	in, out := f.server.Bytes()
	asked, before := len(f.server.Requests()), f.costs()
	for len(f.server.Requests()) < asked+idlePolls {
		time.Sleep(10 * time.Millisecond)
	}
	cost, n := f.costs(), len(f.server.Requests())-asked
	sent, received := f.server.Bytes()
	fmt.Printf("idle poll: %d bytes sent, %d received, %.1f ms of CPU, %d API requests in %d polls\n", (sent-in)/int64(n),
		(received-out)/int64(n), float64((cost.cpu-before.cpu).Microseconds())/1000/float64(n),
		cost.reads-before.reads+cost.writes-before.writes, n)
}

// measurePushes prints the time from a push of one app to its new template in the cluster, and the CPU time of a push.
func (f *fleet) measurePushes() {
	f.b.Helper()
	var times []time.Duration
	before := f.costs()
	go f.profile("profile?seconds=30", "pushes")
	for i := range idlePushes {
		version := fmt.Sprintf("v%d", i+1)
		f.writeIdleApp("apps/pushed", "pushed", version, f.ns, true)
		f.repo.Git("add", "apps/pushed")
		f.repo.Git("commit", "-q", "-m", version)
		f.repo.Push()
		began := time.Now()
		done := f.patches.await([]string{"pushed"}, func(d *appsv1.Deployment) bool { return tagOf(d) == version })
		times = append(times, done.Sub(began))
		time.Sleep(2 * time.Second)
	}
	slices.Sort(times)
	cost := f.costs()
	fmt.Printf("push to new template: %d ms (%d–%d), %d ms of CPU, %.1f builds, %.1f API writes\n", times[len(times)/2].Milliseconds(),
		times[0].Milliseconds(), times[len(times)-1].Milliseconds(), (cost.cpu-before.cpu).Milliseconds()/idlePushes,
		float64(cost.builds-before.builds)/idlePushes, float64(cost.writes-before.writes)/idlePushes)
}
