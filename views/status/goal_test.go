package status_test

import (
	"errors"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/status"
)

func TestJudge(t *testing.T) {
	w := rollout.Workload{Namespace: "shop", Name: "shop"}
	build := func(template rollout.Hash, digest string) *rollout.Render {
		return &rollout.Render{Digest: digest, Specs: []rollout.Spec{{Workload: w, Canary: &rollout.Canary{}}},
			Templates: map[rollout.Workload]rollout.Hash{w: template}}
	}
	old, now, newer := build("h1-old", "old"), build("h1-now", "now"), build("h1-newer", "newer")
	oldRelease, release := &rollout.Release{Hash: old.Release()}, &rollout.Release{Hash: now.Release(), Commit: "1234567890"}
	ask := status.Goal{Until: "healthy", Hash: now.Release(), Digest: "now", Commit: "abcdef0123"}
	byHash := status.Goal{Until: "healthy", Hash: now.Release()}
	until := func(what string) status.Goal { g := ask; g.Until = what; return g }
	look := func(head, source *rollout.Render, s rollout.State) strategies.Input {
		s.Source = "abcdef0123"
		return strategies.Input{Head: strategies.Head{Render: head, Commit: rollout.Commit{ID: "head"}}, Source: source, State: s}
	}
	rejected := []rollout.Rejection{{Hash: now.Release(), Reason: "too slow"}}
	held := func(commit string) rollout.State {
		return rollout.State{Phase: rollout.Healthy, Stable: oldRelease, Held: &rollout.Held{Reason: "Adoption", Commit: commit}}
	}
	broken := look(nil, old, rollout.State{Phase: rollout.Healthy, Stable: oldRelease})
	broken.Head.Err = errors.New("broken")

	ailing := look(now, now, rollout.State{Phase: rollout.Healthy, Stable: release})
	ailing.Observed.Workloads = map[rollout.Workload]rollout.ObservedWorkload{w: {Replicas: 1}}
	moving := func(phase rollout.Phase) rollout.State {
		return rollout.State{Phase: phase, Stable: oldRelease, Release: release}
	}
	unreadable := status.Goal{Until: "started"} // the newest commit cannot be rendered
	byNoHash := look(nil, old, rollout.State{Phase: rollout.Healthy, Stable: &rollout.Release{}, Release: &rollout.Release{}})
	byNoHash.Head.Err = broken.Head.Err
	olderInFlight := broken
	olderInFlight.State = moving(rollout.Progressing)
	refused := look(now, build("h1-now", "before"), moving(rollout.Progressing))
	refused.State.Held = &rollout.Held{Reason: rollout.HeldInvalidInput, Message: "line 3\nis bad", Commit: "head"}
	aborting, overtaken := moving(rollout.Aborting), moving(rollout.Progressing)
	overtaken.Release = &rollout.Release{Hash: newer.Release()}

	const waits = "waits"
	for name, c := range map[string]struct {
		goal status.Goal
		in   strategies.Input
		want string // the exit code of "gitrollout status", or "waits" while the command waits
	}{
		"nothing recorded":           {ask, look(now, nil, rollout.State{}), waits},
		"the old version is healthy": {ask, look(now, old, rollout.State{Phase: rollout.Healthy, Stable: oldRelease}), waits},
		"in flight":                  {ask, look(now, now, moving(rollout.Progressing)), waits},
		"at a gate":                  {ask, look(now, now, moving(rollout.Paused)), waits},
		"stalled, which heals":       {ask, look(now, now, moving(rollout.Stalled)), waits},
		"healthy":                    {ask, look(now, now, rollout.State{Phase: rollout.Healthy, Stable: release}), "0"},
		"healthy by hash":            {byHash, look(newer, now, rollout.State{Phase: rollout.Healthy, Stable: release}), "0"},
		"only its configuration is older": {ask,
			look(now, build("h1-now", "before"), rollout.State{Phase: rollout.Healthy, Stable: release}), waits},
		"rejected": {ask, look(now, old, rollout.State{Phase: rollout.Degraded, Stable: oldRelease, Rejected: rejected}), "6"},
		"tried again": {ask,
			look(now, now, rollout.State{Phase: rollout.Progressing, Stable: oldRelease, Release: release, Rejected: rejected}), waits},
		"rolling back":                          {ask, look(now, now, aborting), "6"},
		"reverted":                              {ask, look(old, old, rollout.State{Phase: rollout.Healthy, Stable: oldRelease}), "6"},
		"overtaken":                             {ask, look(newer, newer, overtaken), "6"},
		"overtaken, by hash":                    {byHash, look(newer, nil, overtaken), "6"},
		"pushed over, not yet followed":         {ask, look(newer, now, moving(rollout.Progressing)), waits},
		"held":                                  {ask, look(now, old, held("head")), "8"},
		"held by an error that was fixed since": {ask, look(now, old, held("before")), waits},
		"the branch cannot be built":            {ask, broken, "8"},
		"waits for a window": {ask,
			look(now, old, rollout.State{Phase: rollout.Healthy, Stable: oldRelease, Held: &rollout.Held{Reason: rollout.HeldClosed}}), waits},

		"healthy, and not well for long": {ask, look(now, now, rollout.State{Phase: rollout.Healthy, Stable: release, Unhealthy: "0 of 5"}), "8"},
		"for degraded, and it is not well": {until("degraded"),
			look(now, now, rollout.State{Phase: rollout.Healthy, Stable: release, Unhealthy: "0 of 5"}), "0"},
		"healthy, and pods are on their way": {ask, ailing, waits},

		"for paused":                      {until("paused"), look(now, now, moving(rollout.Paused)), "0"},
		"for paused, not yet":             {until("paused"), look(now, now, moving(rollout.Progressing)), waits},
		"for paused, and past it":         {until("paused"), look(now, now, rollout.State{Phase: rollout.Healthy, Stable: release}), "0"},
		"for paused, with older content":  {until("paused"), look(now, build("h1-now", "before"), moving(rollout.Paused)), waits},
		"for started":                     {until("started"), look(now, now, moving(rollout.Progressing)), "0"},
		"for started, with older content": {until("started"), look(now, build("h1-now", "before"), moving(rollout.Progressing)), waits},
		"for started, by hash": {status.Goal{Until: "started", Hash: now.Release()},
			look(newer, build("h1-now", "before"), moving(rollout.Progressing)), "0"},
		"for started, without Rollout documents": {status.Goal{Until: "started", Digest: "plain"},
			look(build("", "plain"), now, moving(rollout.Progressing)), waits},
		"for started, and it is not well": {until("started"),
			look(now, now, rollout.State{Phase: rollout.Healthy, Stable: release, Unhealthy: "0 of 5"}), "0"},
		"for started, and the branch cannot be built": {unreadable, olderInFlight, "8"},
		"and neither version has a hash":              {unreadable, byNoHash, "8"},
		"for healthy, and the branch cannot be built": {status.Goal{Until: "healthy"}, byNoHash, "8"},
		"for started, and the new content is refused": {until("started"), refused, "8"},
		"for degraded": {until("degraded"),
			look(now, old, rollout.State{Phase: rollout.Degraded, Stable: oldRelease, Rejected: rejected}), "0"},
		"for degraded, and it is well": {until("degraded"), look(now, now, rollout.State{Phase: rollout.Healthy, Stable: release}), "6"},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.goal.Judge(c.in)
			got := map[status.Ending]string{status.NotYet: waits, status.Reached: "0", status.Missed: "6", status.Stuck: "8"}[v.Ending]
			compare.CheckNamed(t, v.Text, c.want, got)
		})
	}
	for want, v := range map[string]status.Verdict{
		"held: broken":              unreadable.Judge(byNoHash),
		"held: line 3 is bad":       until("started").Judge(refused),
		"up to date with abcdef0":   until("started").Judge(look(now, now, moving(rollout.Progressing))),
		"healthy at abcdef0":        ask.Judge(look(now, now, rollout.State{Phase: rollout.Healthy, Stable: release})),
		"paused at 1234567":         until("paused").Judge(look(now, now, moving(rollout.Paused))),
		"it was rejected: too slow": ask.Judge(look(now, old, rollout.State{Phase: rollout.Degraded, Stable: oldRelease, Rejected: rejected})),
	} {
		compare.Check(t, want, v.Text)
	}
}
