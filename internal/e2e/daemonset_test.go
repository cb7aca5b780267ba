package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// agents returns the test app with a DaemonSet as its workload. The DaemonSet replaces one pod at a time.
func agents(extra string, steps ...string) shop {
	return shop{kind: "DaemonSet", version: "v1", strategy: canary("", steps...),
		extra: "  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}\n" + extra}
}

// nodes returns the version of the pod on each node. It ignores pods that are terminating.
func (w *world) nodes() map[string]string {
	w.t.Helper()
	list, err := w.cluster.Kube.CoreV1().Pods(w.ns).List(context.Background(), metav1.ListOptions{LabelSelector: "app=shop"})
	must(w.t, err)
	on := map[string]string{}
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			on[p.Spec.NodeName] = strings.TrimPrefix(p.Spec.Containers[0].Image, "shop:")
		}
	}
	return on
}

func (w *world) daemonSet() *appsv1.DaemonSet {
	w.t.Helper()
	set, err := w.cluster.Kube.AppsV1().DaemonSets(w.ns).Get(context.Background(), "shop", metav1.GetOptions{})
	must(w.t, err)
	return set
}

// firstNodes returns the n nodes that a release updates first. The order is by a hash of release and node name, as documented.
func firstNodes(all map[string]string, release rollout.Hash, n int) []string {
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		digest := func(node string) string {
			sum := sha256.Sum256([]byte(string(release) + "\n" + node))
			return string(sum[:])
		}
		return strings.Compare(digest(a), digest(b))
	})
	return slices.Sorted(slices.Values(names[:n]))
}

// onlyOn fails the test unless exactly the wanted nodes have a pod of the version.
func (w *world) onlyOn(version string, want []string) {
	w.t.Helper()
	var got []string
	for node, v := range w.nodes() {
		if v == version {
			got = append(got, node)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		w.t.Errorf("%s is on %v, want %v", version, got, want)
	}
}

// onFirstNodes fails the test unless exactly the first n nodes in the release's order have a pod of the version.
func (w *world) onFirstNodes(version string, n int) {
	w.t.Helper()
	w.onlyOn(version, firstNodes(w.nodes(), w.state().Release.Hash, n))
}

// TestDaemonSetSteps checks that a step updates only the first nodes of the release's order. At most one node lacks a
// ready pod at any time, and a release starts one pod on each node.
func TestDaemonSetSteps(t *testing.T) {
	t.Parallel()
	app := agents("", "setWeight: 20", "pause: {}", "setWeight: 50", "pause: {}")
	w := running(t, app.files())
	const n = 10 // the number of nodes of the tests' cluster
	mark := w.pods.mark()
	commit := w.stage("v2", app.at("v2").files())
	w.pods.stays(t, 300*time.Millisecond)
	w.onFirstNodes("v2", 2)
	w.promote().awaitPause(3)
	w.onFirstNodes("v2", 5)
	w.promote().awaitHealthy(commit)
	w.pods.awaitReady(t, map[string]int{"v2": n})
	w.pods.wantReady(t, mark, n-1)
	w.pods.wantStarted(t, map[string]int{"v1": n, "v2": n})
	compare.CheckNamed(t, "its strategy in the end", appsv1.RollingUpdateDaemonSetStrategyType, w.daemonSet().Spec.UpdateStrategy.Type)
}

// TestDaemonSetIsPutBack checks that kubectl's changes of the pod template during a step are reverted without deleting
// a pod. A `kubectl rollout restart` recreates only the new version's pods.
func TestDaemonSetIsPutBack(t *testing.T) {
	t.Parallel()
	for name, by := range map[string][]string{
		"undo":    {"rollout", "undo", "daemonset/shop"},
		"image":   {"set", "image", "daemonset/shop", "shop=shop:v9"},
		"restart": {"rollout", "restart", "daemonset/shop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := agents("", "setWeight: 20", "pause: {}")
			app.extra = strings.Replace(app.extra, "maxUnavailable: 1", `maxUnavailable: "100%"`, 1)
			w := running(t, app.files())
			commit := w.stage("v2", app.at("v2").files())
			generation, fresh := w.daemonSet().Generation+2, 2
			if name == "restart" {
				generation, fresh = generation-1, 4
			}
			w.kubectl(by...)
			var now *appsv1.DaemonSet
			eventually(t, "put back", func() bool {
				now = w.daemonSet()
				return now.Generation >= generation && now.Spec.Template.Spec.Containers[0].Image == "shop:v2"
			}, func() any { return now.Spec })
			w.await("its pods", func(rollout.State) bool { return w.pods.count("v2") >= fresh })
			w.pods.awaitReady(t, map[string]int{"v1": 8, "v2": 2})
			w.pods.stays(t, time.Second)
			w.onFirstNodes("v2", 2)
			w.pods.wantStarted(t, map[string]int{"v1": 10, "v2": fresh})
			w.promote().awaitHealthy(commit)
		})
	}
}

