package main

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

const freezeText = "apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\nreason: the database moves\n"

// TestFreezeAndWindows releases under a freeze and around a window: a waiting release is recorded once and nothing is
// written meanwhile, also by a new process. A merged promotion takes effect afterwards; an abort does not wait.
func TestFreezeAndWindows(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	freeze := rollout.FreezePath("test")
	w.repo.CommitFiles("freeze", map[string]string{freeze: freezeText})
	second := w.push("v2", with(version("v2", halfThenGate), nil))
	s := p.await("waiting", func(s rollout.State) bool { return s.Held.Waits() })
	if s.Phase != rollout.Healthy || s.Release != nil || !strings.Contains(s.Held.Message, `the freeze "the database moves"`) {
		t.Errorf("it waits as %s, %+v", s.Phase, s.Held)
	}
	head, writes := w.repo.Ref(stateBranch), w.api.count()
	if err := p.passes(10); err != nil {
		t.Error(err)
	}
	p.end()
	p = w.start()
	if err := p.passes(10); err != nil {
		t.Error(err)
	}
	if now := w.repo.Ref(stateBranch); now != head || w.api.count() != writes {
		t.Errorf("while it waits: recorded %v, wrote %v", w.history()[0], w.api.since(writes))
	}
	w.repo.Remove(freeze).Commit("thaw")
	p.awaitPaused(second)

	// A window that has just ended by the loop's clock delays a promotion.
	now := time.Now().Add(w.skew).UTC()
	begins := now.Add(-10 * time.Minute).Format("4 15 * * *")
	config := w.repo.Show("main", configFile)
	w.repo.CommitFiles("a window", map[string]string{configFile: config + "windows:\n- {kind: allow, schedule: \"" + begins + "\", duration: 2m}\n"})
	w.repo.Merge("gitrollout/promote/test/" + w.app)
	head = w.repo.Ref(stateBranch)
	if err := p.passes(5); err != nil {
		t.Error(err)
	}
	if s := w.state(); s.Phase != rollout.Paused || w.repo.Ref(stateBranch) != head {
		t.Errorf("outside of the window: %s, recorded %v", s.Phase, w.history()[0])
	}
	if due := p.NextDue(); due.Sub(now) < 23*time.Hour || due.Sub(now) > 24*time.Hour {
		t.Errorf("it looks again at %s, want it within a day of %s", due, now)
	}
	w.skew += 24*time.Hour - 10*time.Minute
	p.awaitHealthy(second)

	w.repo.CommitFiles("open again", map[string]string{configFile: config})
	third := w.push("v3", version("v3", halfThenGate))
	p.awaitPaused(third)
	w.repo.CommitFiles("freeze in a file that cannot be parsed", map[string]string{freeze: "reason: ["})
	w.repo.CommitFiles("abort", map[string]string{rollout.PromotionPath("test", w.app): "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nrelease: " +
		string(w.state().Release.Hash) + "\ndecision: abort\n"})
	p.await("back", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	w.push("v4", version("v4", halfThenGate))
	s = p.await("waiting", func(s rollout.State) bool { return s.Held.Waits() })
	if !strings.Contains(s.Held.Message, "freeze.yaml: is not valid YAML") {
		t.Errorf("it waits for %s", s.Held.Message)
	}
}
