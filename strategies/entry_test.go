package strategies_test

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

// TestEntry checks an app with a shared change at the head. While the app waits, it stays at its commit and is held without an error. Other
// apps' progress does not change the app's record. When the app may enter, its release begins, and the record has the entry.
func TestEntry(t *testing.T) {
	h := oneWeb(nil)
	in := world(h)
	h.push(func(s *source) { s.workloads[0].version = "v2" })
	in.Head = h.headInput()
	wait := &cohort.Entry{Waits: "cohort 2 of 3: x", Hold: "cohort 2 of 3", Due: in.Now.Add(time.Hour), Release: h.at(h.headID()).Release(),
		Commit: rollout.Commit{ID: h.headID(), Author: "Ann"}}
	was := in.State.Source
	in.Entry = wait
	d := strategies.Decide(in)
	want := "release " + string(wait.Release) + " of " + rollout.ShortID(h.headID()) + " by Ann waits for cohort 2 of 3"
	if d.State.Held == nil || d.State.Held.Message != want || d.State.Held.Reason != rollout.HeldCohort || d.State.Source != was ||
		d.State.Release != nil || d.Waiting != wait.Waits {
		t.Fatalf("%+v, held %+v", d, d.State.Held)
	}
	compare.CheckNamed(t, "it is due", wait.Due, d.Requeue)
	in.State = d.State
	in.Entry = &cohort.Entry{Waits: "cohort 2 of 3: y", Hold: "cohort 2 of 3", Release: wait.Release, Commit: rollout.Commit{ID: h.headID()}}
	if d = strategies.Decide(in); d.Subject != "" || !d.State.Equal(&in.State) {
		t.Errorf("recorded again: %q, held %+v", d.Subject, d.State.Held)
	}
	in.Entry.Asks, in.Entry.Hold = true, `cohort 2 of 3: "pay" rejected the same change`
	if d = strategies.Decide(in); !d.State.Held.Is(rollout.HeldShared) || d.Subject == "" {
		t.Errorf("stopped: %+v", d.State.Held)
	}
	in.Entry.Open, in.Entry.Place = true, rollout.Place{File: "base/web.yaml", ID: "5832d1e", Cohort: 2, Of: 3}
	d = strategies.Decide(in)
	if d.Ask != nil && d.Ask.Accept != "" {
		in.Answers.Accepted = map[string]error{d.Ask.Accept: nil}
		d = strategies.Decide(in)
	}
	e := d.State.Entered
	if d.State.Release == nil || d.State.Held != nil || e == nil || e.Commit != h.headID() || e.Was != was || e.Place != in.Entry.Place {
		t.Errorf("opened: %+v, entered %+v, held %+v", d.State.Release, e, d.State.Held)
	}
}

// TestEntryOfReplicas checks that an app which waits for a shared change gets more replicas at once, and fewer only with the change.
func TestEntryOfReplicas(t *testing.T) {
	for n, want := range map[int]int{30: 30, 0: 10} {
		h := oneWeb(nil)
		in := world(h)
		h.push(func(s *source) { s.workloads[0].version, s.workloads[0].spec.Replicas = "v2", new(n) })
		in.Head = h.headInput()
		in.Entry = &cohort.Entry{Waits: "cohort 2 of 3: x", Hold: "cohort 2 of 3", Commit: rollout.Commit{ID: h.headID(), Author: "Ann"}}
		for range 2 {
			d := strategies.Decide(in)
			got := 10
			if len(d.State.Replicas) > 0 {
				got = *d.State.Replicas[0].Count
			}
			compare.CheckNamed(t, "replicas", want, got)
			compare.CheckNamed(t, "is held", true, d.State.Held.Is(rollout.HeldCohort))
			in.State = d.State
		}
		if d := strategies.Decide(in); d.Subject != "" {
			t.Errorf("recorded again: %s", d.Subject)
		}
	}
}