// TestNobodyElseSaysHowManyNodesMayBeMissing changes the updateStrategy with kubectl. Git does not set this field. During a step,
// gitrollout restores the type OnDelete. Between releases, it restores the default maxUnavailable of 1. This default also limits the next
// release.
func TestNobodyElseSaysHowManyNodesMayBeMissing(t *testing.T) {
	t.Parallel()
	app := agents("", "setCanaryScale: {replicas: 1}", "pause: {}")
	app.extra = ""
	w := running(t, app.files())
	patch := func() {
		t.Helper()
		w.kubectl("patch", "daemonset", "shop", "-p",
			`{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":5}}}}`)
	}
	commit := w.stage("v2", app.at("v2").files())
	patch()
	strategy := func() appsv1.DaemonSetUpdateStrategy { return w.daemonSet().Spec.UpdateStrategy }
	w.until("OnDelete", func() bool { return strategy().Type == appsv1.OnDeleteDaemonSetStrategyType })
	w.promote().awaitHealthy(commit)
	mark := w.pods.mark()
	patch()
	w.until("1 of them", func() bool { return strategy().RollingUpdate.MaxUnavailable.IntValue() == 1 })
	w.release("v3", app.at("v3").files())
	w.pods.wantReady(t, mark, 9)
}

// TestDaemonSetNodeOrder checks that a step first updates the nodes that nodeOrder selects, and then other nodes until the step has its
// number of nodes.
func TestDaemonSetNodeOrder(t *testing.T) {
	t.Parallel()
	app := agents("")
	app.strategy = canary("nodeOrder: [{matchLabels: {topology.kubernetes.io/zone: local-b}}]", "setWeight: 40", "pause: {}")
	w := running(t, app.files())
	w.stage("v2", app.at("v2").files())
	others := w.nodes()
	first := []string{"node-2", "node-5", "node-8"}
	for _, node := range first {
		delete(others, node)
	}
	want := append(first, firstNodes(others, w.state().Release.Hash, 1)...)
	slices.Sort(want)
	w.onlyOn("v2", want)
}

// TestDaemonSetGoesBack checks that an abort at 30 % replaces only the pods of the 3 updated nodes. A crashing version
// reaches only the first node and is rolled back.
func TestDaemonSetGoesBack(t *testing.T) {
	t.Parallel()
	app := agents("", "setWeight: 30", "pause: {}")
	w := running(t, app.files())
	mark := w.pods.mark()
	w.stage("v2", app.at("v2").files())
	w.abort()
	w.pods.awaitReady(t, map[string]int{"v1": 10})
	w.pods.wantStarted(t, map[string]int{"v1": 13, "v2": 3})
	w.pods.wantReady(t, mark, 9)
	app.rollout = "  progressDeadlineSeconds: 20\n  progressDeadlineAbort: true\n"
	w.push("v3", app.at("v3-crash").files())
	w.await("back from v3", func(s rollout.State) bool {
		return len(s.Rejected) == 2 && s.Phase == rollout.Degraded && s.Release == nil
	})
	w.pods.awaitReady(t, map[string]int{"v1": 10})
	w.pods.wantStarted(t, map[string]int{"v3-crash": 1})
	w.pods.wantReady(t, mark, 9)
	w.onlyOn("v1", slices.Sorted(maps.Keys(w.nodes())))
}

