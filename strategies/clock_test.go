package strategies

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gitrollout.dev/gitrollout/rollout"
)

// TestClockThatWasAhead: what a clock wrote that is an hour ahead is begun anew, once and on record: a pause of a
// minute takes a minute. Clocks that are apart by seconds are left alone, and so is what is over.
func TestClockThatWasAhead(t *testing.T) {
	h := oneWeb(nil)
	h.push(version("v2"))
	at := func(ahead time.Duration) Input {
		in := inFlight(h, 2, set(h, commitID(0), 8, 8), set(h, commitID(1), 2, 2)) // soak, a minute
		pr := &in.State.Progress[0]
		pr.Entered = in.Now.Add(ahead)
		pr.Routed = &rollout.Routing{Step: 2, Weight: 20, At: in.Now.Add(ahead)}
		in.State.Analyses = []rollout.AnalysisRun{
			{Name: "web/over", Release: in.State.Release.Hash, Started: in.Now.Add(ahead), Phase: rollout.AnalysisSuccessful},
			{Name: "web/background", Release: in.State.Release.Hash, Started: in.Now.Add(ahead), Phase: rollout.AnalysisRunning},
		}
		return in
	}
	in := at(time.Hour)
	if d := Decide(in); !d.State.Progress[0].Entered.Equal(in.Now.Add(time.Hour)) || !d.Requeue.Equal(in.Now.Add(skew)) {
		t.Errorf("seen once: entered %s, and it looks again at %s", d.State.Progress[0].Entered, d.Requeue)
	}
	in.Future = Future(in.State, in.Now)
	d := Decide(in)
	pr := d.State.Progress[0]
	if pr.Step != 2 || !pr.Entered.Equal(in.Now) || !pr.Routed.At.Equal(in.Now) || len(d.State.Analyses) != 1 {
		t.Errorf("entered %s, routed %s, analyses %v", pr.Entered, pr.Routed.At, d.State.Analyses)
	}
	if want := testApp.Name + " goes on from now: its record says 2026-11-20T14:00:00Z, which a clock wrote that was ahead"; d.Subject != want {
		t.Errorf("got %q, want %q", d.Subject, want)
	}
	in.State, in.Future = d.State, Future(d.State, in.Now)
	if again := Decide(in); again.Subject != "" || !again.Requeue.Equal(in.Now.Add(time.Minute)) {
		t.Errorf("then %q, and it looks again at %s", again.Subject, again.Requeue)
	}
	in.Now = in.Now.Add(time.Minute)
	if next := Decide(in).State; next.Phase != rollout.Promoting {
		t.Errorf("a minute later it is %s at step %d", next.Phase, next.Progress[0].Step)
	}

	in = at(skew)
	in.Future = Future(in.State, in.Now)
	if s := Decide(in).State; !s.Progress[0].Entered.Equal(in.Now.Add(skew)) {
		t.Errorf("a clock that is %s ahead is put back to %s", skew, s.Progress[0].Entered)
	}
}

// TestRetreatOfAClockThatWasAhead: canary pods go after the delay that they were to stay for.
func TestRetreatOfAClockThatWasAhead(t *testing.T) {
	h := oneWeb(func(s *rollout.Spec) {
		s.Scaling = rollout.Surge
		s.Canary.StableService, s.Canary.CanaryService, s.Canary.AbortScaleDownDelaySeconds = "web", "web-canary", 30
	})
	h.push(version("v2"))
	in := inFlight(h, 1, set(h, commitID(0), 10, 10), set(h, commitID(1), 2, 2))
	in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Abort}
	want := Decide(in).State.Retreat
	ahead := in
	ahead.Now = in.Now.Add(time.Hour)
	in.State = Decide(ahead).State
	in.Future = Future(in.State, in.Now)
	if diff := cmp.Diff(want, Decide(in).State.Retreat); diff != "" {
		t.Error(diff)
	}
}