// TestEntryOfAHeldApp checks that the record names a freeze, not the wait for other apps, as the app's hold.
func TestEntryOfAHeldApp(t *testing.T) {
	h := oneWeb(nil)
	in := world(h)
	h.push(func(s *source) { s.workloads[0].version = "v2" })
	in.Head = h.headInput()
	in.Calendar.Freeze = &rollout.Freeze{Reason: "holidays"}
	for _, open := range []bool{true, false} {
		in.Entry = &cohort.Entry{Open: open, Waits: "cohort 2 of 3: x", Hold: "cohort 2 of 3", Commit: rollout.Commit{ID: h.headID()}}
		d := strategies.Decide(in)
		if !d.State.Held.Is(rollout.HeldClosed) || !open && d.Subject != "" {
			t.Errorf("open %t: %q, held %+v", open, d.Subject, d.State.Held)
		}
		in.State = d.State
	}
}

// TestEntryOfAStage checks an app that waits for the previous stage. The app is held without an error, gets no additional replicas, and
// stays held while other clusters' records are being read. When the wait ends, the release begins. The commit subject has the entry's note,
// and the record has no entry.
func TestEntryOfAStage(t *testing.T) {
	h := oneWeb(nil)
	in := world(h)
	h.push(func(s *source) { s.workloads[0].version, s.workloads[0].spec.Replicas = "v2", new(30) })
	in.Head = h.headInput()
	e := cohort.Entry{Held: rollout.HeldStage, Waits: "staging-eu of stage staging: soaks until 14:05 UTC", Hold: "stage staging",
		Due: in.Now.Add(time.Minute), Release: h.at(h.headID()).Release(), Commit: rollout.Commit{ID: h.headID(), Author: "Ann"}}
	in.Entry = &e
	d := strategies.Decide(in)
	want := "release " + string(e.Release) + " of " + rollout.ShortID(h.headID()) + " by Ann waits for stage staging"
	if held := d.State.Held; held == nil || held.Message != want || !held.Is(rollout.HeldStage) || !held.Waits() || d.Waiting != e.Waits ||
		d.State.Release != nil || len(d.State.Replicas) > 0 || !d.Requeue.Equal(e.Due) {
		t.Fatalf("%+v, held %+v", d, d.State.Held)
	}
	in.State = d.State
	for _, hold := range []string{e.Hold, ""} {
		e.Hold = hold
		if d = strategies.Decide(in); d.Subject != "" || !d.State.Equal(&in.State) {
			t.Errorf("recorded again: %q, held %+v", d.Subject, d.State.Held)
		}
	}
	e.Hold, e.Held, e.Waits = "usable stages: x", rollout.HeldFleet, "usable stages: x"
	if d = strategies.Decide(in); !d.State.Held.Is(rollout.HeldFleet) || d.State.Held.Waits() {
		t.Errorf("held %+v", d.State.Held)
	}
	in.Entry = &cohort.Entry{Held: rollout.HeldStage, Open: true, Note: "stage staging has no app shop"}
	d = strategies.Decide(in)
	if d.Ask != nil && d.Ask.Accept != "" {
		in.Answers.Accepted = map[string]error{d.Ask.Accept: nil}
		d = strategies.Decide(in)
	}
	if d.State.Release == nil || d.State.Held != nil || d.State.Entered != nil ||
		!strings.HasSuffix(d.Subject, "; stage staging has no app shop") {
		t.Errorf("opened: %q, %+v, entered %+v, held %+v", d.Subject, d.State.Release, d.State.Entered, d.State.Held)
	}
}

// TestEntryOfARevert checks a push of the stable version during a release. The app rolls back to the pushed commit at once. If this commit
// must wait for the previous stage, the app rolls back to the stable commit instead.
func TestEntryOfARevert(t *testing.T) {
	for _, waits := range []bool{false, true} {
		h := oneWeb(nil)
		h.push(func(s *source) { s.workloads[0].version = "v2" })
		in := inFlight(h, 0)
		h.push(func(s *source) { s.workloads[0].version = "v1" })
		in.Head = h.headInput()
		want := h.headID()
		if waits {
			in.Entry, want = &cohort.Entry{Held: rollout.HeldStage, Commit: in.Head.Commit}, in.State.Stable.Commit
		}
		d := strategies.Decide(in)
		if d.State.Phase != rollout.Aborting || !d.Rollback || d.State.Rollback.To != want {
			t.Fatalf("waits %t: %s, %+v, want %s", waits, d.State.Phase, d.State.Rollback, want)
		}
		in.State = d.State
		for range 3 {
			d = strategies.Decide(in)
			in.State, in.Now = d.State, in.Now.Add(time.Hour)
		}
		compare.CheckNamed(t, "commit", want, in.State.Source)
	}
}
