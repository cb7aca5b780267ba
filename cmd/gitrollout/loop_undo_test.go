package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// command runs a command line on the test's world, without the cluster, and returns its output.
func (w *loopWorld) command(want exitCode, args ...string) string {
	w.Helper()
	var out, errs bytes.Buffer
	args = append(args, "--repo", w.server.URL, "--cluster", "test")
	if got := run(w.Context(), args, strings.NewReader(""), &out, &errs); exitCode(got) != want {
		w.Errorf("gitrollout %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, want, &out, &errs)
	}
	return out.String() + errs.String()
}

func (w *loopWorld) wantText(text string, parts ...string) {
	w.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

// TestUndo proposes an undo, which survives the release's transitions, rolls the app back after its merge, and is in
// the history.
func TestUndo(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	ann := []string{"--author", "Ann Lee <ann@example.com>"}
	p := w.start()
	first := w.repo.Head()
	one := p.awaitHealthy(first)
	second := w.push("v2", version("v2", halfThenGate))
	two := p.awaitPaused(second)
	branch := "gitrollout/revert/test/" + w.app

	w.wantText(w.command(exitOK, append([]string{"undo", w.app, "--dry-run"}, ann...)...), "Undo "+string(two.Release.Hash)+" of "+w.app, "M apps/"+w.app+"/app.yaml", "not pushed")
	if w.repo.Ref(branch) != "" {
		t.Error("--dry-run has pushed it")
	}
	w.wantText(w.command(exitOK, append([]string{"undo", w.app, "--reason", "too blue"}, ann...)...), "pushed "+branch, "git merge --no-ff origin/"+branch)
	w.wantText(w.repo.Message(branch), "Reason: too blue", "in flight")
	w.wantText(w.command(exitOK, "get", w.app), "git merge --no-ff origin/"+branch)

	// It refers to this release until Git asks for another one.
	w.command(exitOK, append([]string{"promote", w.app}, ann...)...)
	p.awaitHealthy(second)
	if w.repo.Ref(branch) == "" {
		t.Fatal("the promotion has removed the proposal to undo it")
	}
	w.repo.Merge(branch)
	w.command(exitNotYet, "status", w.app)
	s := p.await("back at v1", func(s rollout.State) bool {
		return s.Phase == rollout.Healthy && s.Stable.Hash == one.Stable.Hash
	})
	if w.image() != "v1" || w.repo.Ref(branch) != "" {
		t.Errorf("image %s; the merged proposal is at %q", w.image(), w.repo.Ref(branch))
	}
	w.wantText(w.command(exitOK, "status", w.app), w.app+" Healthy "+string(s.Stable.Hash))
	w.command(exitDegraded, "status", w.app, "--commit", second)

	// Undo the undo.
	w.wantText(w.command(exitOK, append([]string{"undo", w.app}, ann...)...), "goes back to "+string(two.Release.Hash))
	w.wantText(w.command(exitOK, append([]string{"undo", w.app, "--to", first}, ann...)...), "nothing to undo")

	// A rejected version is no target for an undo.
	third := p.awaitPaused(w.push("v3", version("v3", halfThenGate)))
	if w.repo.Ref(branch) != "" {
		t.Error("a proposal to undo something else is still there")
	}
	w.decide(third.Release.Hash, "abort", "too slow")
	p.await("degraded", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	w.command(exitDegraded, "status", w.app)
	text := w.command(exitFailed, append([]string{"undo", w.app, "--to", string(third.Release.Hash)}, ann...)...)
	w.wantText(text, "was itself rejected", "too slow")

	text = w.command(exitOK, "history", w.app)
	w.wantText(text, "4 releases", "rejected", "too slow", "promoted by Ann Lee", "verified before", "first version")
	w.wantText(w.command(exitOK, "history", w.app, "--limit", "1"), "1 release ", "--limit 2")
	w.wantText(w.command(exitOK, "history", w.app, "-o", "json"), `"outcome": "rejected"`, `"promotedBy": [`)
}

// TestStatusWaits prints a line for each transition, until the release is healthy.
func TestStatusWaits(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	second := w.push("v2", version("v2-slow3s", "    canary: {steps: [{setWeight: 50}, {pause: {duration: 2s}}]}\n"))
	done := make(chan string)
	go func() {
		done <- w.command(exitOK, "status", w.app, "--wait", "--timeout", "5m", "--refresh", "100ms")
	}()
	time.Sleep(300 * time.Millisecond) // the old version is healthy and must not count
	p.awaitHealthy(second)
	text := <-done
	w.wantText(text, " Healthy ", " Progressing ", "step 1/2", w.app+": healthy at "+rollout.ShortID(second))
	if lines := strings.Count(text, "\n"); lines < 4 || lines > 12 {
		t.Errorf("%d lines:\n%s", lines, text)
	}
}
