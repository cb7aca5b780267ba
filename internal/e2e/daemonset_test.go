package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/rollout"
)

// agents returns the shop as a DaemonSet that replaces one pod at a time.
func agents(extra string, steps ...string) shop {
	return shop{kind: "DaemonSet", version: "v1", strategy: canary("", steps...),
		extra: "  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}\n" + extra}
}

// nodes returns the versions of the pods that stay, by node.
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

// firstNodes returns the nodes that a release updates first, by the documented rule.
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

// onlyOn fails the test unless exactly these nodes have a version.
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

// TestDaemonSetSteps updates only the first nodes of the release's order at a step. At most one node is without a ready
// pod at any time, and a release starts one pod on each.
func TestDaemonSetSteps(t *testing.T) {
	t.Parallel()
	app := agents("", "setWeight: 20", "pause: {}", "setWeight: 50", "pause: {}")
	w := newWorld(t, app.files()).start()
	w.awaitHealthy(w.repo.Head())
	n := len(w.nodes())
	if n != 10 {
		t.Fatalf("%d nodes, want 10", n)
	}
	mark := w.pods.mark()
	commit := w.push("v2", app.at("v2").files())
	s := w.awaitStep(1, rollout.Paused)
	w.pods.stays(t, 300*time.Millisecond)
	w.onlyOn("v2", firstNodes(w.nodes(), s.Release.Hash, 2))
	w.promote()
	w.awaitStep(3, rollout.Paused)
	w.onlyOn("v2", firstNodes(w.nodes(), s.Release.Hash, 5))
	w.promote()
	w.awaitHealthy(commit)
	w.pods.awaitReady(t, map[string]int{"v2": n})
	w.pods.wantReady(t, mark, n-1)
	w.pods.wantStarted(t, "v1", n)
	w.pods.wantStarted(t, "v2", n)
	set, err := w.cluster.Kube.AppsV1().DaemonSets(w.ns).Get(context.Background(), "shop", metav1.GetOptions{})
	if err != nil || set.Spec.UpdateStrategy.Type != "RollingUpdate" {
		t.Errorf("in the end its strategy is %+v, %v", set.Spec.UpdateStrategy, err)
	}
}

// TestDaemonSetIsPutBack reverts kubectl changes of the template at a step without deleting a pod. A rollout restart
// recreates only the new version's pods.
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
			w := newWorld(t, app.files()).start()
			w.awaitHealthy(w.repo.Head())
			commit := w.push("v2", app.at("v2").files())
			s := w.awaitStep(1, rollout.Paused)
			set := func() *appsv1.DaemonSet {
				set, err := w.cluster.Kube.AppsV1().DaemonSets(w.ns).Get(context.Background(), "shop", metav1.GetOptions{})
				must(t, err)
				return set
			}
			generation, fresh := set().Generation+2, 2
			if name == "restart" {
				generation, fresh = generation-1, 4
			}
			w.kubectl(by...)
			for deadline := time.Now().Add(timeout); ; time.Sleep(glance) {
				if now := set(); now.Generation >= generation && now.Spec.Template.Spec.Containers[0].Image == "shop:v2" {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("it is not put back: %+v", set().Spec)
				}
			}
			w.await("its pods", func(rollout.State) bool { return w.pods.count("v2") >= fresh })
			w.pods.awaitReady(t, map[string]int{"v1": 8, "v2": 2})
			w.pods.stays(t, time.Second)
			w.onlyOn("v2", firstNodes(w.nodes(), s.Release.Hash, 2))
			w.pods.wantStarted(t, "v1", 10)
			w.pods.wantStarted(t, "v2", fresh)
			w.promote()
			w.awaitHealthy(commit)
		})
	}
}

// TestNobodyElseSaysHowManyNodesMayBeMissing resets a foreign value of a field that Git leaves to the default, at a
// step and at rest. The value has no effect on a promotion or a rollback.
func TestNobodyElseSaysHowManyNodesMayBeMissing(t *testing.T) {
	t.Parallel()
	app := agents("", "setCanaryScale: {replicas: 1}", "pause: {}")
	app.extra = ""
	w := newWorld(t, app.files()).start()
	w.awaitHealthy(w.repo.Head())
	patch := func() {
		t.Helper()
		w.kubectl("patch", "daemonset", "shop", "-p",
			`{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":5}}}}`)
	}
	mark := w.pods.mark()
	commit := w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	patch()
	set := func() appsv1.DaemonSetUpdateStrategy {
		set, err := w.cluster.Kube.AppsV1().DaemonSets(w.ns).Get(context.Background(), "shop", metav1.GetOptions{})
		must(t, err)
		return set.Spec.UpdateStrategy
	}
	w.await("OnDelete", func(rollout.State) bool { return set().Type == appsv1.OnDeleteDaemonSetStrategyType })
	low := w.pods.lowest(mark)
	w.promote()
	w.awaitHealthy(commit)
	mark = w.pods.mark()
	patch()
	w.await("1 of them", func(rollout.State) bool { return set().RollingUpdate.MaxUnavailable.IntValue() == 1 })
	commit = w.push("v3", app.at("v3").files())
	w.awaitStep(1, rollout.Paused)
	w.promote()
	w.awaitHealthy(commit)
	if got := w.pods.lowest(mark); got < 9 {
		t.Errorf("ready pods fell to %d, and before that to %d", got, low)
	}
}

