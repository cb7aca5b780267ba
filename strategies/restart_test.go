package strategies_test

import (
	"testing"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// TestStartOver checks that an app on a new cluster first applies its stable version, whatever its phase on the old cluster was. Then the
// release of the head's version begins at the first step.
func TestStartOver(t *testing.T) {
	h := oneWeb(nil)
	rests := world(h)
	h.push(version("v2"))
	released := inFlight(h, 1, set(h, commitID(0), 8, 8), set(h, commitID(1), 2, 2))
	for name, in := range map[string]strategies.Input{"at rest": rests, "in flight": released} {
		t.Run(name, func(t *testing.T) {
			in.State.Held = &rollout.Held{Reason: "InvalidInput"}
			s, ok := strategies.StartOver(in.State, noon)
			if !ok || s.Phase != rollout.Aborting || s.Source != commitID(0) || s.Held != nil || s.Serial <= in.State.Serial {
				t.Fatalf("got %+v, %t", s, ok)
			}
			readAgain(t, s)
			in.State, in.Source, in.Observed = s, h.at(commitID(0)), rollout.Observed{}
			checkPhase(t, "on an empty cluster", in, rollout.Aborting)
			in.Observed = world(h).Observed
			switch d := strategies.Decide(in); {
			case name == "at rest" && d.State.Phase != rollout.Healthy:
				t.Errorf("with stable there it is %s", d.State.Phase)
			case name == "in flight" && (d.State.Release == nil || d.State.Release.Commit != commitID(1) || d.State.Progress[0].Step != 0):
				t.Errorf("with stable there the release is %+v at %+v", d.State.Release, d.State.Progress)
			}
		})
	}
	if _, ok := strategies.StartOver(rollout.State{App: "shop", Phase: rollout.Progressing}, noon); ok {
		t.Error("an app that was never stable has somewhere to go back to")
	}
}

// TestStartOverWhere checks which commit is applied first on a new cluster: the stable release's commit, or a later commit with the same
// version. A commit that is rejected or in flight is not applied.
func TestStartOverWhere(t *testing.T) {
	stable := &rollout.Release{Hash: "h1-1", Commit: "released"}
	next := &rollout.Release{Hash: "h1-2", Commit: "next"}
	for name, c := range map[string]struct {
		s    rollout.State
		want string
	}{
		"changed":   {rollout.State{Phase: rollout.Healthy, Stable: stable, Source: "changed"}, "changed"},
		"released":  {rollout.State{Phase: rollout.Healthy, Stable: stable}, "released"},
		"rejected":  {rollout.State{Phase: rollout.Degraded, Stable: stable, Source: "rejected"}, "released"},
		"in flight": {rollout.State{Phase: rollout.Healthy, Stable: stable, Source: "next", Release: next}, "released"},
	} {
		if to, ok := strategies.StartOver(c.s, noon); !ok || to.Source != c.want || to.Rollback.To != c.want {
			t.Errorf("%s: it starts over at %s, want %s", name, to.Source, c.want)
		}
	}
}
