package e2e

import (
	"fmt"
	"testing"

	"gitrollout.dev/gitrollout/internal/kruisetest"
)

// advancedSets returns the test app with an OpenKruise StatefulSet as its workload.
func advancedSets(replicas string, steps ...string) shop {
	return shop{kind: "StatefulSet", api: "apps.kruise.io/v1beta1", version: "v1", replicas: replicas, strategy: canary("", steps...),
		extra: "  serviceName: shop\n  revisionHistoryLimit: 10\n  podManagementPolicy: OrderedReady\n" +
			"  updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: ReCreate, maxUnavailable: 1, minReadySeconds: 0}}\n"}
}

// gated returns a setWeight step for each weight, with an unlimited pause after each step.
func gated(weights ...int) (steps []string) {
	for _, n := range weights {
		steps = append(steps, fmt.Sprintf("setWeight: %d", n), "pause: {}")
	}
	return steps
}

// TestScenariosOfKruisesCloneSets and the two tests below replay scenarios of OpenKruise Rollouts' tests: releases
// with steps at 20 and 60 %, and at 20, 40, 60, 80 and 100 %; a revert at 20 %; a newer version at 40 %.
func TestScenariosOfKruisesCloneSets(t *testing.T) { kruisesScenarios(t, clones) }

func TestScenariosOfKruisesForStatefulSets(t *testing.T) {
	t.Parallel()
	kruisesScenarios(t, func(replicas string, steps ...string) shop { return set(replicas, "OrderedReady", "", steps...) })
}

func TestScenariosOfKruisesAdvancedStatefulSets(t *testing.T) {
	t.Parallel()
	if !kruisetest.IsReal() {
		t.Skip("its controller is Kruise's own: make test-peers")
	}
	kruisesScenarios(t, advancedSets)
}

func kruisesScenarios(t *testing.T, of func(replicas string, steps ...string) shop) {
	t.Helper()
	app := of("replicas: 5", gated(20, 60)...)
	w := newKruise(t, app)
	w.start().awaitHealthy(w.repo.Head())
	through := func(commit, fresh, stable string, pods ...int) {
		t.Helper()
		for i, n := range pods {
			w.awaitPause(2*i + 1)
			w.pods.awaitReady(t, map[string]int{fresh: n, stable: 5 - n})
			w.promote()
		}
		w.awaitHealthy(commit)
		w.pods.awaitReady(t, map[string]int{fresh: 5})
	}
	through(w.push("v2", app.at("v2").files()), "v2", "v1", 1, 3)
	app.strategy = canary("", gated(20, 40, 60, 80, 100)...)
	through(w.push("v3", app.at("v3").files()), "v3", "v2", 1, 2, 3, 4, 5)

	commit := w.stage("v4", app.at("v4").files())
	w.pods.awaitReady(t, map[string]int{"v4": 1, "v3": 4})
	w.revert(commit)
	w.pods.awaitReady(t, map[string]int{"v3": 5})

	w.stage("v5", app.at("v5").files())
	w.promote().awaitPause(3)
	w.pods.awaitReady(t, map[string]int{"v5": 2, "v3": 3})
	through(w.supersede("v6", app.at("v6").files()), "v6", "v3", 1, 2, 3, 4, 5)
	w.pods.wantStarted(t, map[string]int{"v2": 5, "v4": 1, "v5": 2, "v6": 5})
}

// TestScenariosOfKruisesAdvancedDaemonSets and the test below release a version to one node, and then to all nodes. A second release is
// superseded while it is on two nodes.
func TestScenariosOfKruisesAdvancedDaemonSets(t *testing.T) { kruisesNodes(t, advancedAgents) }

func TestScenariosOfKruisesForDaemonSets(t *testing.T) {
	t.Parallel()
	kruisesNodes(t, func(steps ...string) shop { return agents("", steps...) })
}

func kruisesNodes(t *testing.T, of func(steps ...string) shop) {
	t.Helper()
	app := of("setCanaryScale: {replicas: 1}", "pause: {}", "setWeight: 100")
	w := newKruise(t, app)
	w.start().awaitHealthy(w.repo.Head())
	w.pods.awaitReady(t, map[string]int{"v1": 10})
	commit := w.stage("v2", app.at("v2").files())
	w.pods.awaitReady(t, map[string]int{"v2": 1, "v1": 9})
	w.promote().awaitHealthy(commit)
	w.pods.awaitReady(t, map[string]int{"v2": 10})

	app = of("setCanaryScale: {replicas: 1}", "pause: {}", "setCanaryScale: {replicas: 2}", "pause: {}")
	w.stage("v3", app.at("v3").files())
	w.pods.awaitReady(t, map[string]int{"v3": 1, "v2": 9})
	w.promote().awaitPause(3)
	w.pods.awaitReady(t, map[string]int{"v3": 2, "v2": 8})
	commit = w.supersede("v4", app.at("v4").files())
	w.pods.awaitReady(t, map[string]int{"v4": 1, "v2": 9})
	w.ran("promote", w.app, "--full")
	w.awaitHealthy(commit)
	w.pods.awaitReady(t, map[string]int{"v4": 10})
}