// TestDaemonSetNodeOrder updates the nodes of a zone first, and then as many others as are missing.
func TestDaemonSetNodeOrder(t *testing.T) {
	t.Parallel()
	app := agents("", "setWeight: 40", "pause: {}")
	app.strategy = strings.Replace(app.strategy, "      steps:",
		"      nodeOrder: [{matchLabels: {topology.kubernetes.io/zone: local-b}}]\n      steps:", 1)
	w := newWorld(t, app.files()).start()
	w.awaitHealthy(w.repo.Head())
	w.push("v2", app.at("v2").files())
	s := w.awaitStep(1, rollout.Paused)
	others := w.nodes()
	first := []string{"node-2", "node-5", "node-8"}
	for _, node := range first {
		delete(others, node)
	}
	want := append(first, firstNodes(others, s.Release.Hash, 1)...)
	slices.Sort(want)
	w.onlyOn("v2", want)
}

// TestDaemonSetGoesBack replaces the pods of 3 nodes after an abort at 30 %. A crashing version reaches only the first
// node and is rolled back.
func TestDaemonSetGoesBack(t *testing.T) {
	t.Parallel()
	app := agents("", "setWeight: 30", "pause: {}")
	w := newWorld(t, app.files()).start()
	w.awaitHealthy(w.repo.Head())
	mark := w.pods.mark()
	w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	w.ran("abort", w.app)
	w.await("back at stable", func(s rollout.State) bool { return s.Phase == rollout.Degraded && s.Release == nil })
	w.pods.awaitReady(t, map[string]int{"v1": 10})
	if v1, v2, low := w.pods.count("v1"), w.pods.count("v2"), w.pods.lowest(mark); v1 != 13 || v2 != 3 || low < 9 {
		t.Errorf("%d pods of v1 and %d of v2 were started, want 13 and 3; ready ones fell to %d", v1, v2, low)
	}
	app.rollout = "  progressDeadlineSeconds: 5\n  progressDeadlineAbort: true\n"
	w.push("v3", app.at("v3-crash").files())
	w.await("back from v3", func(s rollout.State) bool {
		return len(s.Rejected) == 2 && s.Phase == rollout.Degraded && s.Release == nil
	})
	w.pods.awaitReady(t, map[string]int{"v1": 10})
	if v3, low := w.pods.count("v3-crash"), w.pods.lowest(mark); v3 != 1 || low < 9 {
		t.Errorf("%d pods of v3 were started, and ready ones fell to %d", v3, low)
	}
	for node, version := range w.nodes() {
		if version != "v1" {
			t.Errorf("%s has %s", node, version)
		}
	}
}

// daemonLife releases to 30 % of the nodes, rolls back, and returns the effects. Gitrollout is killed before some of
// them.
func daemonLife(t *testing.T, at ...int) (effects []string) {
	t.Helper()
	app := agents("", "setWeight: 30", "pause: {}")
	w := newWorld(t, app.files())
	g := newGate(t, w)
	for _, n := range at {
		g.at[n] = true
	}
	g.kill = w.restartAfterKill
	remote, err := url.Parse(w.server.URL)
	must(t, err)
	w.start("--repo", g.git.URL+remote.Path, "--kubeconfig", kubeconfigOf(t, g.kube.URL))
	w.awaitHealthy(w.repo.Head())
	w.pods.awaitReady(t, map[string]int{"v1": 10})
	mark := w.pods.mark()
	commit := w.push("v2", app.at("v2").files())
	s := w.awaitStep(1, rollout.Paused)
	w.onlyOn("v2", firstNodes(w.nodes(), s.Release.Hash, 3))
	w.repo.Revert(commit)
	w.await("healthy again", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Release == nil })
	w.pods.awaitReady(t, map[string]int{"v1": 10})
	w.awaitRestart(g)
	if v1, v2, low := w.pods.count("v1"), w.pods.count("v2"), w.pods.lowest(mark); v1 != 13 || v2 != 3 || low < 9 {
		t.Errorf("%d pods of v1 and %d of v2 were started, want 13 and 3; ready ones fell to %d", v1, v2, low)
	}
	return g.effects()
}

