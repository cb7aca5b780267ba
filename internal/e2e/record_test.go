package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// TestClusterIsLost replaces the cluster by a new, empty one during a release. Nothing is applied there until the state
// branch is adopted for it; then stable is deployed first, and the release starts at its first step.
func TestClusterIsLost(t *testing.T) {
	t.Parallel()
	app := shop{version: "v1", replicas: "replicas: 2", strategy: canary("scaling: surge", "setWeight: 50", "pause: {}")}
	w := newWorld(t, app.files()).start()
	w.awaitHealthy(w.repo.Head())
	second := w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	w.kill()

	other := testcluster.Start(t)
	_, err := other.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}},
		metav1.CreateOptions{})
	must(t, err)
	recorded := w.repo.Ref(w.stateBranch())
	w = w.twin()
	w.cluster, w.pods = other, watchPods(t, other, w.ns)
	if out, err := w.cli("once", "--namespaces", w.ns); err == nil || !strings.Contains(out, "the state branch is for cluster") ||
		!strings.Contains(out, "gitrollout state adopt") {
		t.Errorf("another cluster's record is taken for its own: %v\n%s", err, out)
	}
	if out, err := w.cli("state", "adopt", "--namespaces", w.ns, "--dry-run"); err != nil || !strings.Contains(out, "first to stable") ||
		w.repo.Ref(w.stateBranch()) != recorded {
		t.Errorf("dry run: %v\n%s", err, out)
	}
	if out, err := w.cli("state", "adopt", "--namespaces", w.ns); err != nil || !strings.Contains(out, "pushed") {
		t.Fatalf("adopt: %v\n%s", err, out)
	}
	if out, err := w.cli("state", "adopt", "--namespaces", w.ns); err != nil || !strings.Contains(out, "already") {
		t.Errorf("adopted twice: %v\n%s", err, out)
	}
	w.start()
	w.awaitStep(1, rollout.Paused)
	w.pods.awaitReady(t, map[string]int{"v1": 2, "v2": 1})
	if s := w.state(); s.Release.Commit != second {
		t.Errorf("the release is %+v, want %s", s.Release, second)
	}
	history := w.pods.history()
	stable, _, there := strings.Cut(history, "ready map[v1:2]")
	if !there || strings.Contains(stable, "v2") {
		t.Errorf("the release began before stable was there:\n%s", history)
	}
	w.promote()
	w.awaitHealthy(second)
}

// TestRepair uses the commands for an edited record and for one that was reset.
func TestRepair(t *testing.T) {
	t.Parallel()
	app := shop{version: "v1", replicas: "replicas: 2",
		strategy: canary("scaling: surge", "setWeight: 50", "pause: {}", "setWeight: 100", "pause: {}")}
	w := newWorld(t, app.files()).start()
	w.awaitHealthy(w.repo.Head())
	w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	if out, err := w.cli("state", "repair", w.app); err != nil || !strings.Contains(out, "needs no repair") {
		t.Errorf("a good record: %v\n%s", err, out)
	}

	// A user edits the record to go a step back, and confirms it.
	w.promote()
	w.awaitStep(3, rollout.Paused)
	file := rollout.StatePath(w.app)
	w.edit(file, "step: 3", "step: 2")
	out, err := w.cli("get", w.app)
	out = strings.Join(strings.Fields(out), " ")
	if err != nil || !strings.Contains(out, "edited by hand") || !strings.Contains(out, "gitrollout state repair "+w.app) {
		t.Errorf("get says %v\n%s", err, out)
	}
	if out, err := w.cli("state", "repair", w.app, "--dry-run"); err != nil || !strings.Contains(out, "at step 3/4") ||
		!strings.Contains(out, "--dry-run") {
		t.Errorf("dry run: %v\n%s", err, out)
	}
	if out, err := w.cli("state", "repair", w.app); err != nil || !strings.Contains(out, "pushed") {
		t.Fatalf("repair: %v\n%s", err, out)
	}
	w.awaitStep(3, rollout.Paused)

	// The branch is reset to the first gate, and the user wants that.
	older := w.repo.InBare("log", "-1", "--format=%H", "--grep=step 2/4", w.stateBranch())
	w.repo.InBare("update-ref", "refs/heads/"+w.stateBranch(), older)
	s := w.await("held", func(s rollout.State) bool { return s.Held != nil })
	if s.Held.Reason != "StateRolledBack" {
		t.Errorf("held %+v", s.Held)
	}
	if out, err := w.cli("state", "repair", w.app); err != nil || !strings.Contains(out, "at step 2/4") {
		t.Fatalf("repair: %v\n%s", err, out)
	}
	w.awaitStep(3, rollout.Paused) // the promotion on main still applies
	w.promote()
	w.await("healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Held == nil })
	w.pods.awaitReady(t, map[string]int{"v2": 2})
}

// TestCompact replaces the state branch by one commit while a release is at its gate.
func TestCompact(t *testing.T) {
	t.Parallel()
	app := shop{version: "v1", replicas: "replicas: 2", strategy: canary("scaling: surge", "setWeight: 50", "pause: {}")}
	w := newWorld(t, app.files()).start()
	w.awaitHealthy(w.repo.Head())
	second := w.push("v2", app.at("v2").files())
	w.awaitStep(1, rollout.Paused)
	old, tree := w.repo.Ref(w.stateBranch()), w.repo.InBare("rev-parse", w.stateBranch()+"^{tree}")
	w.ran("state", "compact")
	if n := w.repo.InBare("rev-list", "--count", w.stateBranch()); n != "1" || w.repo.InBare("rev-parse", w.stateBranch()+"^{tree}") != tree {
		t.Errorf("%s commits, or other files", n)
	}
	if archive := w.repo.InBare("for-each-ref", "--format=%(objectname)", "refs/heads/gitrollout/archive/test/"); archive != old {
		t.Errorf("the archive is %q, want %s", archive, old)
	}
	w.promote()
	w.awaitHealthy(second)
	w.pods.wantStarted(t, "v2", 2)
	w.repo.Fsck()
}
