package e2e

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestAutoscalerLeavesGitInFlight checks a commit that replaces the autoscaler by a fixed number of replicas during a release. gitrollout
// deletes the autoscaler immediately, because the autoscaler would override this number. An abort restores the autoscaler.
func TestAutoscalerLeavesGitInFlight(t *testing.T) {
	t.Parallel()
	const hpa = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: shop}\n" +
		"spec: {minReplicas: 8, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}}\n"
	app := func(version, replicas string) map[string]string {
		s := shop{version: version, replicas: replicas, strategy: canary("", "setWeight: 25", "pause: {}")}
		if replicas == "" {
			s.more = map[string]string{"hpa.yaml": hpa}
		}
		return s.files()
	}
	w := running(t, app("v1", ""))
	w.pods.awaitReady(t, map[string]int{"v1": 8})
	w.stage("v2", app("v2", ""))
	w.pods.awaitReady(t, map[string]int{"v1": 6, "v2": 2})
	w.push("a fixed number", app("v2", "replicas: 3"))
	w.await("the autoscaler is pruned", func(s rollout.State) bool {
		return s.Release != nil && !strings.Contains(fmt.Sprint(s.Inventory), "HorizontalPodAutoscaler")
	})
	w.pods.awaitReady(t, map[string]int{"v1": 3, "v2": 1}) // 3 replicas and one surge pod; 25 % of the replicas is one pod
	if v1, v2 := w.pods.count("v1"), w.pods.count("v2"); v1 > 10 || v2 > 4 {
		t.Errorf("%d pods of v1 and %d of v2 were started: they were scaled up and down", v1, v2)
	}
	w.abort()
	w.pods.awaitReady(t, map[string]int{"v1": 8})
}
