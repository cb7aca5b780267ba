package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// sizes has numbers of replicas. Two versions cannot share one replica, and one percent of 150 replicas is more than one pod.
var sizes = []int{1, 2, 3, 10, 150}

// TestUsersMoveForwardAtAnySize releases a version for each of the sizes, and pushes the next version while older pods still exist. Until
// the next version's promotion, users reach only the previous version. The number of ready pods is never below the number of replicas.
func TestUsersMoveForwardAtAnySize(t *testing.T) {
	t.Parallel()
	for name, strategy := range keptLong {
		for _, n := range sizes {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				t.Parallel()
				files := func(version string, n int) map[string]string {
					return shop{version: version, replicas: fmt.Sprint("replicas: ", n), strategy: strategy, more: shopIngress}.files()
				}
				w := running(t, files("v0", 1))
				w.stage("old", files("old", n)) // the push also changes the number of replicas
				w.promote()
				w.awaitServes("shop", "old", n)
				w.await("all users on it", func(s rollout.State) bool { return s.Phase == rollout.Healthy })

				mark, former, stop := w.pods.mark(), w.pods.count("v0"), w.watchUsers("shop")
				commit := w.stage("next", files("next", n))
				w.awaitServes("shop", "old", n)
				compare.CheckNamed(t, "versions that users saw before the promotion", []string{"old"}, stop())
				stop = w.watchUsers("shop")
				w.promote()
				w.awaitServes("shop", "next", n)
				w.awaitHealthy(commit)
				others := slices.DeleteFunc(stop(), func(v string) bool { return v == "old" || v == "next" })
				if len(others) > 0 {
					t.Errorf("while it was promoted users saw %v, too", others)
				}
				w.pods.wantReady(t, mark, n)
				w.pods.wantStarted(t, map[string]int{"v0": former}) // no pod of the version before "old" returns
			})
		}
	}
}

// TestReplicasAreTheScalersAtAnySize checks an Argo Rollout without spec.replicas. gitrollout keeps an autoscaler's number of replicas
// between releases, at a step and after an abort. The step's share is relative to this number.
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
	w := running(t, files("v1"))
	scale := func(n int, want map[string]int) {
		t.Helper()
		w.kubectl("scale", "deployment/shop", fmt.Sprint("--replicas=", n))
		w.pods.awaitRest(t, want)
	}
	for _, n := range sizes {
		scale(n, map[string]int{"v1": n})
	}
	scale(3, map[string]int{"v1": 3})
	w.stage("v2", files("v2"))
	for _, at := range []shared{{1, 1, 1}, {2, 2, 1}, {3, 2, 1}, {10, 6, 4}, {150, 90, 60}} {
		scale(at.n, at.pods())
	}
	w.ran("abort", w.app)
	w.pods.awaitRest(t, map[string]int{"v1": 150})
}

// awaitRest waits until exactly the given numbers of pods are ready, and no pod is created or deleted for a second.
func (p *podWatch) awaitRest(t *testing.T, want map[string]int) {
	t.Helper()
	eventually(t, fmt.Sprint("at rest at ", want), func() bool {
		p.awaitReady(t, want)
		mark := p.mark()
		time.Sleep(time.Second)
		moved := func(s sample) bool { return !maps.Equal(s.all, want) || !maps.Equal(s.ready, want) }
		return !slices.ContainsFunc(p.since(mark), moved)
	}, func() any { return p.last() })
}
