package main

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// rejectedWorld releases an app's first version, and aborts the release of the second. It returns the first version's commit. If hook is
// not "", the Git server gets this update hook.
func rejectedWorld(t *testing.T, autoRevert, hook string, second map[string]string) (w *loopWorld, p *loopProcess, first string) {
	t.Helper()
	w, p = newRevertingWorld(t, autoRevert, version("v1", halfThenGate))
	first = w.repo.Head()
	s := p.awaitPaused(w.push("v2", second))
	w.decide(s.Release.Hash, "abort", "too many errors")
	if hook != "" {
		w.repo.Hook("update", hook)
	}
	return w, p, first
}

// newRevertingWorld returns a healthy app, in a configuration with the given autoRevert.
func newRevertingWorld(t *testing.T, autoRevert string, files map[string]string) (*loopWorld, *loopProcess) {
	t.Helper()
	w := newLoopWorld(t, files)
	w.configure(w.config("- path: apps/*") + "autoRevert: " + autoRevert + "\n")
	return w, w.startHealthy()
}

// awaitRevert makes passes until the app is healthy again after a rejected release.
func (p *loopProcess) awaitRevert() rollout.State {
	p.w.Helper()
	return p.await("healthy again", func(s rollout.State) bool { return s.Phase == rollout.Healthy && len(s.Rejected) > 0 })
}

const denyMain = `[ "$1" != refs/heads/main ] || { echo "main is protected" >&2; exit 1; }`

// TestAutoRevertPush checks that gitrollout pushes one revert of a rejected release to the users' branch. Git then
// has the version that the cluster runs.
func TestAutoRevertPush(t *testing.T) {
	w, p, first := rejectedWorld(t, "push", "", version("v2", halfThenGate))
	s := p.awaitRevert()
	if s.Stable.Commit != first && w.repo.InBare("diff", "--name-only", first, "main", "--", "apps") != "" {
		t.Errorf("stable is of %s, and the app's files on main differ from %s", s.Stable.Commit, first)
	}
	if message := w.repo.Message("main"); !strings.HasPrefix(message, "Revert "+w.app) || !strings.Contains(message, "too many errors") {
		t.Errorf("main's newest commit says:\n%s", message)
	}
	w.wantBranch(w.revert(), "")
	p.wantUnmoved("main", 5)
}

// TestAutoRevertIsRefused checks that the revert is proposed, not pushed, if the users' branch is protected. A process tries the push once
// for each head of the branch. A new process tries again.
func TestAutoRevertIsRefused(t *testing.T) {
	w, p, _ := rejectedWorld(t, "push", denyMain, version("v2", halfThenGate))
	p.awaitPhase(rollout.Degraded)
	p.passWell(5)
	if w.repo.Ref(w.revert()) == "" {
		t.Error("no revert is proposed")
	}
	if tries := strings.Count(w.log.String(), "the revert cannot be pushed"); tries != 1 {
		t.Errorf("it was tried %d times, want once", tries)
	}
	p.end()
	w.repo.Hook("update", "")
	again := w.start()
	again.awaitPhase(rollout.Healthy)
	w.wantBranch(w.revert(), "")
}

// TestAutoRevertOfSharedFiles checks that a revert is proposed, not pushed, if the release changed files outside the app's folder. Other
// apps may use such files, so the proposal names the files.
func TestAutoRevertOfSharedFiles(t *testing.T) {
	second := with(version("v2", halfThenGate), map[string]string{
		"kustomization.yaml":            "resources: [app.yaml, service.yaml, rollout.yaml, ../../base]\n",
		"../../base/kustomization.yaml": "configMapGenerator:\n- {name: base, literals: [v=2]}\n",
	})
	w, p, _ := rejectedWorld(t, "push", "", second)
	p.awaitPhase(rollout.Degraded)
	p.wantUnmoved("main", 3)
	w.wantText(w.repo.Message(w.revert()), "base/kustomization.yaml")
}

