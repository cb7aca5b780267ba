package status_test

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/status"
)

// contentOf returns the render of an app without Rollout documents. A hook Job runs before each release, and another after it. The last
// arguments are both Jobs' annotations (names and values in turn).
func contentOf(commit string, content rollout.Hash, more ...string) *rollout.Render {
	r := &rollout.Render{
		Commit:    rollout.Commit{ID: commit, Author: "Ann <ann@example.com>", Subject: "version " + string(content), When: noon},
		Digest:    string(content),
		Templates: map[rollout.Workload]rollout.Hash{web: "h1-" + content[3:]}, Content: content, Hooked: true,
	}
	for name, when := range map[string]string{"migrate": "before", "check": "after"} {
		annotations := map[string]any{hook.Annotation: when}
		for i := 0; i < len(more); i += 2 {
			annotations[more[i]] = more[i+1]
		}
		r.Objects = append(r.Objects, rollout.Object{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{},
			"metadata": map[string]any{"name": name, "namespace": "shop", "annotations": annotations}})
	}
	return r
}

// checked returns the input of an app without Rollout documents, with a release in flight. All pods have the new
// version, and the hook Job that runs after the release has not ended.
func checked() strategies.Input {
	head := contentOf("c2", "c1-2")
	stable, release := version("c1-1", 0), version("c1-2", 1)
	stable.Commit, release.Commit = "c1", "c2"
	return strategies.Input{
		Now: minute(5), App: rollout.App{Name: "shop", Path: "apps/shop", Namespace: "shop"},
		Answers: strategies.Answers{Healed: new(true), Jobs: map[string]rollout.JobState{"shop/check-2-1": {}, "shop/migrate-2-1": {}}},
		Head:    strategies.Head{Commit: head.Commit, Render: head}, Source: head,
		State: rollout.State{App: "shop", Path: "apps/shop", Phase: rollout.Promoting, Source: "c2", Stable: stable, Release: release,
			Hooks: []rollout.HookRun{
				{Name: "shop/migrate", When: rollout.HookBefore, Release: "c1-2", Job: "migrate-2-1", Phase: rollout.HookSucceeded,
					Since: minute(1), Attempt: 1},
				{Name: "shop/check", When: rollout.HookAfter, Release: "c1-2", Job: "check-2-1", Phase: rollout.HookRunning,
					Since: minute(2), Attempt: 1},
			}},
		Observed: rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{web: {
			Replicas: 2, Hash: "h1-2", Synced: true, Complete: true, Revisions: []rollout.Revision{
				{Name: "web-bbb", Pin: rollout.PodHash("bbb"), Hash: "h1-2", Current: true, Desired: 2, Pods: 2, ReadySince: []time.Time{noon, noon}},
			},
		}}},
	}
}

// follow makes r the render of the newest commit.
func follow(in *strategies.Input, r *rollout.Render) {
	in.Head = strategies.Head{Commit: r.Commit, Render: r}
}

// left replaces the release in flight by a newer release, which waits because a hook of the old release still runs.
func left(in *strategies.Input) {
	follow(in, contentOf("c3", "c1-3"))
	in.Source, in.State.Source = contentOf("c1", "c1-1"), "c1"
	in.State.Phase, in.State.Release = rollout.Healthy, nil
	in.State.Held = &rollout.Held{Reason: rollout.HeldHook, Message: "release c1-3 of c3 by Ann <ann@example.com> waits for its hooks"}
	for i := range in.State.Hooks {
		in.State.Hooks[i].Past = true
	}
	live := in.Observed.Workloads[web]
	live.Hash, live.Revisions[0].Hash = "h1-1", "h1-1"
	in.Observed.Workloads[web] = live
}

