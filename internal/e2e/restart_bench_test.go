package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

var (
	restartApps     = flag.Int("restart-apps", 300, "how many apps BenchmarkRestart restarts over, each of a separate commit")
	idleApps        = flag.Int("idle-apps", 0, "how many healthy apps without replicas BenchmarkRestart adds")
	restartProfiles = flag.String("restart-profiles", "", "a folder for BenchmarkRestart's profiles of heap and CPU")
)

// BenchmarkRestart releases each app in a separate commit, and stops gitrollout when all apps are paused. Then a commit reverts one
// release, and a new process rolls the app back. Each Git request takes at least 100 ms. The output has the number of Git requests, and the
// rollback's times since the process's start and since its first poll. The rollback should not wait for the rendering of all other apps.
// With -idle-apps, the output also has the memory, and the costs of polls and pushes. A slow rollback does not fail the benchmark.
func BenchmarkRestart(b *testing.B) {
	f := newGatedFleet(b, testcluster.Shared(b), *restartApps, *idleApps)
	began := time.Now()
	f.start()
	if *idleApps > 0 {
		f.awaitRest(began)
		f.printMemory("first")
	}
	f.awaitTag("v1", f.apps...)
	if *idleApps > 0 {
		f.measurePolls()
		f.measurePushes()
	}
	for _, app := range f.apps {
		f.writeGated("v2", app)
		f.repo.Git("add", "apps/"+app)
		f.repo.Git("commit", "-q", "-m", app)
	}
	f.repo.Push()
	f.awaitTag("v2", f.apps...)
	for len(f.sources()) < len(f.apps) {
		time.Sleep(time.Second)
	}
	f.stop()
	f.patches.settle() // waits for the Deployment controller

	f.server.Fault(gittest.Faults{Delay: 100 * time.Millisecond})
	back := f.apps[len(f.apps)/2]
	f.writeGated("v1", back)
	f.repo.Commit("revert " + back)
	asked := len(f.server.Requests())
	began = time.Now()
	f.start()
	for len(f.server.Requests()) == asked {
		time.Sleep(time.Millisecond)
	}
	first := time.Since(began)
	hasLooked := func() bool { // gitrollout has read the cluster and Git
		code, _ := getPage(b, "http://"+f.metrics+"/readyz")
		return code == http.StatusOK
	}
	for !hasLooked() {
		time.Sleep(5 * time.Millisecond)
	}
	ready := time.Since(began)
	for f.tag(back) != "v1" {
		time.Sleep(10 * time.Millisecond)
	}
	taken, cpu := time.Since(began), f.costs().cpu
	requests := len(f.server.Requests()) - asked
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(taken.Seconds(), "s/retreat")
	fmt.Printf("\n%d apps, each of a separate commit, Git 100 ms away: after the start of a new process the first request to Git after %s, "+
		"the first look at Git after %s, the rollback in the cluster after %s, %s of CPU and %d requests, %s after the look\n\n",
		len(f.apps), seconds(first), seconds(ready), seconds(taken), seconds(cpu), requests, seconds(taken-ready))
	if *idleApps > 0 {
		f.server.Fault(gittest.Faults{})
		f.awaitRest(began)
		f.printMemory("second")
	}
	f.stop()
}

// newGatedFleet returns a fleet of n apps with one pod each. At the pause, each app also has one pod of the new version. The idle apps have
// no replicas, and the state branch says that they are healthy.
func newGatedFleet(b testing.TB, kube *testcluster.Cluster, n, idle int) *fleet {
	b.Helper()
	entries, namespaces := idleNamespaces(b, kube, idle)
	f := emptyFleet(b, kube, entries)
	f.pprof = freeAddress(b)
	records := f.writeIdle(namespaces, idle)
	for i := range n {
		f.apps = append(f.apps, fmt.Sprintf("shop-%04d", i))
		f.writeGated("v1", f.apps[i])
	}
	records(f.repo.Commit("first versions"))
	return f
}

func (f *fleet) writeGated(version, app string) {
	f.writeApp(app, benchDeployment(app, version, 1), "{scaling: surge, steps: [{setWeight: 50}, {pause: {}}]}")
}

// awaitTag waits until each app's Deployment has the version in its template, and a ready pod. It returns the time when the wait ended.
func (f *fleet) awaitTag(version string, apps ...string) time.Time {
	f.b.Helper()
	return f.patches.await(apps, func(d *appsv1.Deployment) bool {
		return tagOf(d) == version && d.Status.ReadyReplicas > 0
	})
}

func (f *fleet) tag(app string) string {
	f.b.Helper()
	d, err := f.kube.Kube.AppsV1().Deployments(f.ns).Get(f.b.Context(), app, metav1.GetOptions{})
	must(f.b, err)
	return tagOf(d)
}

// sources returns the source commits of all paused apps.
func (f *fleet) sources() map[string]bool {
	f.b.Helper()
	found := map[string]bool{}
	for _, app := range f.apps {
		if s := f.state(app); s.Phase == rollout.Paused {
			found[s.Source] = true
		}
	}
	return found
}
