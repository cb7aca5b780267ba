package e2e

import (
	"context"
	"strings"
	"testing"

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

// TestBlueGreen checks blue-green releases with 1 to 10 replicas. Before the switch, the active Service selects only
// pods of the old version. After the switch, it selects only pods of the new version.
func TestBlueGreen(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"1": 1, "3": 3, "5": 5, "10": 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tier.Rows(t, "5")
			app := shop{version: "v1", replicas: "replicas: " + name, strategy: blueGreen}
			w := running(t, app.files())
			w.awaitServes("shop", "v1", n)
			mark := w.pods.mark()
			commit := w.stage("v2", app.at("v2").files())
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
			w.pods.wantStarted(t, map[string]int{"v2": n, "v1": n})
		})
	}
}

// TestBlueGreenAbort aborts a release before its switch, and reverts another release after its switch. Neither rollback starts a pod of v1.
func TestBlueGreenAbort(t *testing.T) {
	t.Parallel()
	app := shop{version: "v1", replicas: "replicas: 4",
		strategy: strings.Replace(blueGreen, "scaleDownDelaySeconds: 2", "scaleDownDelaySeconds: 30", 1)}
	w := running(t, app.files())
	w.stage("v2", app.at("v2").files())
	w.abort()
	w.pods.awaitReady(t, map[string]int{"v1": 4})

	third := w.stage("v3", app.at("v3").files())
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
	w.pods.wantStarted(t, map[string]int{"v1": 4}) // the rollback started no pod: the old pods still existed
}

// awaitServes waits until a Service's ready endpoints are exactly n pods of one version.
func (w *world) awaitServes(service, version string, n int) {
	w.t.Helper()
	awaitEqual(w.t, "ready pods behind Service "+service, map[string]int{version: n}, func() map[string]int {
		return w.versionsOf(readyPods(w.endpoints(service)))
	})
}

func (w *world) endpoints(service string) []discoveryv1.EndpointSlice {
	w.t.Helper()
	list, err := w.cluster.Kube.DiscoveryV1().EndpointSlices(w.ns).List(context.Background(),
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	must(w.t, err)
	return list.Items
}

// readyPods returns the names of the ready pods in EndpointSlices.
func readyPods(slices []discoveryv1.EndpointSlice) (names []string) {
	for _, slice := range slices {
		for _, e := range slice.Endpoints {
			if e.TargetRef != nil && e.Conditions.Ready != nil && *e.Conditions.Ready {
				names = append(names, e.TargetRef.Name)
			}
		}
	}
	return names
}

func (w *world) versionsOf(pods []string) map[string]int {
	w.pods.mu.Lock()
	defer w.pods.mu.Unlock()
	got := map[string]int{}
	for _, name := range pods {
		if pod := w.pods.live[name]; pod != nil {
			got[versionOf(pod)]++
		}
	}
	return got
}