// TestHooksThatFailedAndKeptNothing checks the warning about a failed hook that did not stop its release (hook-failure:
// continue). The warning is shown while the release is in flight or stable. Other failed hooks cause no warning.
func TestHooksThatFailedAndKeptNothing(t *testing.T) {
	const warning = "hook shop/migrate (before) failed, and c1-2 continued nevertheless: the hook's hook-failure is continue"
	for name, c := range map[string]struct {
		change func(*strategies.Input)
		want   string
	}{
		"in flight": {nil, warning},
		"stable": {func(in *strategies.Input) {
			in.State.Phase, in.State.Stable, in.State.Release, in.State.Hooks[0].Past = rollout.Healthy, in.State.Release, nil, true
		}, warning},
		"tried again": {func(in *strategies.Input) {
			again := in.State.Hooks[0]
			again.Phase, again.Attempt = rollout.HookSucceeded, 2
			in.State.Hooks = append(in.State.Hooks, again)
		}, ""},
		"of an abandoned release": {left, ""},
		"of another content":      {func(in *strategies.Input) { in.State.Hooks[0].Content = "h1-0" }, ""},
		"which is to abort": {func(in *strategies.Input) {
			in.Source = contentOf("c2", "c1-2")
			in.Head.Render, in.State.Hooks[0].Content = in.Source, ""
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := checked()
			in.Source = contentOf("c2", "c1-2", "gitrollout.dev/hook-failure", "continue")
			in.Head.Render = in.Source
			in.State.Hooks[0].Phase, in.State.Hooks[0].Message = rollout.HookFailed, "BackoffLimitExceeded"
			for _, o := range in.Source.Objects {
				if o.Name() == "migrate" {
					in.State.Hooks[0].Content = hook.Content(o)
				}
			}
			if c.change != nil {
				c.change(&in)
			}
			compare.Check(t, c.want, strings.Join(status.Of(in, "prod", nil).Warnings, "; "))
		})
	}
}

// TestOfNoPods checks that the only revision of a workload with 0 replicas is the current revision.
func TestOfNoPods(t *testing.T) {
	in := checked()
	live := in.Observed.Workloads[web]
	live.Replicas, live.Revisions[0].Desired, live.Revisions[0].Pods, live.Revisions[0].ReadySince = 0, 0, 0, nil
	in.Observed.Workloads[web] = live
	if all := status.Of(in, "prod", nil).Workloads[0].Revisions; len(all) != 1 || !all[0].Current {
		t.Errorf("%+v", all)
	}
}

