package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// sizes go from one pod, which cannot be shared, to more than a hundred, where a percent is more than one pod.
var sizes = []int{1, 2, 3, 10, 150}

// TestUsersMoveForwardAtAnySize releases a version at each size, and pushes the next one while the previous version's
// pods are kept. Users stay on their version until the promotion, and never have fewer pods.
func TestUsersMoveForwardAtAnySize(t *testing.T) {
	t.Parallel()
	for name, strategy := range keptLong {
		for _, n := range sizes {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				t.Parallel()
				files := func(version string, n int) map[string]string {
					all := shop{version: version, replicas: fmt.Sprint("replicas: ", n), strategy: strategy}.files()
					all["kustomization.yaml"] += "- ingress.yaml\n"
					all["ingress.yaml"] = shopIngress
					return all
				}
				w := newWorld(t, files("v0", 1)).start()
				w.awaitHealthy(w.repo.Head())
				w.push("old", files("old", n)) // of another size, too
				w.awaitStep(1, rollout.Paused)
				w.promote()
				w.awaitServes("shop", "old", n)
				w.await("all users on it", func(s rollout.State) bool { return s.Phase == rollout.Healthy })

				mark, stop := w.pods.mark(), w.watchUsers("shop")
				commit := w.push("next", files("next", n))
				w.awaitStep(1, rollout.Paused)
				w.awaitServes("shop", "old", n)
				if served := stop(); !slices.Equal(served, []string{"old"}) {
					t.Errorf("before it was promoted users saw %v, want old alone", served)
				}
				stop = w.watchUsers("shop")
				w.promote()
				w.awaitServes("shop", "next", n)
				w.await("it is stable", func(s rollout.State) bool {
					return s.Phase == rollout.Healthy && s.Stable.Commit == commit
				})
				served := stop()
				if served = slices.DeleteFunc(served, func(v string) bool { return v == "old" || v == "next" }); len(served) > 0 {
					t.Errorf("while it was promoted users saw %v, too", served)
				}
				w.pods.wantReady(t, mark, n)
			})
		}
	}
}

// TestReplicasAreTheScalersAtAnySize has an Argo Rollout without replicas: an autoscaler's number stays, at rest and in
// flight. The step's share is relative to it, and an abort removes no pod.
func TestReplicasAreTheScalersAtAnySize(t *testing.T) {
	t.Parallel()
	files := func(version string) map[string]string {
		return map[string]string{
			"kustomization.yaml": "resources: [rollout.yaml]\n",
			"rollout.yaml": `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: "shop:` + version + `"}]}
  strategy: {canary: {maxSurge: 1, maxUnavailable: 0, steps: [{setWeight: 40}, {pause: {}}]}}
`,
		}
	}
	w := newWorld(t, files("v1")).start()
	w.awaitHealthy(w.repo.Head())
	scale := func(n int, want map[string]int) {
		t.Helper()
		w.kubectl("scale", "deployment/shop", fmt.Sprint("--replicas=", n))
		w.pods.awaitRest(t, want)
	}
	for _, n := range sizes {
		scale(n, map[string]int{"v1": n})
	}
	scale(3, map[string]int{"v1": 3})
	w.push("v2", files("v2"))
	w.awaitStep(1, rollout.Paused)
	for _, at := range []shared{{1, 1, 1}, {2, 2, 1}, {3, 2, 1}, {10, 6, 4}, {150, 90, 60}} {
		scale(at.n, at.pods())
	}
	w.ran("abort", w.app)
	w.pods.awaitRest(t, map[string]int{"v1": 150})
}

// awaitRest waits until exactly these pods are ready, and no pod is created or deleted for a second.
func (p *podWatch) awaitRest(t *testing.T, want map[string]int) {
	t.Helper()
	for began := time.Now(); time.Since(began) < timeout; {
		p.awaitReady(t, want)
		mark := p.mark()
		time.Sleep(time.Second)
		moved := func(s sample) bool { return !maps.Equal(s.all, want) || !maps.Equal(s.ready, want) }
		if !slices.ContainsFunc(p.since(mark), moved) {
			return
		}
	}
	t.Fatalf("they do not come to rest at %v: %v", want, p.now())
}