// TestDaemonSetKilled kills gitrollout before each effect: its successor updates the same nodes, and no others.
func TestDaemonSetKilled(t *testing.T) {
	t.Parallel()
	effects := daemonLife(t)
	isEviction := func(effect string) bool { return !strings.Contains(effect, "/pods/") }
	if n := len(slices.DeleteFunc(slices.Clone(effects), isEviction)); n != 3 {
		t.Errorf("%d pods were evicted, want 3: %v", n, effects)
	}
	distance := (len(effects) + killsInALife - 1) / killsInALife
	for first := 1; first <= distance; first++ {
		t.Run(fmt.Sprint("effect ", first), func(t *testing.T) {
			t.Parallel()
			daemonLife(t, first, first+distance, first+2*distance)
		})
	}
}

// TestDaemonSetNodesComeAndGo adopts a DaemonSet without restarting a pod, while nodes join and leave at its steps.
// Joining nodes have the new version, and the release does not wait for removed ones.
func TestDaemonSetNodesComeAndGo(t *testing.T) {
	t.Parallel()
	app := agents("", "setWeight: 50", "pause: {}", "setWeight: 75", "pause: {}")
	w := newWorld(t, app.files())
	label := func(node string, on bool) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"labels":{"pool-%s":null}}}`, w.ns)
		if on {
			patch = strings.Replace(patch, "null", `"yes"`, 1)
		}
		_, err := w.cluster.Kube.CoreV1().Nodes().Patch(context.Background(), node, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{})
		must(t, err)
	}
	for i := range 4 {
		label(fmt.Sprintf("node-%d", i+1), true)
	}
	t.Cleanup(func() {
		for i := range 6 {
			label(fmt.Sprintf("node-%d", i+1), false)
		}
	})
	pool := func(version string) map[string]string {
		files := app.at(version).files()
		files["shop.yaml"] = strings.Replace(files["shop.yaml"], "    spec:\n", "    spec:\n      nodeSelector: {pool-"+w.ns+": \"yes\"}\n", 1)
		return files
	}
	w.push("a pool", pool("v1"))
	manifest := filepath.Join(t.TempDir(), "shop.yaml")
	must(t, os.WriteFile(manifest, []byte(pool("v1")["shop.yaml"]), 0o600))
	w.kubectl("apply", "-f", manifest)
	w.pods.awaitReady(t, map[string]int{"v1": 4})
	mark := w.pods.mark()
	w.start()
	w.awaitHealthy(w.repo.Head())
	if v1 := w.pods.count("v1"); v1 != 4 {
		t.Fatalf("adopting it started %d pods", v1-4)
	}
	commit := w.push("v2", pool("v2"))
	w.awaitStep(1, rollout.Paused)
	w.pods.awaitReady(t, map[string]int{"v1": 2, "v2": 2})
	label("node-5", true)
	w.pods.awaitReady(t, map[string]int{"v1": 2, "v2": 3})
	w.promote()
	w.awaitStep(3, rollout.Paused)
	w.pods.awaitReady(t, map[string]int{"v1": 1, "v2": 4})
	for node, version := range w.nodes() {
		if version == "v1" {
			label(node, false)
		}
	}
	w.pods.awaitReady(t, map[string]int{"v2": 4})
	label("node-6", true)
	w.promote()
	w.awaitHealthy(commit)
	w.pods.awaitReady(t, map[string]int{"v2": 5})
	w.pods.wantReady(t, mark, 3)
}

// TestStepOfADaemonSetNeedsTheRightToDeletePods checks that, without the component, a step names the missing right and
// updates no node. With the component it continues.
func TestStepOfADaemonSetNeedsTheRightToDeletePods(t *testing.T) {
	t.Parallel()
	app := agents("", "setCanaryScale: {replicas: 1}", "pause: {}")
	w := newWorld(t, app.files())
	w.installRights()
	w.kubectl("create", "role", "sets", "--verb=get,list,watch,create,patch,delete", "--resource=daemonsets.apps")
	w.kubectl("create", "rolebinding", "sets", "--role=sets", "--serviceaccount="+w.ns+":gitrollout")
	w.start("--kubeconfig", audit(t, w, "gitrollout", w.ns).kubeconfig)
	w.awaitHealthy(w.repo.Head())
	w.push("v2", app.at("v2").files())
	w.awaitLog("cannot delete pods: ")
	if s := w.state(); s.Phase != rollout.Progressing || w.pods.count("v2") > 0 {
		t.Errorf("without the right it is %s, with %d pods of v2", s.Phase, w.pods.count("v2"))
	}
	w.grantEvictions()
	s := w.awaitStep(1, rollout.Paused)
	w.onlyOn("v2", firstNodes(w.nodes(), s.Release.Hash, 1))
}
