package e2e

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

var brokenRuns = flag.Int("broken-runs", 5, "how many broken versions of a StatefulSet go back, one after the other")

// awaitLog waits for a text in the program's log.
func (w *world) awaitLog(text string) {
	w.t.Helper()
	w.until(fmt.Sprintf("the log has %q", text), func() bool { return strings.Contains(w.log.String(), text) })
}

// grantEvictions installs the role of deploy/kubernetes/evict.
func (w *world) grantEvictions() {
	w.t.Helper()
	role := w.createClusterRole("evict/role.yaml")
	w.kubectl("create", "rolebinding", "evict", "--clusterrole="+role.Name, "--serviceaccount="+w.ns+":gitrollout")
}

// TestRetreatNeedsTheRightToDeletePods aborts a version whose pod never becomes ready. Without the right to delete pods, the log names the
// right, the phase stays Aborting, and no stable pod is replaced. With the right, the rollback completes.
func TestRetreatNeedsTheRightToDeletePods(t *testing.T) {
	t.Parallel()
	app := set("replicas: 3", "OrderedReady", "", "setWeight: 33", "pause: {}")
	w := newWorld(t, app.files())
	first := w.startWithoutEvictions("statefulsets.apps").awaitHealthy(w.repo.Head())
	mark := w.pods.mark()
	w.abortsBroken(app)
	w.awaitLog("cannot delete pods: ")
	w.awaitLog(`cannot delete resource \"pods\"`)
	w.await("the abort on record", func(s rollout.State) bool { return s.Phase == rollout.Aborting }) // after the first deletion
	compare.Contains(t, oneLine(w.ran("get", w.app)), "pod "+w.ns+"/shop-2, which is not ready, to be deleted")
	w.belowStay(mark, 2, "v1")
	w.grantEvictions()
	s := w.await("back at stable", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	w.awaitSplit(0, 3, 0, "v1", "")
	compare.CheckNamed(t, "the stable version", first.Stable.Hash, s.Stable.Hash)
	w.pods.wantStarted(t, map[string]int{"v1": 4, "v2-crash": 1})
}

// brokenPoll is the Git poll interval in the tests of broken versions. brokenDeadline is the progress deadline of a broken version.
const brokenPoll, brokenDeadline = 5 * time.Second, 3 * time.Second

// TestEveryBrokenStatefulSetGoesBack checks that the progress deadline alone rolls back each of several broken versions. Each version
// starts one pod and replaces one stable pod.
func TestEveryBrokenStatefulSetGoesBack(t *testing.T) {
	t.Parallel()
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			app := set("replicas: 3", policy, "", "setWeight: 33", "pause: {}")
			app.rollout = fmt.Sprintf("  progressDeadlineSeconds: %.0f\n  progressDeadlineAbort: true\n", brokenDeadline.Seconds())
			w := newWorld(t, app.files()).start("--interval", brokenPoll.String())
			first := w.awaitHealthy(w.repo.Head())
			mark := w.pods.mark()
			for i := 1; i <= *brokenRuns; i++ {
				broken := fmt.Sprintf("broken%d-neverready", i)
				w.push(broken, app.at(broken).files())
				begun := time.Now()
				s := w.await(fmt.Sprint("back at stable, run ", i), func(s rollout.State) bool {
					return s.Phase == rollout.Degraded && len(s.Rejected) > 0 && w.pods.count(broken) > 0 && s.Release == nil
				})
				w.awaitSplit(0, 3, 0, "v1", "")
				t.Logf("run %d: all stable %s after the push", i, time.Since(begun).Round(glance))
				if s.Stable.Hash != first.Stable.Hash || w.pods.count(broken) != 1 || w.pods.count("v1") != 3+i {
					t.Fatalf("run %d: stable is %s, %d broken pods and %d of v1 were started, want 1 and %d", i,
						s.Stable.Hash, w.pods.count(broken), w.pods.count("v1"), 3+i)
				}
			}
			w.belowStay(mark, 2, "v1")
			w.pods.wantReady(t, mark, 2)
		})
	}
}

