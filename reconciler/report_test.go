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
	for name, tc := range map[string]struct {
		state   rollout.State
		retreat bool
		want    []any
		reason  string
		warning bool
	}{
		"healthy": {
			rollout.State{App: "shop", Phase: rollout.Healthy, Stable: release}, false,
			[]any{"app", "shop", "cluster", "prod", "phase", "Healthy", "release", "h1-1", "commit", "c1", "author", "Ann"}, "Healthy", false,
		},
		"at a step": {
			rollout.State{App: "shop", Phase: rollout.Paused, Release: release, Progress: []rollout.Progress{{Workload: shop, Step: 1, Of: 4, Weight: 20}}}, false,
			[]any{"app", "shop", "cluster", "prod", "phase", "Paused", "release", "h1-1", "commit", "c1", "author", "Ann", "step", "2/4", "weight", 20}, "Paused", false,
		},
		"several workloads": {
			rollout.State{App: "shop", Phase: rollout.Promoting, Release: release, Progress: []rollout.Progress{
				{Workload: shop, Step: 4, Of: 4, Weight: 100}, {Workload: web, Of: 2, Weight: 50},
			}}, false,
			[]any{"app", "shop", "cluster", "prod", "phase", "Promoting", "release", "h1-1", "commit", "c1", "author", "Ann", "step", "a/shop 4/4, a/web 1/2", "weight", 50},
			"Promoting", false,
		},
		"back": {
			rollout.State{App: "shop", Phase: rollout.Aborting, Release: release, Reason: "aborted by Ann"}, true,
			[]any{"app", "shop", "cluster", "prod", "phase", "Aborting", "release", "h1-1", "commit", "c1", "author", "Ann", "reason", "aborted by Ann"}, "Aborting", true,
		},
		"degraded": {
			rollout.State{App: "shop", Phase: rollout.Degraded, Stable: release, Rejected: []rollout.Rejection{{Hash: "h1-2", Commit: "c2"}}}, false,
			[]any{"app", "shop", "cluster", "prod", "phase", "Degraded", "release", "h1-2", "commit", "c2"}, "Degraded", true,
		},
		"held": {
			rollout.State{App: "shop", Phase: rollout.Healthy, Held: &rollout.Held{Reason: "InvalidInput", Message: "a.yaml: no"}}, false,
			[]any{"app", "shop", "cluster", "prod", "phase", "Healthy", "held", "InvalidInput", "message", "a.yaml: no"}, "InvalidInput", true,
		},
		"waits for a window": {
			rollout.State{App: "shop", Phase: rollout.Healthy, Held: &rollout.Held{Reason: rollout.HeldClosed, Message: "until noon"}}, false,
			[]any{"app", "shop", "cluster", "prod", "phase", "Healthy", "held", "ReleasesClosed", "message", "until noon"}, "ReleasesClosed", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := compare.Diff(tc.want, facts("prod", tc.state)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			a := report.App{Decision: strategies.Decision{State: tc.state, Rollback: tc.retreat}}
			if reason, warning := a.Note(); reason != tc.reason || warning != tc.warning {
				t.Errorf("Event %s %v, want %s %v", reason, warning, tc.reason, tc.warning)
			}
		})
	}
}
