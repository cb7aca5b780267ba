package e2e

import (
	"fmt"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// shared is the expected number of pods of each version at a step, for n replicas.
type shared struct{ n, stable, canary int }

func (s shared) pods() map[string]int { return map[string]int{"v1": s.stable, "v2": s.canary} }

// TestTheShareServesAtAnySize scales a Deployment up and down at a paused step, as an autoscaler does. After each change, both versions
// have the expected numbers of pods. During a change from n to m replicas, about three quarters of min(n, m) pods stay ready.
func TestTheShareServesAtAnySize(t *testing.T) {
	for name, tc := range map[string]struct {
		strategy string
		extra    string
		table    []shared
	}{
		"surge": {canary("scaling: surge", "setWeight: 10", "pause: {}"), "", []shared{
			{2, 2, 1}, {20, 20, 2}, {3, 3, 1}, {10, 10, 1}, {1, 1, 1}, {8, 8, 1}, {150, 150, 15}, {10, 10, 1},
		}},
		"surge at 20 %":              {canary("scaling: surge", "setWeight: 20", "pause: {}"), "", []shared{{10, 10, 2}, {20, 20, 4}, {5, 5, 1}}},
		"in place, the default room": {canary("", "setWeight: 20", "pause: {}"), "", []shared{{10, 8, 2}, {20, 16, 4}, {5, 4, 1}}},
		"in place": {canary("", "setWeight: 40", "pause: {}"),
			"  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n", []shared{
				{10, 6, 4}, {7, 5, 3}, {3, 2, 1}, {10, 6, 4}, {1, 1, 1}, {2, 2, 1}, {10, 6, 4}, {150, 90, 60}, {3, 2, 1},
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := shop{version: "v1", strategy: tc.strategy, extra: tc.extra}
			w := running(t, app.files())
			last := tc.table[0]
			w.kubectl("scale", "deployment/shop", fmt.Sprint("--replicas=", last.n))
			w.pods.awaitReady(t, map[string]int{"v1": last.n})
			commit := w.stage("v2", app.at("v2").files())
			w.pods.awaitReady(t, last.pods())
			for _, next := range tc.table[1:] {
				mark, begin := w.pods.mark(), time.Now()
				w.kubectl("scale", "deployment/shop", fmt.Sprint("--replicas=", next.n))
				w.pods.awaitReady(t, next.pods())
				t.Logf("%d to %d replicas: as the table has it after %s", last.n, next.n, time.Since(begin).Round(time.Millisecond))
				least := min(last.n, next.n)
				w.pods.wantReady(t, mark, least-least/4-1)
				last = next
			}
			w.pods.stays(t, 300*time.Millisecond)
			w.awaitPause(1)
			w.promote().awaitHealthy(commit)
			w.pods.awaitReady(t, map[string]int{"v2": last.n})
		})
	}
}

// TestTheShareIsPutBack changes the pods of a paused release by other means than scaling. Each time, the pods return to the step's share.
func TestTheShareIsPutBack(t *testing.T) {
	t.Parallel()
	for _, scaling := range []string{"surge", "inPlace"} {
		for name, tc := range map[string]struct {
			meddle func(w *world, app shop)
			weight int
		}{
			"a smaller step": {func(w *world, app shop) {
				app.strategy = canary("scaling: "+scaling, "setWeight: 10", "pause: {}")
				w.push("careful", app.at("v2").files())
			}, 10},
			"the strategy by hand": {func(w *world, _ shop) {
				w.kubectl("patch", "deployment/shop", "--type=merge", "-p",
					`{"spec":{"strategy":{"rollingUpdate":{"maxSurge":"70%","maxUnavailable":"25%"}}}}`)
				time.Sleep(200 * time.Millisecond)
			}, 40},
			"thawed while gitrollout was stopped": {func(w *world, _ shop) {
				w.stop()
				w.kubectl("patch", "deployment/shop", "--type=merge", "-p",
					`{"spec":{"minReadySeconds":0,"progressDeadlineSeconds":600,"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"}}}}`)
				w.pods.awaitReady(w.t, map[string]int{"v2": 10})
				w.start()
			}, 40},
			"the image by hand":    {func(w *world, _ shop) { w.kubectl("set", "image", "deployment/shop", "shop=shop:byhand") }, 40},
			"a deleted Deployment": {func(w *world, _ shop) { w.kubectl("delete", "deployment/shop", "--wait=false") }, 40},
			"deleted ReplicaSets":  {func(w *world, _ shop) { w.kubectl("delete", "replicasets", "--all", "--wait=false") }, 40},
			"more replicas in Git": {func(w *world, app shop) { app.replicas = "replicas: 10"; w.push("same", app.at("v2").files()) }, 40},
		} {
			t.Run(scaling+"/"+name, func(t *testing.T) {
				t.Parallel()
				app := newShop(10, "scaling: "+scaling, "setWeight: 40", "pause: {}")
				w := running(t, app.files())
				w.stage("v2", app.at("v2").files())
				rest := func(weight int) map[string]int {
					at := map[string]int{"v1": 10, "v2": weight / 10}
					if scaling == "inPlace" {
						at["v1"] -= weight / 10
					}
					return at
				}
				w.pods.awaitReady(t, rest(40))
				tc.meddle(w, app)
				time.Sleep(300 * time.Millisecond)
				w.pods.awaitReady(t, rest(tc.weight))
				w.awaitPause(1)
				w.promote()
				w.await("it is healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Release == nil })
				w.pods.awaitReady(t, map[string]int{"v2": 10})
			})
		}
	}
}