// TestAutoRevertOff checks that, if autoRevert is off, no revert is pushed or proposed.
func TestAutoRevertOff(t *testing.T) {
	w, p, _ := rejectedWorld(t, "off", "", version("v2", halfThenGate))
	p.awaitPhase(rollout.Degraded)
	p.wantUnmoved("main", 3)
	w.wantBranch(w.revert(), "")
}

// TestRevertKeepsThePods changes an app's replicas before and during a release, and aborts the release. Neither a pushed nor a proposed
// revert may change the replicas back.
func TestRevertKeepsThePods(t *testing.T) {
	t.Parallel()
	for _, autoRevert := range []string{"push", "propose"} {
		t.Run(autoRevert, func(t *testing.T) {
			scaled := func(tag, replicas string) map[string]string {
				files := version(tag, halfThenGate)
				files["app.yaml"] = strings.Replace(files["app.yaml"], "replicas: 2", "replicas: "+replicas, 1)
				return files
			}
			w, p := newRevertingWorld(t, autoRevert, scaled("v1", "2"))
			p.awaitSource(w.app, w.push("scaled at rest", scaled("v1", "3")))
			p.awaitPaused(w.push("v2", scaled("v2", "3")))
			s := p.awaitSource(w.app, w.push("scaled in flight", scaled("v2", "5")))
			w.decide(s.Release.Hash, "abort", "too many errors")
			if autoRevert == "propose" {
				p.await("proposed", func(s rollout.State) bool { return s.Phase == rollout.Degraded && w.repo.Ref(w.revert()) != "" })
				w.repo.Merge(w.revert())
			}
			p.awaitRevert()
			w.wantText(w.repo.Show("main", "apps/"+w.app+"/app.yaml"), "replicas: 5")
			if n := *w.deployment().Spec.Replicas; n != 5 {
				t.Errorf("%d replicas, want 5", n)
			}
			w.wantImage("v1")
		})
	}
}

// TestAutoRevertOfOthersChanges checks that the revert is proposed, not pushed, if a later commit also changed the app's files.
func TestAutoRevertOfOthersChanges(t *testing.T) {
	w, p := newRevertingWorld(t, "push", version("v1", halfThenGate))
	s := p.awaitPaused(w.pushVersion("v2"))
	sticky := w.push("sticky sessions", map[string]string{
		"service.yaml": strings.Replace(version("v2", "")["service.yaml"], "spec: {", "spec: {sessionAffinity: ClientIP, ", 1),
	})
	p.awaitSource(w.app, sticky)
	w.decide(s.Release.Hash, "abort", "too many errors")
	p.awaitPhase(rollout.Degraded)
	p.wantUnmoved("main", 3)
	// The proposal lists the later commit, because a merge of the proposal would also revert that commit.
	w.wantText(w.repo.Message(w.revert()), "- "+rollout.ShortID(sticky)+" by ", ": sticky sessions")
}

// TestRevertWithoutDocument removes the Rollout document during a release, and then aborts the release. The merge of the proposed revert
// must restore the document.
func TestRevertWithoutDocument(t *testing.T) {
	w, p, s := newPausedWorld(t)
	w.push("no document", map[string]string{"kustomization.yaml": "resources: [app.yaml, service.yaml]\n"})
	p.await("held", func(s rollout.State) bool { return s.Held.Is(rollout.HeldRolloutRemoved) })
	w.decide(s.Release.Hash, "abort", "too many errors")
	p.awaitPhase(rollout.Degraded)
	branch := w.revert()
	if w.repo.Ref(branch) == "" {
		t.Fatal("no revert is proposed")
	}
	if message := w.repo.Message(branch); strings.Contains(message, "gitrollout retry") {
		t.Errorf("the proposal names a command that is refused:\n%s", message)
	}
	w.wantText(w.command(exitOK, "get", w.app), "git fetch && git merge --no-ff origin/"+branch+" && git push",
		"a revert of "+string(s.Release.Hash)+" in Git")
	w.repo.Merge(branch)
	p.await("healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Held == nil })
}
