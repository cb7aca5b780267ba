package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/kruisetest"
	"gitrollout.dev/gitrollout/rollout"
)

// advancedAgents returns the shop as OpenKruise's DaemonSet.
func advancedAgents(steps ...string) shop {
	return shop{kind: "DaemonSet", api: "apps.kruise.io/v1alpha1", version: "v1", strategy: canary("", steps...),
		extra: "  revisionHistoryLimit: 10\n  updateStrategy: {type: RollingUpdate, rollingUpdate: {rollingUpdateType: Standard, " +
			"maxUnavailable: 1}}\n"}
}

func (w *world) agentPartition() string {
	return w.kubectl("get", "daemonsets.apps.kruise.io", "shop", "-o", "jsonpath={.spec.updateStrategy.rollingUpdate.partition}")
}

// TestAdvancedDaemonSet adopts an Advanced DaemonSet of kubectl without a restart. The partition updates as many nodes
// as a step asks for, and at most one node is without a ready pod at any time. A reverted and a crashing version are
// rolled back.
func TestAdvancedDaemonSet(t *testing.T) {
	t.Parallel()
	app := advancedAgents("setWeight: 20", "pause: {}", "setCanaryScale: {replicas: 5}", "pause: {}")
	w := newWorld(t, app.files())
	kruisetest.Start(t, w.cluster, w.ns)
	w.kubectl("apply", "-f", w.repo.Work+"/apps/"+w.app+"/shop.yaml")
	w.awaitClones(10, 0)
	w.start()
	w.awaitHealthy(w.repo.Head())
	w.pods.wantStarted(t, "v1", 10)
	mark := w.pods.mark()
	commit := w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	w.awaitClones(8, 2)
	w.pods.stays(t, 500*time.Millisecond)
	if got := w.agentPartition(); got != "8" {
		t.Errorf("at 20 %% of 10 nodes the partition is %q", got)
	}
	if out, err := w.cli("get", w.app); err != nil || !strings.Contains(out, "DaemonSet.apps.kruise.io") {
		t.Errorf("get: %v\n%s", err, out)
	}
	var first []string
	for node, version := range w.nodes() {
		if version == "v2" {
			first = append(first, node)
		}
	}
	slices.Sort(first)
	if want := []string{"node-8", "node-9"}; !slices.Equal(first, want) { // the last ones by name
		t.Errorf("the first nodes are %v, and Kruise takes %v", first, want)
	}
	w.promote()
	w.awaitStep(3, rollout.Paused)
	w.awaitClones(5, 5)
	w.promote()
	w.awaitHealthy(commit)
	w.awaitClones(0, 10)
	if got := w.agentPartition(); got != "0" {
		t.Errorf("promoted, the partition is %q", got)
	}
	if v1, v2, low := w.pods.count("v1"), w.pods.count("v2"), w.pods.lowest(mark); v1 != 10 || v2 != 10 || low < 9 {
		t.Errorf("%d pods of v1 and %d of v2 were started, and ready ones fell to %d; want 10, 10 and 9", v1, v2, low)
	}

	commit = w.push("v3", app.at("v3").files())
	w.awaitStep(1, rollout.Paused)
	w.pods.awaitReady(t, map[string]int{"v2": 8, "v3": 2})
	w.repo.Revert(commit)
	w.await("healthy again", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Release == nil })
	w.pods.awaitReady(t, map[string]int{"v2": 10})
	if v2, v3 := w.pods.count("v2"), w.pods.count("v3"); v2 != 12 || v3 != 2 {
		t.Errorf("a revert at 2 of 10 nodes: %d pods of v2 and %d of v3 were started, want 12 and 2", v2, v3)
	}

	w.push("v4 crashes", app.at("v4-crash").files())
	w.await("the broken pod", func(rollout.State) bool { return w.pods.count("v4-crash") == 1 })
	w.ran("abort", w.app)
	w.await("back at stable", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	w.pods.awaitReady(t, map[string]int{"v2": 10})
	w.pods.wantStarted(t, "v4-crash", 1)
}

// TestAdvancedDaemonSetOfEachType checks each update type. With maxSurge no node is without a ready pod; an in-place
// update creates no pod. Both stop where a step says.
func TestAdvancedDaemonSetOfEachType(t *testing.T) {
	if !kruisetest.IsReal() {
		t.Skip("its controller is Kruise's own: make test-peers")
	}
	for name, test := range map[string]struct {
		update  string
		inPlace bool // pods are not replaced
		low     int  // minimum of ready pods
	}{
		"Surging": {"rollingUpdateType: Standard, maxSurge: 2, maxUnavailable: 0", false, 10},
		"InPlace": {"rollingUpdateType: InPlaceIfPossible, maxUnavailable: 1", true, 9},
	} {
		t.Run(name, func(t *testing.T) {
			app := advancedAgents("setWeight: 20", "pause: {}", "setCanaryScale: {replicas: 5}", "pause: {}")
			app.extra = "  revisionHistoryLimit: 10\n  updateStrategy: {type: RollingUpdate, rollingUpdate: {" + test.update + "}}\n"
			at := func(version string) map[string]string {
				files := app.at(version).files()
				files["shop.yaml"] = strings.Replace(files["shop.yaml"], "      containers:",
					"      readinessGates: [{conditionType: InPlaceUpdateReady}]\n      containers:", 1) // like Kruise's webhook
				return files
			}
			w := newWorld(t, at("v1"))
			kruisetest.Start(t, w.cluster, w.ns)
			w.start()
			w.awaitHealthy(w.repo.Head())
			w.awaitClones(10, 0)
			pods := func() string {
				return w.kubectl("get", "pods", "-l", "app=shop", "-o", "jsonpath={.items[*].metadata.uid}")
			}
			before, mark := pods(), w.pods.mark()
			commit := w.push("v2", at("v2"))
			w.awaitStep(1, rollout.Paused)
			w.awaitClones(8, 2)
			w.pods.stays(t, 500*time.Millisecond)
			w.promote()
			w.awaitStep(3, rollout.Paused)
			w.awaitClones(5, 5)
			w.promote()
			w.awaitHealthy(commit)
			w.awaitClones(0, 10)
			if same := pods() == before; same != test.inPlace || w.pods.lowest(mark) < test.low {
				t.Errorf("its pods are the same: %t; ready ones fell to %d, want %d", same, w.pods.lowest(mark), test.low)
			}
			commit = w.push("v3", at("v3"))
			w.awaitStep(1, rollout.Paused)
			w.repo.Revert(commit)
			w.await("healthy again", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Release == nil })
			w.awaitClones(0, 10)
		})
	}
}
