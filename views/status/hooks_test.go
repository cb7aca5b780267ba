package status_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// TestNextOfHooks checks the suggested commands for a hook Job that is running, or that has failed and stopped its
// release. For a Job of an earlier attempt, or a failed Job that did not stop its release, no command is suggested.
func TestNextOfHooks(t *testing.T) {
	run := func(phase rollout.HookPhase) []rollout.HookRun {
		return []rollout.HookRun{{Name: "shop/old", Release: "h1-1", Job: "old-1-1", Phase: rollout.HookFailed},
			{Name: "shop/migrate", Release: "h1-2", Job: "migrate-2-1", Phase: phase}}
	}
	failed := []rollout.Rejection{{Hash: "h1-2", Hook: "shop/migrate"}}
	aborting := rollout.State{Hooks: run(rollout.HookFailed), Phase: rollout.Aborting, Rejected: failed}
	for name, c := range map[string]struct {
		s    rollout.State
		want string
	}{
		"runs": {rollout.State{Hooks: run(rollout.HookRunning)},
			"kubectl -n shop describe job migrate-2-1\nkubectl -n shop logs job/migrate-2-1"},
		"succeeded": {rollout.State{Hooks: run(rollout.HookSucceeded)}, ""},
		"failed": {rollout.State{Hooks: run(rollout.HookFailed), Phase: rollout.Degraded, Rejected: failed},
			"kubectl -n shop logs job/migrate-2-1"},
		"in the rollback": {aborting, "kubectl -n shop logs job/migrate-2-1"},
		"of another hook": {rollout.State{Hooks: run(rollout.HookFailed), Phase: rollout.Degraded,
			Rejected: []rollout.Rejection{{Hash: "h1-2", Hook: "shop/check"}}}, ""},
		"and goes on":      {rollout.State{Hooks: run(rollout.HookFailed), Phase: rollout.Progressing, Rejected: failed}, ""},
		"nothing rejected": {rollout.State{Hooks: run(rollout.HookFailed), Phase: rollout.Degraded}, ""},
		"held": {rollout.State{Hooks: run(rollout.HookFailed), Held: &rollout.Held{Reason: rollout.HeldHookFailed}},
			"kubectl -n shop logs job/migrate-2-1"},
		"held otherwise": {rollout.State{Hooks: run(rollout.HookFailed), Held: &rollout.Held{Reason: rollout.HeldClosed}}, ""},
		"none":           {rollout.State{}, ""},
	} {
		got := rollout.Mapped(status.NextOfHooks(c.s, nil), func(n status.Next) string { return n.Command })
		compare.CheckNamed(t, name, c.want, strings.Join(got, "\n"))
	}
}
