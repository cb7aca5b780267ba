package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

// set returns the test app with a StatefulSet as its workload. `replicas` and `extra` are lines of the StatefulSet's spec. If an autoscaler
// sets the number of pods, `replicas` is "".
func set(replicas, policy, extra string, steps ...string) shop {
	return shop{kind: "StatefulSet", version: "v1", replicas: replicas, strategy: canary("", steps...),
		extra: "  serviceName: shop\n  podManagementPolicy: " + policy + "\n" + extra}
}

// abortsBroken pushes a crashing version of a StatefulSet, and aborts the release once the version's first pod exists.
func (w *world) abortsBroken(app shop) {
	w.t.Helper()
	w.push("v2", app.at("v2-crash").files())
	w.await("the broken pod", func(s rollout.State) bool {
		return s.Phase == rollout.Progressing && w.pods.count("v2-crash") == 1
	})
	w.ran("abort", w.app)
}

// isSplit reports whether exactly n pods exist, with ordinals from `first`. Pods below ordinal `from` must have version `stable`, other
// pods `fresh`.
func isSplit(pods map[string]string, first, n, from int, fresh, stable string) bool {
	want := map[string]string{}
	for i := first; i < first+n; i++ {
		if want[fmt.Sprintf("shop-%d", i)] = stable; i >= from {
			want[fmt.Sprintf("shop-%d", i)] = fresh
		}
	}
	return maps.Equal(pods, want)
}

// awaitSplit waits until isSplit returns true and all pods are ready.
func (w *world) awaitSplit(first, n, from int, fresh, stable string) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("pods %d to %d with %s from %d on", first, first+n-1, fresh, from), func() bool {
		w.pods.mark() // the watch may lag behind the cluster, and mark waits for it
		last := w.pods.last()
		return isSplit(last.pods, first, n, from, fresh, stable) && total(last.ready) == n
	}, func() any { return w.pods.last() })
}

// belowStay fails the test if, at any time since mark, a pod with an ordinal below `from` had another version than stable.
func (w *world) belowStay(mark, from int, stable string) {
	w.t.Helper()
	for _, s := range w.pods.since(mark) {
		for name, version := range s.pods {
			if i, _ := strconv.Atoi(name[strings.LastIndex(name, "-")+1:]); i < from && version != stable {
				w.t.Fatalf("%s was of %s, and pods below %d are to stay at %s", name, version, from, stable)
			}
		}
	}
}

var policies = []string{"OrderedReady", "Parallel"}

// TestStatefulSetSteps runs a release for each number of replicas, and checks the version of each ordinal at all times.
func TestStatefulSetSteps(t *testing.T) {
	t.Parallel()
	steps := []string{"setWeight: 20", "pause: {}", "setWeight: 50", "pause: {}"}
	for _, policy := range policies {
		for n, want := range map[int][2]int{1: {0, 0}, 3: {1, 2}, 5: {1, 3}, 10: {2, 5}} {
			t.Run(fmt.Sprintf("%d %s", n, policy), func(t *testing.T) {
				t.Parallel()
				start, extra := 0, ""
				if n == 3 {
					start, extra = 5, "  ordinals: {start: 5}\n"
				}
				app := set(fmt.Sprintf("replicas: %d", n), policy, extra, steps...)
				w := running(t, app.files())
				w.awaitSplit(start, n, start, "v1", "")

				mark := w.pods.mark()
				commit := w.stage("v2", app.at("v2").files())
				w.awaitSplit(start, n, start+n-want[0], "v2", "v1")
				w.pods.stays(t, 300*time.Millisecond)
				w.belowStay(mark, start+n-want[0], "v1")
				w.promote().awaitPause(3)
				w.awaitSplit(start, n, start+n-want[1], "v2", "v1")
				w.belowStay(mark, start+n-want[1], "v1")
				w.promote().awaitHealthy(commit)
				w.awaitSplit(start, n, start, "v2", "")
				w.pods.wantReady(t, mark, n-1)
				w.pods.wantStarted(t, map[string]int{"v1": n, "v2": n})
			})
		}
	}
}

// TestStatefulSetIsAborted checks that an abort at a step replaces only the new pods.
func TestStatefulSetIsAborted(t *testing.T) {
	t.Parallel()
	for _, policy := range policies {
		for n, k := range map[int]int{5: 3, 10: 2} {
			t.Run(fmt.Sprintf("%d of %d %s", k, n, policy), func(t *testing.T) {
				t.Parallel()
				tier.Rows(t, "3_of_5_OrderedReady")
				app := set(fmt.Sprintf("replicas: %d", n), policy, "  ordinals: {start: 5}\n",
					fmt.Sprintf("setCanaryScale: {replicas: %d}", k), "pause: {}")
				w := newWorld(t, app.files()).start()
				first := w.awaitHealthy(w.repo.Head())
				mark := w.pods.mark()
				w.stage("v2", app.at("v2").files())
				w.awaitSplit(5, n, 5+n-k, "v2", "v1")
				s := w.abort()
				w.awaitSplit(5, n, 5, "v1", "")
				w.belowStay(mark, 5+n-k, "v1")
				w.pods.wantStarted(t, map[string]int{"v1": n + k, "v2": k})
				w.wantStable(first, s, 1)
				if policy == "OrderedReady" { // with Parallel, the next pod is replaced immediately
					w.pods.wantReady(t, mark, n-1)
				}
			})
		}
	}
}

