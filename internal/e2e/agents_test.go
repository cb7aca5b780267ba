package e2e

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/kruisetest"
	"gitrollout.dev/gitrollout/rollout"
)

// advancedAgents returns the test app with an OpenKruise DaemonSet as its workload, and with the given canary steps.
func advancedAgents(steps ...string) shop {
	return shop{kind: "DaemonSet", api: "apps.kruise.io/v1alpha1", version: "v1", strategy: canary("", steps...),
		extra: "  revisionHistoryLimit: 10\n  updateStrategy: {type: RollingUpdate, rollingUpdate: {rollingUpdateType: Standard, " +
			"maxUnavailable: 1}}\n"}
}

func (w *world) agentPartition() string {
	return w.kubectl("get", "daemonsets.apps.kruise.io", "shop", "-o", "jsonpath={.spec.updateStrategy.rollingUpdate.partition}")
}

// TestAdvancedDaemonSet checks that an Advanced DaemonSet created by kubectl is adopted without restarting its pods. At each step, Kruise
// updates the step's number of nodes. At most one node lacks a ready pod at any time. A revert and an abort each roll the release back.
func TestAdvancedDaemonSet(t *testing.T) {
	t.Parallel()
	app := advancedAgents("setWeight: 20", "pause: {}", "setCanaryScale: {replicas: 5}", "pause: {}")
	w := newKruise(t, app)
	w.apply(app.files()["shop.yaml"])
	w.awaitClones(10, 0)
	w.start().awaitHealthy(w.repo.Head())
	w.pods.wantStarted(t, map[string]int{"v1": 10})
	mark := w.pods.mark()
	commit := w.stage("v2", app.at("v2").files())
	w.awaitClones(8, 2)
	w.pods.stays(t, 500*time.Millisecond)
	compare.CheckNamed(t, "the partition at 20 % of 10 nodes", "8", w.agentPartition())
	compare.Contains(t, w.ran("get", w.app), "DaemonSet.apps.kruise.io")
	w.onlyOn("v2", []string{"node-8", "node-9"}) // Kruise updates nodes in descending order of their names
	w.promote().awaitPause(3)
	w.awaitClones(5, 5)
	w.promote().awaitHealthy(commit)
	w.awaitClones(0, 10)
	compare.CheckNamed(t, "the partition after the promotion", "0", w.agentPartition())
	w.pods.wantStarted(t, map[string]int{"v1": 10, "v2": 10})
	w.pods.wantReady(t, mark, 9)

	commit = w.stage("v3", app.at("v3").files())
	w.pods.awaitReady(t, map[string]int{"v2": 8, "v3": 2})
	w.revert(commit)
	w.pods.awaitReady(t, map[string]int{"v2": 10})
	w.pods.wantStarted(t, map[string]int{"v2": 12, "v3": 2}) // the rollback started v2 again on 2 of 10 nodes

	w.push("v4 crashes", app.at("v4-crash").files())
	w.await("the broken pod", func(rollout.State) bool { return w.pods.count("v4-crash") == 1 })
	w.abort()
	w.pods.awaitReady(t, map[string]int{"v2": 10})
	w.pods.wantStarted(t, map[string]int{"v4-crash": 1})
}

// TestAdvancedDaemonSetOfEachType checks an update with maxSurge and an in-place update. With maxSurge, each node always has a ready pod.
// An in-place update creates no pod. Both updates stop at each step's number of nodes.
func TestAdvancedDaemonSetOfEachType(t *testing.T) {
	if !kruisetest.IsReal() {
		t.Skip("its controller is Kruise's own: make test-peers")
	}
	for name, test := range map[string]struct {
		update  string
		inPlace bool // whether the update keeps the pods
		low     int  // minimum number of ready pods
	}{
		"Surging": {"rollingUpdateType: Standard, maxSurge: 2, maxUnavailable: 0", false, 10},
		"InPlace": {"rollingUpdateType: InPlaceIfPossible, maxUnavailable: 1", true, 9},
	} {
		t.Run(name, func(t *testing.T) {
			app := advancedAgents("setWeight: 20", "pause: {}", "setCanaryScale: {replicas: 5}", "pause: {}")
			app.extra = "  revisionHistoryLimit: 10\n  updateStrategy: {type: RollingUpdate, rollingUpdate: {" + test.update + "}}\n"
			app.pod = "      readinessGates: [{conditionType: InPlaceUpdateReady}]\n" // Kruise's webhook would add this gate
			w := newKruise(t, app)
			w.start().awaitHealthy(w.repo.Head())
			w.awaitClones(10, 0)
			pods := func() string {
				return w.kubectl("get", "pods", "-l", "app=shop", "-o", "jsonpath={.items[*].metadata.uid}")
			}
			before, mark := pods(), w.pods.mark()
			commit := w.stage("v2", app.at("v2").files())
			w.awaitClones(8, 2)
			w.pods.stays(t, 500*time.Millisecond)
			w.promote().awaitPause(3)
			w.awaitClones(5, 5)
			w.promote().awaitHealthy(commit)
			w.awaitClones(0, 10)
			if same := pods() == before; same != test.inPlace || w.pods.lowest(mark) < test.low {
				t.Errorf("its pods are the same: %t; ready ones fell to %d, want %d", same, w.pods.lowest(mark), test.low)
			}
			w.revert(w.stage("v3", app.at("v3").files()))
			w.awaitClones(0, 10)
		})
	}
}
