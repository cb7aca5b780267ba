package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/kruisetest"
	"gitrollout.dev/gitrollout/rollout"
)

// The tests of this file correspond to OpenKruise Rollouts' own tests of CloneSets and of partitions (github.com/openkruise/rollouts
// v0.6.1, test/e2e); docs/conformance.md lists the pairs.

// clones returns the test app with a CloneSet as its workload. replicas is the line "replicas: N", or "" if an autoscaler sets the
// replicas. The manifest sets the fields that Kruise's webhooks would default, because no webhook runs.
func clones(replicas string, steps ...string) shop {
	return shop{kind: "CloneSet", api: "apps.kruise.io/v1alpha1", version: "v1", replicas: replicas, strategy: canary("", steps...),
		extra: "  revisionHistoryLimit: 10\n  updateStrategy: {type: ReCreate, maxUnavailable: 1}\n"}
}

// newKruise returns a new world. If the workload's kind is from OpenKruise, newKruise also starts OpenKruise's controllers.
func newKruise(t *testing.T, app shop) *world {
	t.Helper()
	w := newWorld(t, app.files())
	if strings.Contains(app.api, "kruise") {
		kruisetest.Start(t, w.cluster, w.ns)
	}
	return w
}

// newClones returns a world in which gitrollout has deployed the CloneSet app, and the app's n pods are ready.
func newClones(t *testing.T, app shop, n int) *world {
	t.Helper()
	w := newKruise(t, app)
	w.start().awaitHealthy(w.repo.Head())
	w.awaitClones(n, 0)
	return w
}

func (w *world) awaitClones(v1, v2 int) {
	w.t.Helper()
	w.pods.awaitReady(w.t, map[string]int{"v1": v1, "v2": v2})
}

func (w *world) clonePartition() string {
	return w.kubectl("get", "cloneset", "shop", "-o", "jsonpath={.spec.updateStrategy.partition}")
}

// TestCloneSetSteps checks that a CloneSet created by kubectl is adopted without restarting its pods. It checks the number of pods that
// each step updates. After the last promotion, all pods are new, and the partition is unset or 0.
func TestCloneSetSteps(t *testing.T) {
	t.Parallel()
	app := clones("replicas: 5", "setWeight: 20", "pause: {}", "setWeight: 60", "pause: {duration: 1s}", "setWeight: 80", "pause: {}")
	w := newKruise(t, app)
	w.apply(app.files()["shop.yaml"])
	w.awaitClones(5, 0)
	w.start().awaitHealthy(w.repo.Head())
	mark := w.pods.mark()
	commit := w.stage("v2", app.at("v2").files())
	w.awaitClones(4, 1)
	w.pods.stays(t, 500*time.Millisecond)
	compare.CheckNamed(t, "the partition at 20 % of 5 pods", "4", w.clonePartition())
	compare.Contains(t, w.ran("get", w.app), "CloneSet")
	w.promote().awaitPause(5)
	w.awaitClones(1, 4)
	w.promote().awaitHealthy(commit)
	w.awaitClones(0, 5)
	if got := w.clonePartition(); got != "" && got != "0" {
		t.Errorf("promoted, the partition is %q", got)
	}
	w.pods.wantStarted(t, map[string]int{"v1": 5, "v2": 5})
	w.pods.wantReady(t, mark, 4)
}

// TestCloneSetGoesBackAndOn checks a revert and a newer version during a release, and a newer version after a crashing version.
func TestCloneSetGoesBackAndOn(t *testing.T) {
	t.Parallel()
	app := clones("replicas: 5", "setWeight: 20", "pause: {}", "setWeight: 40", "pause: {}")
	w := newClones(t, app, 5)
	commit := w.stage("v2", app.at("v2").files())
	w.awaitClones(4, 1)
	w.revert(commit)
	w.awaitClones(5, 0)
	w.pods.wantStarted(t, map[string]int{"v1": 6}) // 5 at first, and 1 after the revert

	w.stage("v2 again", app.at("v2").files())
	w.promote().awaitPause(3)
	w.awaitClones(3, 2)
	w.supersede("v3", app.at("v3").files())
	w.pods.awaitReady(t, map[string]int{"v1": 4, "v3": 1})

	w.push("v4 crashes", app.at("v4-crash").files())
	w.await("the broken pod", func(s rollout.State) bool {
		return s.Release != nil && s.Release.Subject == "v4 crashes" && w.pods.count("v4-crash") == 1
	})
	commit = w.supersede("v5", app.at("v5").files())
	w.pods.awaitReady(t, map[string]int{"v1": 4, "v5": 1})
	w.ran("promote", w.app, "--full")
	w.awaitHealthy(commit)
	w.pods.awaitReady(t, map[string]int{"v5": 5})
	w.pods.wantStarted(t, map[string]int{"v4-crash": 1})
}

