package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

const blueGreen = `    blueGreen:
      activeService: shop
      previewService: shop-preview
      autoPromotionEnabled: false
      scaleDownDelaySeconds: 2
      abortScaleDownDelaySeconds: 1
`

// TestBlueGreen switches at each size: the active Service selects only the old version before the switch and only the
// new one afterwards.
func TestBlueGreen(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"1": 1, "3": 3, "5": 5, "10": 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tier.Rows(t, "5")
			app := shop{version: "v1", replicas: "replicas: " + name, strategy: blueGreen}
			w := newWorld(t, app.files()).start()
			w.awaitHealthy(w.repo.Head())
			w.awaitServes("shop", "v1", n)
			mark := w.pods.mark()
			commit := w.push("v2", app.at("v2").files())
			w.awaitStep(1, rollout.Paused)
			w.pods.awaitReady(t, map[string]int{"v1": n, "v2": n})
			w.awaitServes("shop", "v1", n)
			w.awaitServes("shop-preview", "v2", n)
			w.promote()
			w.await("switched, the old version kept", func(s rollout.State) bool {
				return s.Draining != nil && s.Phase == rollout.Healthy
			})
			w.awaitServes("shop", "v2", n)
			w.awaitHealthy(commit)
			w.pods.awaitReady(t, map[string]int{"v2": n})
			w.pods.wantReady(t, mark, n)
			w.pods.wantStarted(t, "v2", n)
			w.pods.wantStarted(t, "v1", n)
		})
	}
}

// TestBlueGreenAbort aborts before the switch, and reverts after it.
func TestBlueGreenAbort(t *testing.T) {
	t.Parallel()
	app := shop{version: "v1", replicas: "replicas: 4",
		strategy: strings.Replace(blueGreen, "scaleDownDelaySeconds: 2", "scaleDownDelaySeconds: 30", 1)}
	w := newWorld(t, app.files()).start()
	w.awaitHealthy(w.repo.Head())
	w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	w.ran("abort", w.app)
	w.await("degraded", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	w.pods.awaitReady(t, map[string]int{"v1": 4})

	third := w.push("v3", app.at("v3").files())
	w.awaitStep(1, rollout.Paused)
	w.promote()
	w.await("switched", func(s rollout.State) bool {
		return s.Draining != nil && s.Phase == rollout.Healthy
	})
	w.awaitServes("shop", "v3", 4)
	w.repo.Pull()
	w.repo.Git("checkout", "-q", third+"~1", "--", "apps")
	w.push("back to the files before v3", app.at("v1").files())
	w.await("healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
	w.awaitServes("shop", "v1", 4)
	w.pods.wantStarted(t, "v1", 4) // the old set was still there
}

// awaitServes waits until a Service's ready endpoints are exactly n pods of one version.
func (w *world) awaitServes(service, version string, n int) {
	w.t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		got := w.served(service)
		if len(got) == 1 && got[version] == n {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("Service %s serves %v, want %d of %s", service, got, n, version)
		}
		time.Sleep(glance)
	}
}

func (w *world) served(service string) map[string]int {
	w.t.Helper()
	slices, err := w.cluster.Kube.DiscoveryV1().EndpointSlices(w.ns).List(context.Background(),
		metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	must(w.t, err)
	return w.readyIn(slices.Items)
}

// readyIn counts the ready endpoints of each version in slices.
func (w *world) readyIn(slices []discoveryv1.EndpointSlice) map[string]int {
	w.pods.mu.Lock()
	defer w.pods.mu.Unlock()
	got := map[string]int{}
	for _, slice := range slices {
		for _, e := range slice.Endpoints {
			if e.TargetRef == nil || e.Conditions.Ready == nil || !*e.Conditions.Ready {
				continue
			}
			if pod := w.pods.live[e.TargetRef.Name]; pod != nil {
				got[versionOf(pod)]++
			}
		}
	}
	return got
}

func contains(s, part string) bool { return strings.Contains(s, part) }
