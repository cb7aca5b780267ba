package e2e

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// TestClusterIsLost replaces the cluster by a new, empty cluster during a release. gitrollout applies no object until the state branch is
// adopted for the new cluster. Then gitrollout deploys the stable version, and starts the release again at the first step.
func TestClusterIsLost(t *testing.T) {
	t.Parallel()
	app := newShop(2, "scaling: surge", "setWeight: 50", "pause: {}")
	w := running(t, app.files())
	second := w.stage("v2", app.at("v2").files())
	w.kill()

	other := testcluster.Start(t)
	recorded := w.repo.Ref(w.stateBranch())
	w = w.twin()
	w.cluster = other
	w.kubectl("create", "namespace", w.ns)
	w.pods = watchPods(t, other, w.ns)
	compare.Contains(t, w.failed("once", "--namespaces", w.ns), "the state branch is for cluster", "gitrollout state adopt")
	compare.Contains(t, w.ran("state", "adopt", "--namespaces", w.ns, "--dry-run"), "first goes to stable")
	compare.CheckNamed(t, "the state branch after a dry run", recorded, w.repo.Ref(w.stateBranch()))
	compare.Contains(t, w.ran("state", "adopt", "--namespaces", w.ns), "pushed")
	compare.Contains(t, w.ran("state", "adopt", "--namespaces", w.ns), "already")
	w.start()
	w.awaitPause(1)
	w.pods.awaitReady(t, map[string]int{"v1": 2, "v2": 1})
	compare.CheckNamed(t, "the release's commit", second, w.state().Release.Commit)
	history := w.pods.history()
	stable, _, there := strings.Cut(history, "ready map[v1:2]")
	if !there || strings.Contains(stable, "v2") {
		t.Errorf("the release began before stable was there:\n%s", history)
	}
	w.promote().awaitHealthy(second)
}

// TestRepair runs `gitrollout state repair` after a user has edited the app's state, and after a user has reset the state branch.
func TestRepair(t *testing.T) {
	t.Parallel()
	app := newShop(2, "scaling: surge", "setWeight: 50", "pause: {}", "setWeight: 100", "pause: {}")
	w := running(t, app.files())
	w.stage("v2", app.at("v2").files())
	compare.Contains(t, w.ran("state", "repair", w.app), "needs no repair")

	// A user changes step 3 to 2 in the state, and `state repair` sets 3 again.
	w.promote().awaitPause(3)
	w.edit(rollout.StatePath(w.app), "step: 3", "step: 2")
	compare.Contains(t, oneLine(w.ran("get", w.app)), "edited by hand", "gitrollout state repair "+w.app)
	compare.Contains(t, w.ran("state", "repair", w.app, "--dry-run"), "at step 3/4", "--dry-run")
	compare.Contains(t, w.ran("state", "repair", w.app), "pushed")
	w.awaitPause(3)

	// A user resets the state branch to the release's first pause, and `state repair` keeps this pause.
	older := w.repo.InBare("log", "-1", "--format=%H", "--grep=step 2/4", w.stateBranch())
	w.repo.InBare("update-ref", "refs/heads/"+w.stateBranch(), older)
	s := w.await("held", func(s rollout.State) bool { return s.Held != nil })
	compare.CheckNamed(t, "held for", "StateRolledBack", string(s.Held.Reason))
	compare.Contains(t, w.ran("state", "repair", w.app), "at step 2/4")
	w.awaitPause(3) // main still has the promotion past the first pause
	w.promote()
	w.await("healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Held == nil })
	w.pods.awaitReady(t, map[string]int{"v2": 2})
}

// TestCompact compacts the state branch to one commit while a release is paused, and then promotes the release.
func TestCompact(t *testing.T) {
	t.Parallel()
	app := newShop(2, "scaling: surge", "setWeight: 50", "pause: {}")
	w := running(t, app.files())
	second := w.stage("v2", app.at("v2").files())
	old, tree := w.repo.Ref(w.stateBranch()), w.repo.InBare("rev-parse", w.stateBranch()+"^{tree}")
	w.ran("state", "compact")
	if n := w.repo.InBare("rev-list", "--count", w.stateBranch()); n != "1" || w.repo.InBare("rev-parse", w.stateBranch()+"^{tree}") != tree {
		t.Errorf("%s commits, or other files", n)
	}
	archive := w.repo.InBare("for-each-ref", "--format=%(objectname)", "refs/heads/gitrollout/archive/test/")
	compare.CheckNamed(t, "the archive", old, archive)
	w.promote().awaitHealthy(second)
	w.pods.wantStarted(t, map[string]int{"v2": 2})
	w.repo.Fsck()
}
