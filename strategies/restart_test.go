package strategies

import (
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestStartOver checks an app on a new cluster: it first applies stable, whatever the old cluster was doing, and then
// releases Git's version from the first step.
func TestStartOver(t *testing.T) {
	for name, step := range map[string]int{"at rest": -1, "in flight": 1} {
		t.Run(name, func(t *testing.T) {
			h := oneWeb(nil)
			in := world(h)
			if step >= 0 {
				h.push(version("v2"))
				in = inFlight(h, step, set(h, commitID(0), 8, 8), set(h, commitID(1), 2, 2))
			}
			in.State.Held = &rollout.Held{Reason: "InvalidInput"}
			s, ok := StartOver(in.State, noon)
			if !ok || s.Phase != rollout.Aborting || s.Source != commitID(0) || s.Held != nil || s.Serial <= in.State.Serial {
				t.Fatalf("got %+v, %t", s, ok)
			}
			in.State, in.Source = s, h.at(commitID(0))
			in.Observed = rollout.Observed{}
			if d := Decide(in); d.State.Phase != rollout.Aborting {
				t.Errorf("on an empty cluster it goes on to %s: %s", d.State.Phase, d.Subject)
			}
			in.Observed = world(h).Observed
			d := Decide(in)
			if step < 0 && d.State.Phase != rollout.Healthy {
				t.Errorf("with stable there it is %s", d.State.Phase)
			}
			if step >= 0 && (d.State.Release == nil || d.State.Release.Commit != commitID(1) || d.State.Progress[0].Step != 0) {
				t.Errorf("with stable there the release is %+v at %+v", d.State.Release, d.State.Progress)
			}
			readAgain(t, s)
		})
	}
	if _, ok := StartOver(rollout.State{App: "shop", Phase: rollout.Progressing}, noon); ok {
		t.Error("an app that was never stable has somewhere to go back to")
	}
}

// TestStartOverWhere checks the commit of stable: its release, or a later change of objects without a new version. It
// is never a commit whose version was not approved.
func TestStartOverWhere(t *testing.T) {
	stable := &rollout.Release{Hash: "h1-1", Commit: "released"}
	for want, s := range map[string]rollout.State{
		"changed":  {Phase: rollout.Healthy, Stable: stable, Source: "changed"},
		"released": {Phase: rollout.Healthy, Stable: stable},
	} {
		if to, ok := StartOver(s, noon); !ok || to.Source != want || to.Rollback.To != want {
			t.Errorf("it starts over at %s, want %s", to.Source, want)
		}
	}
	for _, s := range []rollout.State{
		{Phase: rollout.Degraded, Stable: stable, Source: "rejected"},
		{Phase: rollout.Healthy, Stable: stable, Source: "next", Release: &rollout.Release{Hash: "h1-2", Commit: "next"}},
	} {
		if to, ok := StartOver(s, noon); !ok || to.Source != "released" {
			t.Errorf("%s, it starts over at %s", s.Phase, to.Source)
		}
	}
}
