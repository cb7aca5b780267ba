package status_test

import (
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
	"gitrollout.dev/gitrollout/views/status"
)

// TestWaitForCohort checks the status of an app that waits for its cohort: it is Healthy, waits without an error, and suggests the command
// to end the wait. After the shared change has stopped, a user must act.
func TestWaitForCohort(t *testing.T) {
	w := rollout.Workload{Namespace: "shop", Name: "shop"}
	of := func(commit string, hash rollout.Hash) *rollout.Render {
		return &rollout.Render{Commit: rollout.Commit{ID: commit}, Digest: commit,
			Specs:     []rollout.Spec{{Workload: w, Canary: &rollout.Canary{}}},
			Templates: map[rollout.Workload]rollout.Hash{w: hash}}
	}
	head, source := of("c2", "h1-2"), of("c1", "h1-1")
	in := strategies.Input{
		App: rollout.App{Name: "shop"}, Head: strategies.Head{Commit: head.Commit, Render: head}, Source: source,
		Entry: &cohort.Entry{Waits: `cohort 2 of 3: "pay" is Paused with the same change (base/web.yaml)`, Hold: "cohort 2 of 3 (base/web.yaml)",
			Release: head.Release(), Commit: head.Commit},
		State: rollout.State{App: "shop", Phase: rollout.Healthy, Source: "c1",
			Stable: &rollout.Release{Hash: source.Release(), Commit: "c1", Templates: source.Staged()},
			Held: &rollout.Held{Reason: rollout.HeldCohort, Commit: "c2",
				Message: "release " + string(head.Release()) + " of c2 by Ann waits for cohort 2 of 3 (base/web.yaml)"}},
	}
	in.Answers.Healed = new(true)
	a := status.Of(in, "prod", nil)
	compare.CheckNamed(t, "phase", rollout.Healthy, a.Phase)
	compare.CheckNamed(t, "waiting", in.Entry.Waits, a.Waiting)
	compare.CheckNamed(t, "a user is needed", false, a.NeedsPerson())
	enters := func(n status.Next) bool {
		return strings.HasSuffix(n.Command, "gitrollout promote shop --through entry")
	}
	if !slices.ContainsFunc(a.Next, enters) || a.HeldText() != "waiting" || a.Coming == nil || a.Coming.Hash != head.Release() {
		t.Errorf("next %+v, %s, coming %+v", a.Next, a.HeldText(), a.Coming)
	}
	in.Entry.Held, in.Entry.Hold = rollout.HeldStage, "an approval for stage prod: gitrollout promote shop --through entry"
	in.State.Held = &rollout.Held{Reason: rollout.HeldStage, Commit: "c2", Message: in.Entry.Message()}
	for _, branch := range []string{"gitrollout/promote/prod/shop", "gitrollout/promote/prod/@c2"} {
		a = status.Of(in, "prod", map[string]string{branch: "c3"})
		if !slices.ContainsFunc(a.Next, func(n status.Next) bool { return n.Branch == branch }) || !slices.ContainsFunc(a.Next, enters) {
			t.Errorf("with %s: next %+v", branch, a.Next)
		}
	}
	in.State.Held = &rollout.Held{Reason: rollout.HeldCohort, Commit: "c2", Message: in.Entry.Message()}
	in.State.Held.Reason, in.Entry.Asks = rollout.HeldShared, true
	compare.CheckNamed(t, "a user is needed, when the change has stopped", true, status.Of(in, "prod", nil).NeedsPerson())
}
