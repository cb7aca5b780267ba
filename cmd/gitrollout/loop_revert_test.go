package main

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// rejectedWorld has an app whose second version was aborted, with the given autoRevert.
func rejectedWorld(t *testing.T, autoRevert, hook string, second map[string]string) (w *loopWorld, p *loopProcess, first string) {
	t.Helper()
	w = newLoopWorld(t, version("v1", halfThenGate))
	w.repo.Pull()
	w.repo.CommitFiles("how to revert", map[string]string{".gitrollout/test/config.yaml": w.config("- path: apps/*") + "autoRevert: " + autoRevert + "\n"})
	first = w.repo.Head()
	p = w.start()
	p.awaitHealthy(first)
	s := p.awaitPaused(w.push("v2", second))
	w.decide(s.Release.Hash, "abort", "too many errors")
	if hook != "" {
		w.repo.Hook("update", hook)
	}
	return w, p, first
}

const (
	denyMain       = `[ "$1" != refs/heads/main ] || { echo "main is protected" >&2; exit 1; }`
	healthyAtFirst = "healthy again"
)

// TestAutoRevertPush pushes one revert of a rejected release to the users' branch, so that Git and cluster agree
// without manual action.
func TestAutoRevertPush(t *testing.T) {
	w, p, first := rejectedWorld(t, "push", "", version("v2", halfThenGate))
	s := p.await(healthyAtFirst, func(s rollout.State) bool { return s.Phase == rollout.Healthy && len(s.Rejected) > 0 })
	if s.Stable.Commit != first && w.repo.InBare("diff", "--name-only", first, "main", "--", "apps") != "" {
		t.Errorf("stable is of %s, and the app's files on main differ from %s", s.Stable.Commit, first)
	}
	if message := w.repo.Message("main"); !strings.HasPrefix(message, "Revert "+w.app) || !strings.Contains(message, "too many errors") {
		t.Errorf("main's newest commit says:\n%s", message)
	}
	if branch := "gitrollout/revert/test/" + w.app; w.repo.Ref(branch) != "" {
		t.Errorf("%s exists, too", branch)
	}
	head := w.repo.Ref("main")
	if err := p.passes(5); err != nil || w.repo.Ref("main") != head {
		t.Errorf("main moved again to %s: %v", w.repo.Ref("main"), err)
	}
}

