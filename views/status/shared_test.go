package status_test

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
	"gitrollout.dev/gitrollout/views/status"
)

func place(id string, cohort int) rollout.Place {
	return rollout.Place{File: "base/web.yaml", ID: id, Cohort: cohort, Of: 3}
}

// TestSharedOf checks an app's state in a shared change. An app can be done with or without a new version.
func TestSharedOf(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	here := place("5832d1e", 1)
	for want, change := range map[string]func(in *strategies.Input){
		"waiting":       func(in *strategies.Input) { in.Entry = &cohort.Entry{Place: here} },
		"entered":       func(in *strategies.Input) { in.State.Phase = rollout.Progressing },
		"entered again": func(in *strategies.Input) { in.State.Unhealthy = "no pod is ready" },
		"done":          func(in *strategies.Input) { in.State.Stable.Since = at },
		"done again":    func(in *strategies.Input) { in.State.Entered.Well = at },
		"rejected": func(in *strategies.Input) {
			w := rollout.Workload{Namespace: "shop", Name: "shop"}
			in.Head.Render = &rollout.Render{Specs: []rollout.Spec{{Workload: w, Canary: &rollout.Canary{}}},
				Templates: map[rollout.Workload]rollout.Hash{w: "h1-2"}}
			in.State.Phase = rollout.Degraded
			in.State.Rejected = []rollout.Rejection{{Hash: in.Head.Render.Release()}}
		},
	} {
		in := strategies.Input{Place: &here, State: rollout.State{Phase: rollout.Healthy, Entered: &rollout.Entered{At: at, Place: here},
			Stable: &rollout.Release{Hash: "h1-1", Since: at.Add(-time.Hour)}}}
		change(&in)
		got := status.SharedOf(in)
		if got == nil || got.Place != here || got.State != want && got.State+" again" != want {
			t.Errorf("%s: %+v", want, got)
		}
	}
	if s := status.SharedOf(strategies.Input{State: rollout.State{Entered: &rollout.Entered{Place: here}}}); s != nil {
		t.Errorf("a former change: %+v", s)
	}
}

// TestSharedChanges checks the counts of a listing's changes. A change that all apps run is forgotten.
func TestSharedChanges(t *testing.T) {
	var l status.Listing
	add := func(n int, s *status.Shared) {
		for range n {
			l.Apps = append(l.Apps, status.App{Shared: s})
		}
	}
	add(210, &status.Shared{place("5832d1e", 3), "waiting"})
	add(20, &status.Shared{place("5832d1e", 2), "waiting"})
	add(3, &status.Shared{place("5832d1e", 1), "done"})
	add(2, &status.Shared{place("5832d1e", 1), "entered"})
	add(1, &status.Shared{place("5832d1e", 1), "rejected"})
	add(9, &status.Shared{place("0000000", 1), "done"})
	add(1, nil)
	l.SetChanges()
	if len(l.Changes) != 1 {
		t.Fatalf("%+v", l.Changes)
	}
	compare.Check(t, "base/web.yaml (5832d1e), cohort 2 of 3: 3 of 236 apps done, 2 entered, 1 rejected, 230 waiting", l.Changes[0].String())
	if l.Apps[0].Shared == nil || l.Apps[len(l.Apps)-2].Shared != nil {
		t.Error("the apps of a finished change still have a place, or others have none")
	}
}
