package reconciler

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

func TestFacts(t *testing.T) {
	release := &rollout.Release{Hash: "h1-1", Commit: "c1", Author: "Ann"}
	shop, web := rollout.Workload{Namespace: "a", Name: "shop"}, rollout.Workload{Namespace: "a", Name: "web"}
	about := func(phase string, more ...any) []any {
		return append([]any{"app", "shop", "cluster", "prod", "phase", phase}, more...)
	}
	byAnn := func(phase string, more ...any) []any {
		return about(phase, append([]any{"release", "h1-1", "commit", "c1", "author", "Ann"}, more...)...)
	}
	for name, tc := range map[string]struct {
		state   rollout.State
		retreat bool
		want    []any
		reason  string
		warning bool
	}{
		"healthy": {rollout.State{Phase: rollout.Healthy, Stable: release}, false, byAnn("Healthy"), "Healthy", false},
		"at a step": {rollout.State{Phase: rollout.Paused, Release: release,
			Progress: []rollout.Progress{{Workload: shop, Step: 1, Of: 4, Weight: 20}}}, false,
			byAnn("Paused", "step", "2/4", "weight", 20), "Paused", false},
		"several workloads": {rollout.State{Phase: rollout.Promoting, Release: release,
			Progress: []rollout.Progress{{Workload: shop, Step: 4, Of: 4, Weight: 100}, {Workload: web, Of: 2, Weight: 50}}}, false,
			byAnn("Promoting", "step", "a/shop 4/4, a/web 1/2", "weight", 50), "Promoting", false},
		"back": {rollout.State{Phase: rollout.Aborting, Release: release, Reason: "aborted by Ann"}, true,
			byAnn("Aborting", "reason", "aborted by Ann"), "Aborting", true},
		"degraded": {rollout.State{Phase: rollout.Degraded, Stable: release, Rejected: []rollout.Rejection{{Hash: "h1-2", Commit: "c2"}}}, false,
			about("Degraded", "release", "h1-2", "commit", "c2"), "Degraded", true},
		"held": {rollout.State{Phase: rollout.Healthy, Held: &rollout.Held{Reason: "InvalidInput", Message: "a.yaml: no"}}, false,
			about("Healthy", "held", "InvalidInput", "message", "a.yaml: no"), "InvalidInput", true},
		"waits for a window": {rollout.State{Phase: rollout.Healthy,
			Held: &rollout.Held{Reason: rollout.HeldClosed, Message: "until noon"}}, false,
			about("Healthy", "held", "ReleasesClosed", "message", "until noon"), "ReleasesClosed", false},
	} {
		t.Run(name, func(t *testing.T) {
			tc.state.App = "shop"
			compare.Check(t, tc.want, facts("prod", tc.state))
			a := report.App{Decision: strategies.Decision{State: tc.state, Rollback: tc.retreat}}
			reason, warning := a.Note()
			compare.CheckNamed(t, "Event", []any{tc.reason, tc.warning}, []any{reason, warning})
		})
	}
}