// daemonLife releases a version to 30 % of the nodes, reverts the release, and returns gitrollout's effects (writes to the servers).
// gitrollout is killed before the effects with the given numbers.
func daemonLife(t *testing.T, at ...int) (effects []string) {
	t.Helper()
	app := agents("", "setWeight: 30", "pause: {}")
	w := newWorld(t, app.files())
	g := w.startGated(at...)
	w.awaitHealthy(w.repo.Head())
	w.pods.awaitReady(t, map[string]int{"v1": 10})
	mark := w.pods.mark()
	commit := w.stage("v2", app.at("v2").files())
	w.onFirstNodes("v2", 3)
	w.revert(commit)
	w.pods.awaitReady(t, map[string]int{"v1": 10})
	w.awaitRestart(g)
	w.pods.wantStarted(t, map[string]int{"v1": 13, "v2": 3})
	w.pods.wantReady(t, mark, 9)
	return g.effects()
}

// TestDaemonSetKilled kills gitrollout before each effect of daemonLife. gitrollout must still update only the first 3 nodes of the
// release's order.
func TestDaemonSetKilled(t *testing.T) {
	t.Parallel()
	effects := daemonLife(t)
	isEviction := func(effect string) bool { return !strings.Contains(effect, "/pods/") }
	if n := len(slices.DeleteFunc(slices.Clone(effects), isEviction)); n != 3 {
		t.Errorf("%d pods were evicted, want 3: %v", n, effects)
	}
	for _, at := range killsApart(len(effects)) {
		t.Run(fmt.Sprint("effect ", at[0]), func(t *testing.T) {
			t.Parallel()
			daemonLife(t, at...)
		})
	}
}

// TestDaemonSetNodesComeAndGo adopts a DaemonSet without restarting a pod. During the steps of a release, nodes join
// and leave. Joining nodes get the new version, and the release does not wait for removed nodes.
func TestDaemonSetNodesComeAndGo(t *testing.T) {
	t.Parallel()
	app := agents("", "setWeight: 50", "pause: {}", "setWeight: 75", "pause: {}")
	w := newWorld(t, app.files())
	pool := "pool-" + w.ns
	w.kubectl("label", "node", "node-1", "node-2", "node-3", "node-4", pool+"=yes")
	t.Cleanup(func() {
		w.kubectl("label", "node", "node-1", "node-2", "node-3", "node-4", "node-5", "node-6", pool+"-")
	})
	app.pod = "      nodeSelector: {" + pool + ": \"yes\"}\n"
	w.push("a pool", app.files())
	w.apply(app.files()["shop.yaml"])
	w.pods.awaitReady(t, map[string]int{"v1": 4})
	mark := w.pods.mark()
	w.start().awaitHealthy(w.repo.Head())
	w.pods.wantStarted(t, map[string]int{"v1": 4})
	commit := w.stage("v2", app.at("v2").files())
	w.pods.awaitReady(t, map[string]int{"v1": 2, "v2": 2})
	w.kubectl("label", "node", "node-5", pool+"=yes")
	w.pods.awaitReady(t, map[string]int{"v1": 2, "v2": 3})
	w.promote().awaitPause(3)
	w.pods.awaitReady(t, map[string]int{"v1": 1, "v2": 4})
	for node, version := range w.nodes() {
		if version == "v1" {
			w.kubectl("label", "node", node, pool+"-")
		}
	}
	w.pods.awaitReady(t, map[string]int{"v2": 4})
	w.kubectl("label", "node", "node-6", pool+"=yes")
	w.promote().awaitHealthy(commit)
	w.pods.awaitReady(t, map[string]int{"v2": 5})
	w.pods.wantReady(t, mark, 3)
}

// TestStepOfADaemonSetNeedsTheRightToDeletePods checks that, without the right to delete pods, a step logs an error and updates no node.
// After the right is granted, the release continues.
func TestStepOfADaemonSetNeedsTheRightToDeletePods(t *testing.T) {
	t.Parallel()
	app := agents("", "setCanaryScale: {replicas: 1}", "pause: {}")
	w := newWorld(t, app.files())
	w.startWithoutEvictions("daemonsets.apps").awaitHealthy(w.repo.Head())
	w.push("v2", app.at("v2").files())
	w.awaitLog("cannot delete pods: ")
	if s := w.state(); s.Phase != rollout.Progressing || w.pods.count("v2") > 0 {
		t.Errorf("without the right it is %s, with %d pods of v2", s.Phase, w.pods.count("v2"))
	}
	w.grantEvictions()
	w.awaitPause(1)
	w.onFirstNodes("v2", 1)
}