// TestOnePodMovesWithThePromotion checks that a StatefulSet's only pod is not replaced before the promotion (reason NoCanaryPod).
func TestOnePodMovesWithThePromotion(t *testing.T) {
	t.Parallel()
	app := set("replicas: 1", "OrderedReady", "", "setCanaryScale: {replicas: 1}", "pause: {}")
	w := running(t, app.files())
	commit := w.stage("v2", app.at("v2").files())
	w.pods.stays(t, 300*time.Millisecond)
	w.pods.wantStarted(t, map[string]int{"v2": 0}) // no pod of v2 before the promotion
	w.promote().awaitHealthy(commit)
	w.awaitSplit(0, 1, 0, "v2", "")
	w.pods.wantStarted(t, map[string]int{"v1": 1, "v2": 1})
}

// TestStatefulSetIsPutBack checks that kubectl's changes of the pod template or the partition at a step are reverted,
// and the release stays at the step. After a changed image or a restart, no pod returns to the stable version.
func TestStatefulSetIsPutBack(t *testing.T) {
	t.Parallel()
	for name, by := range map[string][]string{
		"undo":      {"rollout", "undo", "statefulset/shop"},
		"image":     {"set", "image", "statefulset/shop", "shop=shop:v9"},
		"restart":   {"rollout", "restart", "statefulset/shop"},
		"partition": {"patch", "statefulset", "shop", "-p", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := set("replicas: 3", "OrderedReady", "", "setWeight: 33", "pause: {}")
			w := running(t, app.files())
			mark := w.pods.mark()
			commit := w.stage("v2", app.at("v2").files())
			w.awaitSplit(0, 3, 2, "v2", "v1")
			generation := w.statefulSet().Generation + 2
			if name == "restart" {
				generation-- // gitrollout does not revert the annotation of kubectl rollout restart
			}
			w.kubectl(by...)
			w.until("put back", func() bool {
				s := w.statefulSet()
				return s.Generation >= generation && s.Spec.Template.Spec.Containers[0].Image == "shop:v2" && w.partition() == 2
			})
			w.awaitSplit(0, 3, 2, "v2", "v1")
			w.promote().awaitHealthy(commit)
			w.awaitSplit(0, 3, 0, "v2", "")
			if v1 := w.pods.count("v1"); v1 != 3 && (name == "image" || name == "restart") {
				t.Errorf("%d pods of v1 were started, and not 3: users of the new version have lost it", v1)
			}
			w.pods.wantReady(t, mark, 2)
		})
	}
}

// TestTimedPauseBeginsAnew changes the image with kubectl during a timed pause. This change recreates the only new pod, so the whole pause
// must pass again before the next step.
func TestTimedPauseBeginsAnew(t *testing.T) {
	t.Parallel()
	app := set("replicas: 3", "OrderedReady", "", "setWeight: 33", "pause: {duration: 15s}", "pause: {}")
	w := running(t, app.files())
	w.stage("v2", app.at("v2").files())
	time.Sleep(2 * time.Second)
	w.kubectl("set", "image", "statefulset/shop", "shop=shop:v9")
	s := w.awaitPause(2)
	pod, err := w.cluster.Kube.CoreV1().Pods(w.ns).Get(context.Background(), "shop-2", metav1.GetOptions{})
	must(t, err)
	for _, c := range pod.Status.Conditions {
		if served := s.Progress[0].Entered.Sub(c.LastTransitionTime.Time); c.Type == "Ready" && served < 15*time.Second {
			t.Errorf("the pause ended when its pod had served for %s", served)
		}
	}
}

