package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

// switchesAlone is a blue-green strategy that promotes automatically after a second.
var switchesAlone = strings.Replace(blueGreen, "autoPromotionEnabled: false", "autoPromotionSeconds: 1", 1)

// TestPushesInEveryPhase pushes forty versions; every tenth push is an earlier version. Before the next push, the
// test waits for a random number of ready pods, possibly none. At most two versions have ready pods at any time, and
// at least three quarters of the replicas stay ready.
func TestPushesInEveryPhase(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]string{
		"surge":          canary("scaling: surge", "setWeight: 25", "pause: {duration: 1s}", "setWeight: 50", "pause: {duration: 1s}"),
		"surge at once":  canary("scaling: surge", "setWeight: 50"),
		"in place":       canary("", "setWeight: 25", "pause: {duration: 1s}", "setWeight: 50", "pause: {duration: 1s}"),
		"in place, late": canary("", "setWeight: 75", "pause: {duration: 2s}"),
		"blue-green":     switchesAlone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tier.Rows(t, "surge")
			const replicas = 8
			app := shop{version: "v0", replicas: fmt.Sprint("replicas: ", replicas), strategy: strategy}
			w := running(t, app.files())
			mark, rng := w.pods.mark(), rand.New(rand.NewPCG(1, uint64(len(name))))
			version, commit := "v0", ""
			for i := 1; i <= 40; i++ {
				if version = fmt.Sprint("v", i); i%10 == 0 {
					version = fmt.Sprint("v", rng.IntN(i))
				}
				commit = w.push(version, app.at(version).files())
				least := rng.IntN(replicas+4) - 3 // in a third of the cases, the next push does not wait
				w.until(fmt.Sprintf("%d ready pods of %s", least, version), func() bool { return w.pods.last().ready[version] >= least })
			}
			w.finish(commit, map[string]int{version: replicas})
			most, released := 0, map[string]bool{}
			for _, s := range w.pods.since(mark) {
				for v := range s.ready {
					released[v] = true
				}
				if most = max(most, len(s.ready)); len(s.ready) > 2 {
					t.Fatalf("after %s three versions have ready pods: %v", s.at, s.ready)
				}
			}
			w.pods.wantReady(t, mark, replicas-replicas/4)
			if most != 2 || len(released) < 5 {
				t.Errorf("%d versions had ready pods in all, and at most %d at once: the pushes show too little", len(released), most)
			}
		})
	}
}

// TestUsersKeepPodsThroughDocuments replaces each strategy by every other strategy: before the push of v2, in the push of v2, and during
// the release of v2. At every resource version of the cluster, the Service shop selects at least three ready pods.
func TestUsersKeepPodsThroughDocuments(t *testing.T) {
	t.Parallel()
	strategies := map[string]string{
		"none":       "",
		"blue-green": blueGreen,
		"in place":   canary("", "setWeight: 25", "pause: {}"),
		"surge":      canary("scaling: surge", "setWeight: 25", "pause: {}"),
		"routed": canary("stableService: shop\ncanaryService: shop-preview\ntrafficRouting: {nginx: {stableIngress: shop}}",
			"setWeight: 25", "pause: {}"),
	}
	const replicas = 4
	files := func(version, strategy string) map[string]string {
		return shop{version: version, replicas: fmt.Sprint("replicas: ", replicas), strategy: strategies[strategy], plain: strategy == "none",
			more: shopIngress}.files()
	}
	for from := range strategies {
		for to := range strategies {
			for _, when := range []string{"before", "with", "in flight"} {
				if from == to || from == "none" && when == "in flight" {
					continue
				}
				t.Run(from+" to "+to+" "+when, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, files("v1", from)).start()
					w.await("v1 runs", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
					w.pods.awaitReady(t, map[string]int{"v1": replicas})
					stop := w.watchSelected("shop")
					switch when {
					case "before":
						w.awaitHeadSource(w.push("another strategy", files("v1", to)))
					case "in flight":
						w.stage("v2", files("v2", from))
						w.awaitHeadSource(w.push("another strategy", files("v2", to)))
					}
					w.finish(w.push("v2", files("v2", to)), map[string]int{"v2": replicas})
					w.finish(w.push("v3", files("v3", to)), map[string]int{"v3": replicas})
					if low, at := stop(); low < replicas-1 {
						t.Errorf("Service shop selected %d ready pods, want at least %d: %s", low, replicas-1, at)
					}
				})
			}
		}
	}
}