// TestOfContent checks, for an app without Rollout documents, the condition for which it waits and the suggested commands.
func TestOfContent(t *testing.T) {
	const head = "phase: Promoting\nshop/web: plain \n"
	const check = "waits: hook shop/check (after c1-2): Job check-2-1 to end"
	const look = "to look at the Job: kubectl -n shop describe job check-2-1\nto look at the Job: kubectl -n shop logs job/check-2-1\n"
	const abort = "to go back: gitrollout abort shop"
	const back = "to go back: gitrollout undo shop\n" + abort
	for name, c := range map[string]struct {
		change func(*strategies.Input)
		want   string
	}{
		"a Job after the release": {nil, head + check + "\n" + look + back},
		"a newer commit": {func(in *strategies.Input) { follow(in, contentOf("c3", "c1-3")) },
			head + check + "; commit c3 by Ann <ann@example.com> waits until then\n" + look + abort},
		"a newer commit, where the cluster is not seen": {func(in *strategies.Input) {
			follow(in, contentOf("c3", "c1-3"))
			in.Observed.Workloads, in.Answers.Jobs = nil, nil
		}, "phase: Promoting\n" + check + "; commit c3 by Ann <ann@example.com> waits until then\n" + look + abort},
		"a newer commit without hooks": {func(in *strategies.Input) {
			r := contentOf("c3", "c1-3")
			r.Objects, r.Hooked = nil, false
			follow(in, r)
		}, head + check + "; commit c3 by Ann <ann@example.com> waits until then\n" + look + abort},
		"a newer commit than a first deployment's": {func(in *strategies.Input) {
			in.State.Stable = nil
			follow(in, contentOf("c3", "c1-3"))
		}, head + check + "; commit c3 by Ann <ann@example.com> waits until then\n" + strings.TrimSpace(look)},
		"a newer release that waits for the Job of one that is left": {left,
			"phase: Healthy\nrunning hooks: HookRuns release c1-3 of c3 by Ann <ann@example.com> waits for its hooks\n" +
				"in a line: release c1-3 of c3 by Ann <ann@example.com> waits for hook shop/check (after c1-2): Job check-2-1 to end; " +
				"its result no longer matters: delete the Job to continue\nshop/web: plain \n" +
				check + "; its result no longer matters: delete the Job to continue\n" + look +
				"to go on without that Job: kubectl -n shop delete job check-2-1\nto reject it: gitrollout abort shop"},
		"a newer commit that waits for it after a rollback": {func(in *strategies.Input) {
			left(in)
			in.State.Phase, in.State.Release, in.State.Held = rollout.Aborting, version("c1-2", 1), nil
			in.State.Rollback = &rollout.Rollback{Routed: minute(4), Drain: minute(4), To: "c1"}
		}, "phase: Aborting\nshop/web: plain \n" + check + "; its result no longer matters: delete the Job to continue\n" + look +
			"to go on without that Job: kubectl -n shop delete job check-2-1"},
		"a hold while a Job before the release runs": {func(in *strategies.Input) {
			left(in)
			in.State.Hooks = []rollout.HookRun{{Name: "shop/migrate", When: rollout.HookBefore, Release: "c1-3", Job: "migrate-3-1",
				Phase: rollout.HookRunning, Since: minute(2), Attempt: 1}}
			in.Answers.Jobs["shop/migrate-3-1"] = rollout.JobState{Waits: "no node has room"}
			in.Promotion = &rollout.Promotion{Release: "c1-3", Decision: rollout.Hold, Reason: "wait for db", Author: "Bob <bob@example.com>"}
		}, "phase: Healthy\nrunning hooks: HookRuns release c1-3 of c3 by Ann <ann@example.com> waits for its hooks\n" +
			"in a line: release c1-3 of c3 by Ann <ann@example.com> waits for hook shop/migrate (before c1-3): " +
			"Job migrate-3-1 to end (no node has room), and then the end of decision: hold by Bob <bob@example.com>: wait for db\n" +
			"shop/web: plain \n" +
			"waits: hook shop/migrate (before c1-3): Job migrate-3-1 to end (no node has room), and then the end of decision: " +
			"hold by Bob <bob@example.com>: wait for db\n" +
			"to look at the Job: kubectl -n shop describe job migrate-3-1\nto look at the Job: kubectl -n shop logs job/migrate-3-1\n" +
			"to end the hold: gitrollout hold shop --off\nto reject it: gitrollout abort shop"},
		"a hold before the first Job": {func(in *strategies.Input) {
			left(in)
			in.State.Hooks = nil
			in.State.Held = &rollout.Held{Reason: rollout.HeldClosed,
				Message: "release c1-3 of c3 by Ann <ann@example.com> waits for the end of decision: hold by Bob <bob@example.com>"}
			in.Promotion = &rollout.Promotion{Release: "c1-3", Decision: rollout.Hold, Reason: "wait for db", Author: "Bob <bob@example.com>"}
		}, "phase: Healthy\nwaiting: ReleasesClosed release c1-3 of c3 by Ann <ann@example.com> waits for the end of decision: " +
			"hold by Bob <bob@example.com>\n" +
			"in a line: release c1-3 of c3 by Ann <ann@example.com> waits for the end of decision: hold by Bob <bob@example.com>: wait for db\n" +
			"shop/web: plain \n" +
			"waits: the end of decision: hold by Bob <bob@example.com>: wait for db\nto end the hold: gitrollout hold shop --off\n" +
			"to reject it: gitrollout abort shop"},
		"new pods that are never ready, beside an old one that is": {func(in *strategies.Input) {
			in.State.Hooks = nil
			live := in.Observed.Workloads[web]
			live.Complete, live.Revisions[0].ReadySince = false, nil
			old := rollout.Revision{Name: "web-aaa", Hash: "h1-1", Desired: 1, Pods: 1, ReadySince: []time.Time{noon}}
			live.Revisions = append(live.Revisions, old)
			in.Observed.Workloads[web] = live
		}, head + "waits: Deployment shop/web: 0 of 2 new pods are ready\n" + back},
	} {
		t.Run(name, func(t *testing.T) {
			in := checked()
			if c.change != nil {
				c.change(&in)
			}
			compare.Check(t, c.want, inLines(status.Of(in, "prod", nil)))
		})
	}
}