// TestStatefulSetIsRebalanced scales up while gitrollout does not run, and `get` shows the additional new pods. After a push of `rebalance:
// true`, gitrollout returns these pods to the stable version, one at a time, the lowest ordinal first. Then the release continues.
func TestStatefulSetIsRebalanced(t *testing.T) {
	t.Parallel()
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			app := set("", policy, "", "setCanaryScale: {replicas: 1}", "pause: {}")
			w := newWorld(t, app.files())
			g := newGate(t, w)
			w.start("--kubeconfig", kubeconfigOf(t, g.kube.URL)).awaitHealthy(w.repo.Head())
			w.scale(3)
			w.awaitSplit(0, 3, 0, "v1", "")
			commit := w.stage("v2", app.at("v2").files())
			w.awaitSplit(0, 3, 2, "v2", "v1")
			w.kill()
			w.scale(5) // gitrollout does not run: nothing adjusts the partition
			w.awaitSplit(0, 5, 2, "v2", "v1")
			compare.Contains(t, w.ran("get", w.app), "3 of 5 new, 1 asked: 2 came by scaling")
			w.resume()
			w.awaitPartition(4)
			w.awaitSplit(0, 5, 2, "v2", "v1")
			mark := w.pods.mark()
			app.strategy = canary("rebalance: true", "setCanaryScale: {replicas: 1}", "pause: {}")
			w.push("rebalance", app.at("v2").files())
			w.awaitSplit(0, 5, 4, "v2", "v1")
			w.pods.stays(t, 300*time.Millisecond)
			var evicted []string
			for _, e := range g.effects() {
				if i := strings.Index(e, "/pods/"); i >= 0 {
					evicted = append(evicted, e[i+len("/pods/"):])
				}
			}
			compare.CheckNamed(t, "the deleted pods", []string{"shop-2", "shop-3"}, evicted)
			w.promote().awaitHealthy(commit)
			w.awaitSplit(0, 5, 0, "v2", "")
			w.pods.wantReady(t, mark, 4)
		})
	}
}

// resume starts gitrollout again after kill.
func (w *world) resume() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = false
	must(w.t, w.spawn())
}

// scale sets the replicas as an autoscaler does.
func (w *world) scale(n int) {
	w.t.Helper()
	_, err := w.cluster.Kube.AppsV1().StatefulSets(w.ns).Patch(context.Background(), "shop", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n), metav1.PatchOptions{})
	must(w.t, err)
}

// TestDocumentComesBeside pushes a StatefulSet's first Rollout document and a new version in one commit. The app also
// has another workload with steps. The version is released in steps, and an abort restores the previous version.
func TestDocumentComesBeside(t *testing.T) {
	t.Parallel()
	app := set("replicas: 3", "OrderedReady", "", "setWeight: 33", "pause: {}")
	beside := func(app shop) map[string]string {
		files := app.files()
		files["kustomization.yaml"] = strings.Replace(files["kustomization.yaml"], "resources:\n", "resources:\n- side.yaml\n", 1)
		files["side.yaml"] = sideOfShop
		return files
	}
	plain := app
	plain.plain = true
	w := newWorld(t, beside(plain)).start()
	first := w.awaitHealthy(w.repo.Head())
	w.until("the StatefulSet whole", func() bool { return w.statefulSet().Status.ReadyReplicas == 3 })

	w.push("v2", beside(app.at("v2")))
	s := w.awaitPause(1)
	set := rollout.Workload{Kind: "StatefulSet", Namespace: w.ns, Name: "shop"}
	w.pods.stays(t, 300*time.Millisecond)
	if n := w.pods.count("v2"); n != 1 || len(s.Progress) != 1 || s.Progress[0].Workload != set || s.StableHash(set) == "" {
		t.Errorf("%d pods of v2 were started, want 1; at %+v, stable %+v", n, s.Progress, s.Stable)
	}
	s = w.abort()
	if s.Stable.Commit != first.Stable.Commit || w.pods.count("v1") != 4 || w.pods.count("v2") != 1 {
		t.Errorf("back at %s with %d pods of v1 and %d of v2 ever, want %s, 4 and 1", s.Stable.Commit, w.pods.count("v1"),
			w.pods.count("v2"), first.Stable.Commit)
	}
}

const sideOfShop = `apiVersion: apps/v1
kind: Deployment
metadata: {name: side}
spec:
  replicas: 1
  selector: {matchLabels: {app: side}}
  template:
    metadata: {labels: {app: side}}
    spec: {containers: [{name: side, image: "side:one"}]}
---
apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata: {name: side}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: side}
  strategy: {canary: {steps: [{setWeight: 50}, {pause: {}}]}}
`