// TestAutoRevertIsRefused proposes the revert if the branch is protected, and tries to push it once per head; a new
// process tries again.
func TestAutoRevertIsRefused(t *testing.T) {
	w, p, _ := rejectedWorld(t, "push", denyMain, version("v2", halfThenGate))
	p.await("degraded", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	branch := "gitrollout/revert/test/" + w.app
	if err := p.passes(5); err != nil {
		t.Error(err)
	}
	if w.repo.Ref(branch) == "" {
		t.Error("no revert is proposed")
	}
	if tries := strings.Count(w.log.String(), "the revert cannot be pushed"); tries != 1 {
		t.Errorf("it was tried %d times, want once", tries)
	}
	p.end()
	w.repo.Hook("update", "")
	again := w.start()
	again.await(healthyAtFirst, func(s rollout.State) bool { return s.Phase == rollout.Healthy })
	if w.repo.Ref(branch) != "" {
		t.Errorf("%s is still there", branch)
	}
}

// TestAutoRevertOfSharedFiles only proposes to revert files that another cluster or app may use, and the proposal says
// so.
func TestAutoRevertOfSharedFiles(t *testing.T) {
	second := with(version("v2", halfThenGate), map[string]string{"kustomization.yaml": "resources: [app.yaml, service.yaml, rollout.yaml, ../../base]\n", "../../base/kustomization.yaml": "configMapGenerator:\n- {name: base, literals: [v=2]}\n"})
	w, p, _ := rejectedWorld(t, "push", "", second)
	p.await("degraded", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	head := w.repo.Ref("main")
	if err := p.passes(3); err != nil || w.repo.Ref("main") != head {
		t.Errorf("main moved: %v", err)
	}
	message := w.repo.Message("gitrollout/revert/test/" + w.app)
	if !strings.Contains(message, "base/kustomization.yaml") {
		t.Errorf("the proposal does not name the shared file:\n%s", message)
	}
}

// TestAutoRevertOff leaves Git to the users.
func TestAutoRevertOff(t *testing.T) {
	w, p, _ := rejectedWorld(t, "off", "", version("v2", halfThenGate))
	p.await("degraded", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	head := w.repo.Ref("main")
	if err := p.passes(3); err != nil || w.repo.Ref("main") != head || w.repo.Ref("gitrollout/revert/test/"+w.app) != "" {
		t.Errorf("main %s, want %s; a revert branch: %q; %v", w.repo.Ref("main"), head, w.repo.Ref("gitrollout/revert/test/"+w.app), err)
	}
}

// TestRevertKeepsThePods scales an app at rest and during a release that is then aborted: neither a pushed nor a
// proposed revert undoes the scaling.
func TestRevertKeepsThePods(t *testing.T) {
	for _, autoRevert := range []string{"push", "propose"} {
		t.Run(autoRevert, func(t *testing.T) {
			scaled := func(tag, replicas string) map[string]string {
				files := version(tag, halfThenGate)
				files["app.yaml"] = strings.Replace(files["app.yaml"], "replicas: 2", "replicas: "+replicas, 1)
				return files
			}
			w := newLoopWorld(t, scaled("v1", "2"))
			w.repo.CommitFiles("how to revert", map[string]string{configFile: w.config("- path: apps/*") + "autoRevert: " + autoRevert + "\n"})
			p := w.start()
			p.awaitHealthy(w.repo.Head())
			rest := w.push("scaled at rest", scaled("v1", "3"))
			p.await("followed", func(s rollout.State) bool { return s.Source == rest })
			p.awaitPaused(w.push("v2", scaled("v2", "3")))
			flight := w.push("scaled in flight", scaled("v2", "5"))
			s := p.await("followed", func(s rollout.State) bool { return s.Source == flight })
			w.decide(s.Release.Hash, "abort", "too many errors")
			branch := "gitrollout/revert/test/" + w.app
			if autoRevert == "propose" {
				p.await("proposed", func(s rollout.State) bool { return s.Phase == rollout.Degraded && w.repo.Ref(branch) != "" })
				w.repo.Merge(branch)
			}
			p.await(healthyAtFirst, func(s rollout.State) bool { return s.Phase == rollout.Healthy && len(s.Rejected) > 0 })
			if text := w.repo.Show("main", "apps/"+w.app+"/app.yaml"); !strings.Contains(text, "replicas: 5") {
				t.Errorf("the revert took the pods back:\n%s", text)
			}
			if d := w.deployment(); *d.Spec.Replicas != 5 || w.image() != "v1" {
				t.Errorf("%d replicas of %s", *d.Spec.Replicas, w.image())
			}
		})
	}
}

// TestAutoRevertOfOthersChanges only proposes the revert if another commit has changed the app's files since the
// release, and names that commit.
func TestAutoRevertOfOthersChanges(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	w.repo.Pull()
	w.repo.CommitFiles("how to revert", map[string]string{".gitrollout/test/config.yaml": w.config("- path: apps/*") + "autoRevert: push\n"})
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	s := p.awaitPaused(w.push("v2", version("v2", halfThenGate)))
	sticky := w.push("sticky sessions", map[string]string{
		"service.yaml": strings.Replace(version("v2", halfThenGate)["service.yaml"], "spec: {", "spec: {sessionAffinity: ClientIP, ", 1),
	})
	p.await("followed", func(s rollout.State) bool { return s.Source == sticky })
	w.decide(s.Release.Hash, "abort", "too many errors")
	p.await("degraded", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	head := w.repo.Ref("main")
	if err := p.passes(3); err != nil || w.repo.Ref("main") != head {
		t.Errorf("main moved: %v\n%s", err, w.repo.Message("main"))
	}
	message := w.repo.Message("gitrollout/revert/test/" + w.app)
	if want := "- " + rollout.ShortID(sticky) + " by "; !strings.Contains(message, want) || !strings.Contains(message, ": sticky sessions") {
		t.Errorf("the proposal does not name whose change it takes back:\n%s", message)
	}
}

// TestRevertWithoutDocument proposes to revert a release whose Rollout document was removed before the abort. The
// revert restores the document.
func TestRevertWithoutDocument(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	s := p.awaitPaused(w.push("v2", version("v2", halfThenGate)))
	w.push("no document", map[string]string{"kustomization.yaml": "resources: [app.yaml, service.yaml]\n"})
	p.await("held", func(s rollout.State) bool { return s.Held != nil && s.Held.Reason == rollout.HeldRolloutRemoved })
	w.decide(s.Release.Hash, "abort", "too many errors")
	p.await("degraded", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	branch := "gitrollout/revert/test/" + w.app
	if w.repo.Ref(branch) == "" {
		t.Fatal("no revert is proposed")
	}
	if message := w.repo.Message(branch); strings.Contains(message, "gitrollout retry") {
		t.Errorf("the proposal names a command that is refused:\n%s", message)
	}
	w.wantText(w.command(exitOK, "get", w.app), "git fetch && git merge --no-ff origin/"+branch+" && git push", "a revert of "+string(s.Release.Hash)+" in Git")
	w.repo.Merge(branch)
	p.await("healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Held == nil })
}
