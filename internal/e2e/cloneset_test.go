package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/kruisetest"
	"gitrollout.dev/gitrollout/rollout"
)

// The tests of this file correspond to OpenKruise's Rollouts tests of CloneSets and of partitions
// (github.com/openkruise/rollouts v0.6.1, test/e2e); docs/coming-from-kruise-rollouts.md has the table.

// clones returns the shop as a CloneSet. Replicas is a line, "" under an autoscaler. Kruise's webhooks with their
// defaults are absent, so it has all fields that its controller needs.
func clones(replicas string, steps ...string) shop {
	return shop{kind: "CloneSet", api: "apps.kruise.io/v1alpha1", version: "v1", replicas: replicas, strategy: canary("", steps...),
		extra: "  revisionHistoryLimit: 10\n  updateStrategy: {type: ReCreate, maxUnavailable: 1}\n"}
}

// newClones returns a world with a running app of a CloneSet with n pods.
func newClones(t *testing.T, app shop, n int) *world {
	t.Helper()
	w := newWorld(t, app.files())
	kruisetest.Start(t, w.cluster, w.ns)
	w.start()
	w.awaitHealthy(w.repo.Head())
	w.pods.awaitReady(t, map[string]int{"v1": n})
	return w
}

func (w *world) awaitClones(v1, v2 int) {
	w.t.Helper()
	w.pods.awaitReady(w.t, map[string]int{"v1": v1, "v2": v2})
}

func (w *world) clonePartition() string {
	return w.kubectl("get", "cloneset", "shop", "-o", "jsonpath={.spec.updateStrategy.partition}")
}

// TestCloneSetSteps checks the pods at each step: after the promotion all are new, and the partition is the user's
// again.
func TestCloneSetSteps(t *testing.T) {
	t.Parallel()
	app := clones("replicas: 5", "setWeight: 20", "pause: {}", "setWeight: 60", "pause: {duration: 1s}", "setWeight: 80", "pause: {}")
	w := newClones(t, app, 5)
	mark := w.pods.mark()
	commit := w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	w.awaitClones(4, 1)
	w.pods.stays(t, 500*time.Millisecond)
	if got := w.clonePartition(); got != "4" {
		t.Errorf("at 20 %% of 5 pods the partition is %q", got)
	}
	if out, err := w.cli("get", w.app); err != nil || !strings.Contains(out, "CloneSet") {
		t.Errorf("get: %v\n%s", err, out)
	}
	w.promote()
	w.awaitStep(5, rollout.Paused)
	w.awaitClones(1, 4)
	w.promote()
	w.awaitHealthy(commit)
	w.awaitClones(0, 5)
	if got := w.clonePartition(); got != "" && got != "0" {
		t.Errorf("promoted, the partition is %q", got)
	}
	if v1, v2, low := w.pods.count("v1"), w.pods.count("v2"), w.pods.lowest(mark); v1 != 5 || v2 != 5 || low < 4 {
		t.Errorf("%d pods of v1 and %d of v2 were started, and ready ones fell to %d; want 5, 5 and 4", v1, v2, low)
	}
}

// TestCloneSetGoesBackAndOn tests a revert during a release, a newer version during a release, and a crashing version
// with its successor.
func TestCloneSetGoesBackAndOn(t *testing.T) {
	t.Parallel()
	app := clones("replicas: 5", "setWeight: 20", "pause: {}", "setWeight: 40", "pause: {}")
	w := newClones(t, app, 5)
	commit := w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	w.awaitClones(4, 1)
	w.repo.Revert(commit)
	w.await("healthy again", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Release == nil })
	w.awaitClones(5, 0)
	w.pods.wantStarted(t, "v1", 6) // 5 and 1 again

	w.push("v2 again", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	w.promote()
	w.awaitStep(3, rollout.Paused)
	w.awaitClones(3, 2)
	w.push("v3", app.at("v3").files())
	w.await("v3 at its first step", func(s rollout.State) bool {
		return s.Phase == rollout.Paused && len(s.Progress) == 1 && s.Progress[0].Step == 1 && s.Release.Subject == "v3"
	})
	w.pods.awaitReady(t, map[string]int{"v1": 4, "v3": 1})

	w.push("v4 crashes", app.at("v4-crash").files())
	w.await("the broken pod", func(s rollout.State) bool {
		return s.Release != nil && s.Release.Subject == "v4 crashes" && w.pods.count("v4-crash") == 1
	})
	commit = w.push("v5", app.at("v5").files())
	w.await("v5 at its first step", func(s rollout.State) bool {
		return s.Phase == rollout.Paused && s.Release.Subject == "v5" && s.Progress[0].Step == 1
	})
	w.pods.awaitReady(t, map[string]int{"v1": 4, "v5": 1})
	w.ran("promote", w.app, "--full")
	w.awaitHealthy(commit)
	w.pods.awaitReady(t, map[string]int{"v5": 5})
	w.pods.wantStarted(t, "v4-crash", 1)
}

