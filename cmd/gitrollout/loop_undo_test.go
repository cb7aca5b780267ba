package main

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// TestUndo checks a proposal to undo a release. The proposal stays while the release advances. After a merge of the proposal, the app is
// rolled back, and the history shows the rollback.
func TestUndo(t *testing.T) {
	w, p, two := newPausedWorld(t)
	undo := func(want exitCode, args ...string) string {
		t.Helper()
		return w.command(want, append([]string{"undo", w.app, "--author", ann}, args...)...)
	}
	first, second, branch := two.Stable.Commit, two.Release.Commit, w.revert()

	w.wantText(undo(exitOK, "--dry-run"), "Undo "+string(two.Release.Hash)+" of "+w.app, "M apps/"+w.app+"/app.yaml",
		"nothing was pushed to ")
	w.wantBranch(branch, "")
	w.wantText(undo(exitOK, "--reason", "too blue"), "pushed "+branch, "git merge --no-ff origin/"+branch)
	w.wantText(w.repo.Message(branch), "Reason: too blue", "in flight")
	w.wantText(w.command(exitOK, "get", w.app), "git merge --no-ff origin/"+branch)

	// The proposal stays while the head has v2, even after v2 is promoted.
	w.command(exitOK, "promote", w.app, "--author", ann)
	p.awaitHealthy(second)
	if w.repo.Ref(branch) == "" {
		t.Fatal("the promotion has removed the proposal to undo it")
	}
	w.repo.Merge(branch)
	w.command(exitNotYet, "status", w.app)
	s := p.await("back at v1", func(s rollout.State) bool {
		return s.Phase == rollout.Healthy && s.Stable.Hash == two.Stable.Hash
	})
	w.wantImage("v1")
	w.wantBranch(branch, "")
	w.wantText(w.command(exitOK, "status", w.app), w.app+" Healthy "+string(s.Stable.Hash))
	w.command(exitDegraded, "status", w.app, "--commit", second)

	// Propose to undo the rollback itself.
	w.wantText(undo(exitOK), "goes back to "+string(two.Release.Hash))
	w.wantText(undo(exitOK, "--to", first), "nothing to undo")

	// undo must refuse a rejected version as the target of --to.
	third := p.awaitPaused(w.pushVersion("v3"))
	w.wantBranch(branch, "") // the proposal to undo the rollback is outdated
	w.decide(third.Release.Hash, "abort", "too slow")
	p.awaitPhase(rollout.Degraded)
	w.command(exitDegraded, "status", w.app)
	w.wantText(undo(exitFailed, "--to", string(third.Release.Hash)), "was rejected too", "too slow")

	w.wantText(w.command(exitOK, "history", w.app), "4 releases", "rejected", "too slow", "promoted by Ann Lee",
		"verified before", "first version")
	w.wantText(w.command(exitOK, "history", w.app, "--limit", "1"), "1 release ", "--limit 2")
	w.wantText(w.command(exitOK, "history", w.app, "-o", "json"), `"outcome": "rejected"`, `"promotedBy": [`)
}

// TestStatusWaits checks that `status --wait` prints a line for each transition and ends when the new release is healthy.
func TestStatusWaits(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	second := w.push("v2", version("v2-slow3s", "    canary: {steps: [{setWeight: 50}, {pause: {duration: 2s}}]}\n"))
	done := make(chan string)
	go func() {
		done <- w.command(exitOK, "status", w.app, "--wait", "--timeout", "5m", "--refresh", "100ms")
	}()
	time.Sleep(300 * time.Millisecond) // v1 is still healthy, but status --wait must not end
	p.awaitHealthy(second)
	text := <-done
	w.wantText(text, " Healthy ", " Progressing ", "step 1/2", w.app+": healthy at "+rollout.ShortID(second))
	if lines := strings.Count(text, "\n"); lines < 4 || lines > 12 {
		t.Errorf("%d lines:\n%s", lines, text)
	}
}
