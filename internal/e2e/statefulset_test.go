package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/url"
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

// set returns the shop as a StatefulSet. Replicas is a line, "" under an autoscaler; extra are more lines of its spec.
func set(replicas, policy, extra string, steps ...string) shop {
	return shop{kind: "StatefulSet", version: "v1", replicas: replicas, strategy: canary("", steps...),
		extra: "  serviceName: shop\n  podManagementPolicy: " + policy + "\n" + extra}
}

// abortsBroken pushes a crashing version of a set, and aborts it once the first of its pods exists.
func (w *world) abortsBroken(app shop) {
	w.t.Helper()
	w.push("v2", app.at("v2-crash").files())
	w.await("the broken pod", func(s rollout.State) bool {
		return s.Phase == rollout.Progressing && w.pods.count("v2-crash") == 1
	})
	w.ran("abort", w.app)
}

// isSplit reports whether exactly the pods from an ordinal on have a version, and all others another one.
func isSplit(pods map[string]string, first, n, from int, fresh, stable string) bool {
	want := map[string]string{}
	for i := first; i < first+n; i++ {
		if want[fmt.Sprintf("shop-%d", i)] = stable; i >= from {
			want[fmt.Sprintf("shop-%d", i)] = fresh
		}
	}
	return maps.Equal(pods, want)
}

// awaitSplit waits for that, with all of them ready.
func (w *world) awaitSplit(first, n, from int, fresh, stable string) {
	w.t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		last := w.pods.since(max(0, w.pods.mark()-1))
		if len(last) > 0 && isSplit(last[0].pods, first, n, from, fresh, stable) && total(last[0].ready) == n {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not within %s: pods %d to %d with %s from %d on; they are %v", timeout, first, first+n-1, fresh, from, last)
		}
		time.Sleep(glance)
	}
}

// belowStay fails the test if a pod below an ordinal had another version than stable at any time since a mark.
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

// TestStatefulSetSteps releases one version at each size, and checks the version of each ordinal at all times.
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
				w := newWorld(t, app.files()).start()
				w.awaitHealthy(w.repo.Head())
				w.awaitSplit(start, n, start, "v1", "")

				mark := w.pods.mark()
				commit := w.push("v2", app.at("v2").files())
				w.awaitStep(1, rollout.Paused)
				w.awaitSplit(start, n, start+n-want[0], "v2", "v1")
				w.pods.stays(t, 300*time.Millisecond)
				w.belowStay(mark, start+n-want[0], "v1")
				w.promote()
				w.awaitStep(3, rollout.Paused)
				w.awaitSplit(start, n, start+n-want[1], "v2", "v1")
				w.belowStay(mark, start+n-want[1], "v1")
				w.promote()
				w.awaitHealthy(commit)
				w.awaitSplit(start, n, start, "v2", "")
				w.pods.wantReady(t, mark, n-1)
				w.pods.wantStarted(t, "v1", n)
				w.pods.wantStarted(t, "v2", n)
			})
		}
	}
}

// TestStatefulSetBatches releases in absolute numbers, and reverts a version by a commit.
func TestStatefulSetBatches(t *testing.T) {
	t.Parallel()
	app := set("replicas: 3", "OrderedReady", "", "setCanaryScale: {replicas: 2}", "pause: {}")
	w := newWorld(t, app.files()).start()
	first := w.awaitHealthy(w.repo.Head())
	mark := w.pods.mark()
	commit := w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	w.awaitSplit(0, 3, 1, "v2", "v1")
	w.repo.Revert(commit)
	s := w.await("healthy again", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
	w.awaitSplit(0, 3, 0, "v1", "")
	if s.Stable.Hash != first.Stable.Hash || len(s.Rejected) > 0 {
		t.Errorf("stable is %s with rejected %v, want %s with none", s.Stable.Hash, s.Rejected, first.Stable.Hash)
	}
	if v1, low := w.pods.count("v1"), w.pods.lowest(mark); v1 != 5 || low < 2 {
		t.Errorf("%d pods of v1 were started in all and ready ones fell to %d, want 3 and 2 again, and 2", v1, low)
	}
}

// TestStatefulSetIsAborted aborts at a step, which replaces only the new pods.
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
				w.push("v2", app.at("v2").files())
				w.awaitStep(1, rollout.Paused)
				w.awaitSplit(5, n, 5+n-k, "v2", "v1")
				w.ran("abort", w.app)
				s := w.await("back at stable", func(s rollout.State) bool { return s.Phase == rollout.Degraded && s.Release == nil })
				w.awaitSplit(5, n, 5, "v1", "")
				w.belowStay(mark, 5+n-k, "v1")
				if v1, v2 := w.pods.count("v1"), w.pods.count("v2"); v1 != n+k || v2 != k || s.Stable.Hash != first.Stable.Hash {
					t.Errorf("%d pods of v1 and %d of v2 were started, want %d and %d; stable is %s", v1, v2, n+k, k, s.Stable.Hash)
				}
				if low := w.pods.lowest(mark); policy == "OrderedReady" && low < n-1 { // Parallel replaces the next one at once
					t.Errorf("ready pods fell to %d, want at least %d", low, n-1)
				}
			})
		}
	}
}

// TestBrokenStatefulSetGoesBack handles kubernetes#67250: with OrderedReady the controller waits forever for the pod
// that never becomes ready, whatever the template is. A kill before the pod's deletion has no effect, since the pod to
// delete is observed, not remembered.
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