// TestFixReachesABrokenVersion checks that a fix is fully released while no stable pod is ready. Only a StatefulSet needs `promote --full`.
func TestFixReachesABrokenVersion(t *testing.T) {
	t.Parallel()
	for name, app := range map[string]shop{
		"surge":       {replicas: "replicas: 4", strategy: canary("scaling: surge", "setWeight: 25", "pause: {duration: 1s}")},
		"in place":    {replicas: "replicas: 4", strategy: canary("", "setWeight: 25", "pause: {duration: 1s}")},
		"blue-green":  {replicas: "replicas: 4", strategy: switchesAlone},
		"StatefulSet": set("replicas: 3", "OrderedReady", "", "setWeight: 34", "pause: {duration: 1s}"),
		"DaemonSet":   agents("", "setWeight: 34", "pause: {duration: 1s}"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := running(t, app.at("v1-unready5s").files())
			w.awaitPods("no pod is ready", func(s sample) bool { return total(s.all) > 0 && total(s.ready) == 0 })
			commit := w.push("v2", app.at("v2").files())
			if app.kind == "StatefulSet" { // the StatefulSet controller waits until lower ordinals are ready
				w.await("at its step", func(s rollout.State) bool { return s.Release != nil && s.Release.Commit == commit })
				w.ran("promote", "--full", w.app)
			}
			w.awaitHealthy(commit)
			w.awaitPods("all pods are of the fix", func(s sample) bool {
				return total(s.ready) == total(s.all) && s.ready["v2"] == total(s.all)
			})
		})
	}
}

// finish promotes paused releases until the app has no release, and exactly the given pods are ready.
func (w *world) finish(commit string, pods map[string]int) {
	w.t.Helper()
	w.until(fmt.Sprintf("exactly the pods %v at %s", pods, commit), func() bool {
		s := w.state()
		if s.Release != nil && s.Phase == rollout.Paused {
			_, _ = w.cli("promote", "--full", w.app) // refused if the app has advanced meanwhile
		}
		return s.Release == nil && s.Draining == nil && maps.Equal(w.pods.last().ready, pods)
	})
}

// awaitHeadSource waits until the commit is the state's source, or the app is held (State.Held) because of the commit.
func (w *world) awaitHeadSource(commit string) {
	w.t.Helper()
	w.await("the commit is followed or held", func(s rollout.State) bool {
		return s.Source == commit || s.Held != nil && s.Held.Commit == commit
	})
}

// watchSelected starts to record Services and pods. The returned function stops the recording, and returns the lowest number of ready pods
// that the Service selected at any time. The returned text describes the selector and the ready pods at that time.
func (w *world) watchSelected(service string) (stop func() (low int, at string)) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	var events []watch.Event
	var watching sync.WaitGroup
	record := func(from watch.Interface, err error) {
		must(w.t, err)
		watching.Go(func() {
			for e := range from.ResultChan() { // the existing objects come first
				mu.Lock()
				events = append(events, e)
				mu.Unlock()
			}
		})
	}
	core := w.cluster.Kube.CoreV1()
	record(core.Services(w.ns).Watch(ctx, metav1.ListOptions{}))
	record(core.Pods(w.ns).Watch(ctx, metav1.ListOptions{}))
	begin, err := core.ConfigMaps(w.ns).List(ctx, metav1.ListOptions{})
	must(w.t, err)
	return func() (int, string) {
		w.pods.mark()
		cancel()
		watching.Wait()
		return lowestSelected(events, service, revisionOf(begin))
	}
}

func lowestSelected(events []watch.Event, service string, begin int) (low int, at string) {
	slices.SortStableFunc(events, func(a, b watch.Event) int { return revisionOf(a.Object) - revisionOf(b.Object) })
	pods, selector := map[string]*corev1.Pod{}, labels.Nothing()
	low = -1
	for _, e := range events {
		switch o := e.Object.(type) {
		case *corev1.Service:
			if o.Name == service {
				selector = labels.SelectorFromSet(o.Spec.Selector)
			}
		case *corev1.Pod:
			if pods[o.Name] = o; e.Type == watch.Deleted || o.DeletionTimestamp != nil {
				delete(pods, o.Name)
			}
		}
		if revisionOf(e.Object) < begin {
			continue
		}
		n, all := 0, map[string]int{}
		for _, pod := range pods {
			if isReady(pod) {
				all[versionOf(pod)]++
				if selector.Matches(labels.Set(pod.Labels)) {
					n++
				}
			}
		}
		if low < 0 || n < low {
			low, at = n, fmt.Sprintf("selector %s, ready pods %v", selector, all)
		}
	}
	return low, at
}

// revisionOf returns the resource version of an object or of a list as a number.
func revisionOf(o runtime.Object) int {
	meta, is := o.(metav1.Common)
	if !is {
		return 0
	}
	n, _ := strconv.Atoi(meta.GetResourceVersion())
	return n
}
