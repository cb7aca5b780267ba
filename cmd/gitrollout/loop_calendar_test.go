package main

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

const freezeText = "apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\nreason: the database moves\n"

// TestFreezeAndWindows checks that no release starts during a freeze, and that no promotion advances outside of a window.
// The delay is recorded once. Meanwhile, the running process and a new process write nothing. An abort is not delayed.
func TestFreezeAndWindows(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	freeze := rollout.FreezePath("test")
	w.repo.CommitFiles("freeze", map[string]string{freeze: freezeText})
	second := w.pushVersion("v2")
	s := p.await("waiting", func(s rollout.State) bool { return s.Held.Waits() })
	if s.Phase != rollout.Healthy || s.Release != nil || !strings.Contains(s.Held.Message, `the freeze "the database moves"`) {
		t.Errorf("it waits as %s, %+v", s.Phase, s.Held)
	}
	recorded, writes := w.repo.Ref(stateBranch), w.api.count()
	p.passWell(10)
	p = p.restart()
	p.passWell(10)
	w.wantRecorded(recorded)
	w.wantNoWritesSince(writes)
	w.repo.Remove(freeze).Commit("thaw")
	p.awaitPaused(second)

	// On the clock of the loops, a window has just ended, so the promotion must wait for the next window.
	now := w.now().UTC()
	begins := now.Add(-10 * time.Minute).Format("4 15 * * *")
	config := w.repo.Show("main", configFile)
	w.configure(config + "windows:\n- {kind: allow, schedule: \"" + begins + "\", duration: 2m}\n")
	w.repo.Merge(w.promotion())
	p.wantUnmoved(stateBranch, 5)
	if s := w.state(); s.Phase != rollout.Paused {
		t.Errorf("outside of the window: %s", s.Phase)
	}
	if due := p.NextDue(); due.Sub(now) < 23*time.Hour || due.Sub(now) > 24*time.Hour {
		t.Errorf("it looks again at %s, want it within a day of %s", due, now)
	}
	w.skew += 24*time.Hour - 10*time.Minute
	p.awaitHealthy(second)

	w.configure(config)
	s = p.awaitPaused(w.pushVersion("v3"))
	w.repo.CommitFiles("freeze in a file that cannot be parsed", map[string]string{freeze: "reason: ["})
	w.decide(s.Release.Hash, "abort", "")
	p.awaitPhase(rollout.Degraded)
	w.pushVersion("v4")
	s = p.await("waiting", func(s rollout.State) bool { return s.Held.Waits() })
	w.wantText(s.Held.Message, "freeze.yaml: is not valid YAML")
}