// brokenLife aborts a release whose first pod never becomes ready, and returns the effects. Gitrollout is killed before
// the given effect; 0 for none.
func brokenLife(t *testing.T, policy string, killed int) []string {
	t.Helper()
	app := set("replicas: 3", policy, "", "setWeight: 33", "pause: {}")
	w := newWorld(t, app.files())
	g := newGate(t, w)
	g.at[killed], g.kill = killed > 0, w.restartAfterKill
	remote, err := url.Parse(w.server.URL)
	must(t, err)
	w.start("--repo", g.git.URL+remote.Path, "--kubeconfig", kubeconfigOf(t, g.kube.URL))
	first := w.awaitHealthy(w.repo.Head())
	mark := w.pods.mark()
	w.abortsBroken(app)
	s := w.await("back at stable", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	w.awaitSplit(0, 3, 0, "v1", "")
	w.awaitRestart(g)
	if s.Stable.Hash != first.Stable.Hash || len(s.Rejected) != 1 {
		t.Errorf("stable is %s with rejected %v", s.Stable.Hash, s.Rejected)
	}
	w.belowStay(mark, 2, "v1")
	if v1, v2 := w.pods.count("v1"), w.pods.count("v2-crash"); v1 != 4 || v2 != 1 {
		t.Errorf("%d pods of v1 and %d broken ones were started, want 4 and 1", v1, v2)
	}
	w.pods.wantReady(t, mark, 2)
	return g.effects()
}

// TestStatefulSetScalesInFlight changes the replicas at each step, like an autoscaler.
func TestStatefulSetScalesInFlight(t *testing.T) {
	t.Parallel()
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			app := set("", policy, "", "setWeight: 30", "pause: {}", "setWeight: 60", "pause: {}")
			w := newWorld(t, app.files()).start()
			w.awaitHealthy(w.repo.Head())
			w.scale(3)
			w.awaitSplit(0, 3, 0, "v1", "")
			commit := w.push("v2", app.at("v2").files())
			w.scaleAtAStep(1, 1, 2, 1) // 30 % of 3, of 8 and of 2 pods
			w.promote()
			w.scaleAtAStep(3, 2, 5, 1)
			w.promote()
			w.awaitHealthy(commit)
			w.awaitSplit(0, 2, 0, "v2", "")
		})
	}
}

// scaleAtAStep scales to 3, 8 and 2 pods, with the given numbers of new pods.
func (w *world) scaleAtAStep(step, of3, of8, of2 int) {
	w.t.Helper()
	w.awaitStep(step, rollout.Paused)
	w.scale(3)
	w.awaitPartition(3 - of3)
	w.scale(8)
	w.awaitPartition(8 - of8)
	w.awaitStep(step, rollout.Paused)
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
	for deadline := time.Now().Add(timeout); w.partition() != want; time.Sleep(glance) {
		if time.Now().After(deadline) {
			w.t.Fatalf("the partition is %d, want %d", w.partition(), want)
		}
	}
}

func (w *world) partition() int {
	s, err := w.cluster.Kube.AppsV1().StatefulSets(w.ns).Get(context.Background(), "shop", metav1.GetOptions{})
	if err != nil || s.Spec.UpdateStrategy.RollingUpdate == nil || s.Spec.UpdateStrategy.RollingUpdate.Partition == nil {
		return 0
	}
	return int(*s.Spec.UpdateStrategy.RollingUpdate.Partition)
}

// TestStatefulSetIsAdopted adopts a StatefulSet of kubectl without a restart, and stages its next version.
func TestStatefulSetIsAdopted(t *testing.T) {
	t.Parallel()
	app := set("replicas: 3", "OrderedReady", "", "setWeight: 33", "pause: {}")
	w := newWorld(t, app.files())
	w.kubectl("apply", "-f", w.repo.Work+"/apps/"+w.app+"/shop.yaml")
	w.awaitSplit(0, 3, 0, "v1", "")
	mark := w.pods.mark()
	w.start()
	w.awaitHealthy(w.repo.Head())
	if n := w.pods.count("v1"); n != 3 || w.pods.lowest(mark) < 3 {
		t.Errorf("adopted, %d pods of v1 were started in all, and ready ones fell to %d", n, w.pods.lowest(mark))
	}
	commit := w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	w.awaitSplit(0, 3, 2, "v2", "v1")
	w.repo.Revert(commit)
	w.await("healthy again", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
	w.awaitSplit(0, 3, 0, "v1", "")
	w.pods.wantStarted(t, "v1", 4) // 3 and 1 again
}

// TestStatefulSetsServicesArePinned checks the selector of the new version's Service at a step.
func TestStatefulSetsServicesArePinned(t *testing.T) {
	t.Parallel()
	app := set("replicas: 3", "Parallel", "", "setWeight: 33", "pause: {}")
	files := app.files()
	files["rollout.yaml"] = strings.Replace(files["rollout.yaml"], "canary:\n", "canary:\n      canaryService: shop-preview\n", 1)
	w := newWorld(t, files).start()
	w.awaitHealthy(w.repo.Head())
	next := app.at("v2").files()
	next["rollout.yaml"] = files["rollout.yaml"]
	w.push("v2", next)
	w.awaitStep(1, rollout.Paused)
	w.awaitSplit(0, 3, 2, "v2", "v1")
	want := w.statefulSet().Status.UpdateRevision
	deadline := time.Now().Add(timeout)
	for {
		s, err := w.cluster.Kube.CoreV1().Services(w.ns).Get(context.Background(), "shop-preview", metav1.GetOptions{})
		must(t, err)
		if s.Spec.Selector["controller-revision-hash"] == want {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the Service of the new version selects %v, want %s", s.Spec.Selector, want)
		}
		time.Sleep(glance)
	}
}

func (w *world) statefulSet() *appsv1.StatefulSet {
	w.t.Helper()
	s, err := w.cluster.Kube.AppsV1().StatefulSets(w.ns).Get(context.Background(), "shop", metav1.GetOptions{})
	must(w.t, err)
	return s
}