// TestCloneSetScalesInFlight checks that the partition is a percentage if an autoscaler sets the replicas. The canary keeps its share when
// the CloneSet is scaled.
func TestCloneSetScalesInFlight(t *testing.T) {
	t.Parallel()
	app := clones("", "setWeight: 20", "pause: {}", "setWeight: 40", "pause: {}")
	w := newKruise(t, app)
	numbered := app
	numbered.replicas = "replicas: 5" // without replicas in Git, Kruise's webhook would set 1
	w.push("with a number", numbered.files())
	w.start()
	w.awaitClones(5, 0)
	commit := w.push("without", app.files())
	w.await("the commit without a number", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Source == commit })
	scale := func(n int) {
		w.kubectl("patch", "cloneset", "shop", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
	}
	commit = w.stage("v2", app.at("v2").files())
	w.awaitClones(4, 1)
	compare.CheckNamed(t, "the partition at 20 % of 5 pods under an autoscaler", "80%", w.clonePartition())
	scale(10)
	w.awaitClones(8, 2)
	scale(5)
	w.awaitClones(4, 1)
	w.promote().awaitPause(3)
	w.awaitClones(3, 2)
	w.promote().awaitHealthy(commit)
	w.awaitClones(0, 5)
}

// TestCloneSetJumps promotes a release past two pauses with one command. Then one push removes the Rollout document, and the next push
// restores it with spec.paused. Only the promotions replace pods.
func TestCloneSetJumps(t *testing.T) {
	t.Parallel()
	app := clones("replicas: 5", "{name: first, setWeight: 20}", "pause: {}", "setWeight: 40", "pause: {}",
		"{name: most, setWeight: 60}", "pause: {}")
	w := newClones(t, app, 5)
	w.stage("v2", app.at("v2").files())
	w.ran("promote", w.app, "--through", "4")
	w.awaitPause(5)
	w.awaitClones(2, 3)

	without := app.at("v2").files()
	delete(without, "rollout.yaml")
	without["kustomization.yaml"] = "resources:\n- shop.yaml\n- services.yaml\n"
	w.push("no document", without)
	w.await("held without its document", func(s rollout.State) bool {
		return s.Held != nil && s.Held.Reason == rollout.HeldRolloutRemoved
	})
	w.awaitClones(2, 3)
	paused := app.at("v2")
	paused.rollout = "  paused: true\n"
	w.push("paused", paused.files())
	w.await("no longer held", func(s rollout.State) bool { return s.Held == nil })
	w.awaitClones(2, 3)
	w.push("on", app.at("v2").files())
	w.ran("promote", w.app, "--full")
	w.await("healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Release == nil })
	w.awaitClones(0, 5)
}

// TestAdvancedStatefulSet checks that Kruise's StatefulSet is adopted without restarting its pods, and is released through its partition.
// After an abort of a crashing version, gitrollout deletes the crashing pod, because this pod would block the rollback.
func TestAdvancedStatefulSet(t *testing.T) {
	t.Parallel()
	if !kruisetest.IsReal() {
		t.Skip("its controller is Kruise's own: make test-peers")
	}
	app := advancedSets("replicas: 5", "setWeight: 20", "pause: {}", "setWeight: 60", "pause: {}")
	w := newKruise(t, app)
	// Kruise's webhook would set partition: 0 as the default. Without a partition, the controller crashes.
	w.apply(strings.Replace(app.files()["shop.yaml"], "maxUnavailable: 1,", "maxUnavailable: 1, partition: 0,", 1))
	w.awaitSplit(0, 5, 0, "v1", "")
	w.start().awaitHealthy(w.repo.Head())
	w.pods.wantStarted(t, map[string]int{"v1": 5})
	mark := w.pods.mark()
	commit := w.stage("v2", app.at("v2").files())
	w.awaitSplit(0, 5, 4, "v2", "v1")
	w.promote().awaitPause(3)
	w.awaitSplit(0, 5, 2, "v2", "v1")
	w.belowStay(mark, 2, "v1")
	w.promote().awaitHealthy(commit)
	w.awaitSplit(0, 5, 0, "v2", "")
	w.pods.wantReady(t, mark, 4)

	w.push("v3 crashes", app.at("v3-crash").files())
	w.await("the broken pod", func(rollout.State) bool { return w.pods.count("v3-crash") == 1 })
	w.abort()
	w.awaitSplit(0, 5, 0, "v2", "")
}