// TestCloneSetScalesInFlight uses a percentage as the partition under an autoscaler, so that Kruise keeps the share.
func TestCloneSetScalesInFlight(t *testing.T) {
	t.Parallel()
	app := clones("", "setWeight: 20", "pause: {}", "setWeight: 40", "pause: {}")
	files := app.files()
	w := newWorld(t, app.files())
	kruisetest.Start(t, w.cluster, w.ns)
	// Kruise's webhook would set 1.
	files["shop.yaml"] = strings.Replace(files["shop.yaml"], "spec:\n", "spec:\n  replicas: 5\n", 1)
	w.push("with a number", files)
	w.start()
	w.awaitClones(5, 0)
	commit := w.push("without", app.files())
	w.await("the commit without a number", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Source == commit })
	scale := func(n int) {
		w.kubectl("patch", "cloneset", "shop", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
	}
	commit = w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	w.awaitClones(4, 1)
	if got := w.clonePartition(); got != "80%" {
		t.Errorf("at 20 %% of 5 pods under an autoscaler the partition is %q", got)
	}
	scale(10)
	w.awaitClones(8, 2)
	scale(5)
	w.awaitClones(4, 1)
	w.promote()
	w.awaitStep(3, rollout.Paused)
	w.awaitClones(3, 2)
	w.promote()
	w.awaitHealthy(commit)
	w.awaitClones(0, 5)
}

// TestCloneSetJumps promotes through a step, removes a document during a release, and pauses a release in Git.
func TestCloneSetJumps(t *testing.T) {
	t.Parallel()
	app := clones("replicas: 5", "{name: first, setWeight: 20}", "pause: {}", "setWeight: 40", "pause: {}",
		"{name: most, setWeight: 60}", "pause: {}")
	w := newClones(t, app, 5)
	w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	w.ran("promote", w.app, "--through", "4")
	w.awaitStep(5, rollout.Paused)
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

// TestCloneSetIsAdopted adopts a CloneSet of kubectl without a restart, and stages its next version.
func TestCloneSetIsAdopted(t *testing.T) {
	t.Parallel()
	app := clones("replicas: 3", "setWeight: 33", "pause: {}")
	w := newWorld(t, app.files())
	kruisetest.Start(t, w.cluster, w.ns)
	w.kubectl("apply", "-f", w.repo.Work+"/apps/"+w.app+"/shop.yaml")
	w.awaitClones(3, 0)
	w.start()
	w.awaitHealthy(w.repo.Head())
	w.pods.wantStarted(t, "v1", 3)
	commit := w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	w.awaitClones(2, 1)
	w.repo.Revert(commit)
	w.await("healthy again", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Release == nil })
	w.awaitClones(3, 0)
}

// TestAdvancedStatefulSet adopts Kruise's StatefulSet without a restart, releases it by its partition, and rolls back a
// version whose first pod never becomes ready. That pod blocks the others until it is deleted.
func TestAdvancedStatefulSet(t *testing.T) {
	t.Parallel()
	if !kruisetest.IsReal() {
		t.Skip("its controller is Kruise's own: make test-peers")
	}
	app := advancedSets("replicas: 5", "setWeight: 20", "pause: {}", "setWeight: 60", "pause: {}")
	w := newWorld(t, app.files())
	kruisetest.Start(t, w.cluster, w.ns)
	// It has the default of Kruise's webhook, without which the controller crashes.
	manifest := filepath.Join(t.TempDir(), "shop.yaml")
	content := strings.Replace(app.files()["shop.yaml"], "maxUnavailable: 1,", "maxUnavailable: 1, partition: 0,", 1)
	must(t, os.WriteFile(manifest, []byte(content), 0o600))
	w.kubectl("apply", "-f", manifest)
	w.awaitSplit(0, 5, 0, "v1", "")
	w.start()
	w.awaitHealthy(w.repo.Head())
	w.pods.wantStarted(t, "v1", 5)
	mark := w.pods.mark()
	commit := w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	w.awaitSplit(0, 5, 4, "v2", "v1")
	w.promote()
	w.awaitStep(3, rollout.Paused)
	w.awaitSplit(0, 5, 2, "v2", "v1")
	w.belowStay(mark, 2, "v1")
	w.promote()
	w.awaitHealthy(commit)
	w.awaitSplit(0, 5, 0, "v2", "")
	w.pods.wantReady(t, mark, 4)

	w.push("v3 crashes", app.at("v3-crash").files())
	w.await("the broken pod", func(rollout.State) bool { return w.pods.count("v3-crash") == 1 })
	w.ran("abort", w.app)
	w.await("back at stable", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	w.awaitSplit(0, 5, 0, "v2", "")
}