// TestBrokenStatefulSetGoesBack covers kubernetes#67250: with OrderedReady, the controller waits forever for a pod that never becomes
// ready, even after a rollback of the template. gitrollout deletes this pod. If gitrollout is killed first, the next process deletes the
// pod, because the decision depends only on observed pods.
func TestBrokenStatefulSetGoesBack(t *testing.T) {
	t.Parallel()
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			effects := brokenLife(t, policy, 0)
			i := slices.IndexFunc(effects, func(e string) bool { return strings.Contains(e, "/pods/") })
			if policy == "OrderedReady" && i < 0 {
				t.Fatalf("no pod was deleted: %v", effects)
			}
			if i >= 0 {
				t.Run("killed", func(t *testing.T) { brokenLife(t, policy, i+1) })
			}
		})
	}
}

// brokenLife aborts a release whose first pod never becomes ready, and returns gitrollout's writes. gitrollout is killed before write
// number `killed`, or never if `killed` is 0.
func brokenLife(t *testing.T, policy string, killed int) []string {
	t.Helper()
	app := set("replicas: 3", policy, "", "setWeight: 33", "pause: {}")
	w := newWorld(t, app.files())
	g := w.startGated(killed)
	first := w.awaitHealthy(w.repo.Head())
	mark := w.pods.mark()
	w.abortsBroken(app)
	s := w.await("back at stable", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	w.awaitSplit(0, 3, 0, "v1", "")
	w.awaitRestart(g)
	w.wantStable(first, s, 1)
	w.belowStay(mark, 2, "v1")
	w.pods.wantStarted(t, map[string]int{"v1": 4, "v2-crash": 1})
	w.pods.wantReady(t, mark, 2)
	return g.effects()
}

// TestStatefulSetScalesInFlight changes the replicas at each step, as an autoscaler does, and checks the partition.
func TestStatefulSetScalesInFlight(t *testing.T) {
	t.Parallel()
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			app := set("", policy, "", "setWeight: 30", "pause: {}", "setWeight: 60", "pause: {}")
			w := running(t, app.files())
			w.scale(3)
			w.awaitSplit(0, 3, 0, "v1", "")
			commit := w.push("v2", app.at("v2").files())
			w.scaleAtAStep(1, 1, 2, 1) // 30 % of 3, of 8 and of 2 pods
			w.promote()
			w.scaleAtAStep(3, 2, 5, 1)
			w.promote().awaitHealthy(commit)
			w.awaitSplit(0, 2, 0, "v2", "")
		})
	}
}

// scaleAtAStep scales to 3, 8 and 2 pods at a step, and checks how many pods are new: of3, of8 and of2.
func (w *world) scaleAtAStep(step, of3, of8, of2 int) {
	w.t.Helper()
	w.awaitPause(step)
	w.scale(3)
	w.awaitPartition(3 - of3)
	w.scale(8)
	w.awaitPartition(8 - of8)
	w.awaitPause(step)
	last := w.pods.since(max(0, w.pods.mark()-1))[0].pods
	for i := 8 - of8; i < 8; i++ {
		if v, exists := last[fmt.Sprintf("shop-%d", i)]; exists && v != "v2" {
			w.t.Errorf("shop-%d is of %s: fewer than asked for are new", i, v)
		}
	}
	w.scale(2)
	w.awaitPartition(2 - of2)
	w.awaitSplit(0, 2, 2-of2, "v2", "v1")
}

func (w *world) awaitPartition(want int) {
	w.t.Helper()
	awaitEqual(w.t, "the partition", want, w.partition)
}

func (w *world) partition() int {
	rolling := w.statefulSet().Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.Partition == nil {
		return 0
	}
	return int(*rolling.Partition)
}

// TestStatefulSetIsAdopted checks that a StatefulSet created by kubectl is adopted without restarting its pods. Then a
// version is released to two pods and reverted in Git. The revert rejects no version.
func TestStatefulSetIsAdopted(t *testing.T) {
	t.Parallel()
	app := set("replicas: 3", "OrderedReady", "", "setCanaryScale: {replicas: 2}", "pause: {}")
	w := newWorld(t, app.files())
	w.apply(app.files()["shop.yaml"])
	w.awaitSplit(0, 3, 0, "v1", "")
	mark := w.pods.mark()
	first := w.start().awaitHealthy(w.repo.Head())
	w.pods.wantStarted(t, map[string]int{"v1": 3})
	w.pods.wantReady(t, mark, 3)
	commit := w.stage("v2", app.at("v2").files())
	w.awaitSplit(0, 3, 1, "v2", "v1")
	w.wantStable(first, w.revert(commit), 0)
	w.awaitSplit(0, 3, 0, "v1", "")
	w.pods.wantStarted(t, map[string]int{"v1": 5}) // 3 at first, and 2 after the revert
	w.pods.wantReady(t, mark, 2)
}

// TestStatefulSetsServicesArePinned checks that the new version's Service selects only new pods at a step.
func TestStatefulSetsServicesArePinned(t *testing.T) {
	t.Parallel()
	app := set("replicas: 3", "Parallel", "")
	app.strategy = canary("canaryService: shop-preview", "setWeight: 33", "pause: {}")
	w := running(t, app.files())
	w.stage("v2", app.at("v2").files())
	w.awaitSplit(0, 3, 2, "v2", "v1")
	want := w.statefulSet().Status.UpdateRevision
	awaitEqual(t, "the revision of the new version's Service", want, func() string {
		return w.selector("shop-preview")["controller-revision-hash"]
	})
}

func (w *world) statefulSet() *appsv1.StatefulSet {
	w.t.Helper()
	s, err := w.cluster.Kube.AppsV1().StatefulSets(w.ns).Get(context.Background(), "shop", metav1.GetOptions{})
	must(w.t, err)
	return s
}
