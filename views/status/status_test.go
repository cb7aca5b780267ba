package status_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/status"
)

var (
	web  = rollout.Workload{Namespace: "shop", Name: "web"}
	noon = minute(0)
)

// paused returns the input of an app whose release is paused at step 2 of 3 of a canary.
func paused() strategies.Input {
	weight := func(n int) *int { return &n }
	spec := rollout.Spec{
		Name: "web", Workload: web, Replicas: weight(5), MaxSurge: rollout.Amount{Value: 1}, ProgressDeadlineSeconds: 600, Scaling: rollout.Surge,
		Canary: &rollout.Canary{Steps: []rollout.Step{{SetWeight: weight(20)}, {Pause: &rollout.Pause{}}, {SetWeight: weight(60)}}},
	}
	render := func(commit string, hash rollout.Hash) *rollout.Render {
		return &rollout.Render{
			Commit:    rollout.Commit{ID: commit, Author: "Ann <ann@example.com>", Subject: "version " + string(hash), When: noon},
			Digest:    string(hash),
			Templates: map[rollout.Workload]rollout.Hash{web: hash}, Specs: []rollout.Spec{spec},
		}
	}
	head := render("c2", "h1-2")
	release := version(string(head.Release()), 0)
	release.Commit, release.Templates = "c2", map[rollout.Workload]rollout.Hash{web: "h1-2"}
	stable := version("h1-1", 0)
	stable.Commit, stable.Templates = "c1", map[rollout.Workload]rollout.Hash{web: "h1-1"}
	ready := func(name string, n int) []rollout.Pod {
		var pods []rollout.Pod
		for i := range n {
			pods = append(pods, rollout.Pod{Name: name + string(rune('a'+i)), Status: "Running", Ready: true, Created: noon})
		}
		return pods
	}
	return strategies.Input{
		Now: minute(5), App: rollout.App{Name: "shop", Path: "apps/shop", Namespace: "shop"}, Answers: strategies.Answers{Healed: new(true)},
		Head: strategies.Head{Commit: head.Commit, Render: head}, Source: head,
		State: rollout.State{
			App: "shop", Path: "apps/shop", Phase: rollout.Paused, Source: "c2", Stable: stable, Release: release,
			Progress: []rollout.Progress{{Workload: web, Step: 1, Of: 3, Name: "pause", Weight: 20, Entered: minute(1)}},
		},
		Observed: rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{web: {
			Replicas: 5, Synced: true, Revisions: []rollout.Revision{
				{Name: "web-bbb", Pin: rollout.PodHash("bbb"), Hash: "h1-2", Current: true, Desired: 1, Pods: 1, ReadySince: []time.Time{noon},
					Members: ready("web-bbb-", 1)},
				{Name: "web-aaa", Pin: rollout.PodHash("aaa"), Hash: "h1-1", Desired: 5, Pods: 5, ReadySince: []time.Time{noon, noon, noon, noon, noon},
					Members: ready("web-aaa-", 5)},
			},
		}}},
	}
}

// TestNamespace checks that the app's namespace is the namespace of its workload, and not the default namespace of its entry.
func TestNamespace(t *testing.T) {
	other := rollout.Workload{Namespace: "a", Name: "a"}
	plain := func(workloads ...rollout.Workload) func(in *strategies.Input) {
		return func(in *strategies.Input) {
			in.Source = &rollout.Render{Commit: in.Head.Commit, Templates: map[rollout.Workload]rollout.Hash{}}
			for _, w := range workloads {
				in.Source.Templates[w] = "h1-2"
			}
			in.State, in.Head.Render = rollout.State{App: "shop", Phase: rollout.Healthy, Source: "c2"}, in.Source
		}
	}
	for name, c := range map[string]struct {
		change func(in *strategies.Input)
		want   string
	}{
		"a staged workload":             {func(*strategies.Input) {}, "shop"},
		"another workload before it":    {func(in *strategies.Input) { in.Source.Templates[other] = "h1-3" }, "shop"},
		"only the newest commit":        {func(in *strategies.Input) { in.Source = nil }, "shop"},
		"workloads that are not staged": {plain(web, other), "a"},
		"no workload":                   {plain(), "default"},
		"no version": {func(in *strategies.Input) {
			in.State, in.Source, in.Head = rollout.State{}, nil, strategies.Head{Err: rollout.Invalidf("a", "", "is wrong")}
		}, "default"},
	} {
		in := paused()
		in.App.Namespace = "default"
		c.change(&in)
		compare.CheckNamed(t, name, c.want, status.Of(in, "prod", nil).Namespace)
	}
}

// TestOfAWatch checks what a watched app shows: the end of the watch, the version to which the app may return, and the commands.
func TestOfAWatch(t *testing.T) {
	in := paused()
	in.State.Watch = &rollout.Watch{Until: minute(50), Began: minute(1), Former: *in.State.Stable}
	stable := *in.State.Release
	in.State.Stable = &stable
	in.State = in.State.AtRest(rollout.Healthy, "")
	a := status.Of(in, "prod", nil)
	compare.CheckNamed(t, "watch", []any{minute(50), rollout.Hash("h1-1")}, []any{a.Watch.Until, a.Watch.Former.Hash})
	var next []string
	for _, n := range a.Next {
		next = append(next, fmt.Sprintf("to %s: %s, back: %t", n.To, n.Command, n.Back))
	}
	compare.Check(t, []string{"to end the watch: gitrollout abort shop, back: false"}, next)
}

// reject changes the input as a rejection of the release in flight does. The rejected commit stays the head.
func reject(in *strategies.Input) {
	in.State.Phase, in.State.Source, in.State.Progress = rollout.Degraded, "c1", nil
	in.State.Rejected = []rollout.Rejection{{Hash: in.State.Release.Hash, Commit: "c2", Reason: "too many errors", At: minute(3)}}
	in.State.Reason = "Git asks for " + string(in.State.Release.Hash) + ", which was rejected: too many errors"
	in.State.Release, in.Source = nil, nil
}

// inLines formats the important fields of an App, one per line.
func inLines(a status.App) string {
	var lines []string
	add := func(label, text string) {
		if text != "" {
			lines = append(lines, label+": "+text)
		}
	}
	add("phase", string(a.Phase))
	add("reason", a.Reason)
	if a.Held != nil {
		add(a.HeldText(), string(a.Held.Reason)+" "+a.Held.Message)
		if a.WhyHeld() != a.Held.Message {
			add("in a line", a.WhyHeld())
		}
	}
	if a.Rejected != nil {
		add("rejected", string(a.Rejected.Hash)+" "+a.Rejected.Reason)
	}
	for _, w := range a.Workloads {
		steps := rollout.Mapped(w.Steps, func(s status.Step) string { return strings.TrimSpace(s.Text + " " + s.Status) })
		add(w.Workload, w.Strategy+" "+strings.Join(steps, ", "))
	}
	add("waits", a.Waiting)
	for _, n := range a.Next {
		add("to "+n.To, n.Command)
	}
	return strings.Join(lines, "\n")
}

func TestOf(t *testing.T) {
	const steps = "shop/web: canary setWeight 20 done, pause current, setWeight 60 pending\n"
	const timed = "shop/web: canary setWeight 20 done, pause 10m0s current, setWeight 60 pending\n"
	const idle = "shop/web: canary setWeight 20, pause, setWeight 60"
	const atGate = "phase: Paused\n" + steps + "waits: promotion of RELEASE at step 2/3\n"
	const goOn, skip = "to go on: gitrollout promote shop\n", "to skip the wait: gitrollout promote shop\n"
	const abort = "to go back: gitrollout abort shop"
	const back = "to go back: gitrollout undo shop\n" + abort
	const merge = "git fetch && git merge --no-ff origin/gitrollout/revert/prod/shop && git push"
	const asksForRejected = "phase: Degraded\nreason: Git asks for RELEASE, which was rejected: too many errors\n"
	const retry = "to try it again: gitrollout retry shop"
	const inGitToo = "\nto go back in Git too: "
	const waitsForRevert = "waits: a revert of RELEASE in Git, a new version, or decision: retry"
	const notFollowed = "phase: Healthy\nreason: the objects applied last stay, and new commits are not applied while the app is held\n"
	const goingBack = "phase: Aborting\nreason: aborted by Bob\nrejected: RELEASE aborted by Bob\n" +
		"shop/web: canary setWeight 20 done, pause, setWeight 60\nwaits: all pods to have the stable version"
	proposed := map[string]string{"gitrollout/promote/prod/shop": "c9"}
	reverting := map[string]string{"gitrollout/revert/prod/shop": "c8"}
	held := func(reason rollout.HeldReason, message string) func(*strategies.Input) {
		return func(in *strategies.Input) { in.State.Held = &rollout.Held{Reason: reason, Message: message} }
	}
	unlisted := func(in *strategies.Input) {
		in.Head.Render, in.Head.Err = nil, errors.New("apps: no longer lists shop")
		held(rollout.HeldInvalidInput, "apps: no longer lists shop")(in)
	}
	aborting := func(in *strategies.Input) {
		in.State.Phase, in.State.Reason = rollout.Aborting, "aborted by Bob"
		in.State.Rejected = []rollout.Rejection{{Hash: in.State.Release.Hash, Commit: "c2", Reason: "aborted by Bob", At: minute(3)}}
		in.State.Rollback = &rollout.Rollback{Reject: true, Routed: minute(4), Drain: minute(30), To: "c1"}
	}
	atRest := func(in *strategies.Input) {
		in.State.Phase, in.State.Release, in.State.Progress = rollout.Healthy, nil, nil
		in.State.Stable.Hash, in.State.Stable.Templates = in.Head.Render.Release(), in.Head.Render.Templates
		in.Observed.Workloads = nil
	}
	plain := func(unhealthy string) func(*strategies.Input) {
		return func(in *strategies.Input) {
			in.Head.Render.Specs = nil
			in.State = rollout.State{App: "shop", Phase: rollout.Healthy, Source: "c2", Unhealthy: unhealthy}
		}
	}
	for name, c := range map[string]struct {
		change    func(*strategies.Input)
		proposals map[string]string
		want      string
	}{
		"a gate": {nil, proposed, atGate + "to go on: git fetch && git merge --no-ff origin/gitrollout/promote/prod/shop && git push\n" +
			goOn + back},
		"a revert that was proposed":    {nil, reverting, atGate + goOn + "to go back: " + merge + "\n" + back},
		"a gate whose proposal is gone": {nil, nil, atGate + goOn + back},
		"a hold": {func(in *strategies.Input) {
			in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Hold, Author: "Bob <bob@example.com>",
				Reason: "wait for db"}
		}, proposed, "phase: Paused\n" + steps +
			"waits: the end of decision: hold by Bob <bob@example.com>: wait for db\nto end the hold: gitrollout hold shop --off\n" + back},
		"a pause by the clock": {func(in *strategies.Input) {
			in.Head.Render.Specs[0].Canary.Steps[1].Pause.Duration = new(10 * time.Minute)
		}, nil, "phase: Paused\n" + timed + "waits: pause 10m0s, until 2026-11-20T12:11:00Z\n" + skip + back},
		"a Job after the release, at a step": {func(in *strategies.Input) {
			in.State.Hooks = []rollout.HookRun{{Name: "shop/check", When: rollout.HookAfter, Release: in.State.Release.Hash, Job: "check-2-1",
				Phase: rollout.HookRunning}}
			in.Head.Render.Specs[0].Canary.Steps[1].Pause.Duration = new(10 * time.Minute)
		}, nil, "phase: Paused\n" + timed + "waits: hook shop/check (after RELEASE): Job check-2-1 to end\n" +
			"to look at the Job: kubectl -n shop describe job check-2-1\nto look at the Job: kubectl -n shop logs job/check-2-1\n" +
			skip + back},
		"never seen": {func(in *strategies.Input) { in.State, in.Observed.Workloads = rollout.State{}, nil }, nil,
			"phase: Pending\nreason: gitrollout has not recorded this app yet; check that gitrollout run is running\n" + idle},
		"a head that cannot be read, before that is on record": {func(in *strategies.Input) {
			in.Head.Render, in.Head.Err = nil, errors.New("kustomization.yaml: is not valid YAML")
		}, nil, "phase: Paused\nheld: InvalidInput kustomization.yaml: is not valid YAML\n" + steps + abort},
		"an app that is not listed": {func(in *strategies.Input) {
			unlisted(in)
			in.State.Phase = rollout.Progressing
		}, proposed, "phase: Progressing\nheld: InvalidInput apps: no longer lists shop\n" + steps + abort},
		"an app that is not listed, and was rejected": {func(in *strategies.Input) {
			reject(in)
			in.Source = in.Head.Render
			unlisted(in)
		}, nil, asksForRejected + "held: InvalidInput apps: no longer lists shop\n" + idle},
		"a rejected release, without its Rollout document": {func(in *strategies.Input) {
			reject(in)
			in.Head.Render.Specs = nil
		}, reverting, asksForRejected + "shop/web: plain \n" +
			"waits: a revert of RELEASE in Git, a new version, or its Rollout document\nto go back in Git too: " + merge},
		"a rejected version that serves": {func(in *strategies.Input) {
			reject(in)
			in.State.Reason = ""
			atRest(in)
		}, nil, "phase: Healthy\n" + idle},
		"a rejected release": {reject, reverting, asksForRejected + "rejected: RELEASE too many errors\n" + idle + "\n" +
			waitsForRevert + "\n" + retry + inGitToo + merge},
		"a commit that scales the rejected release": {func(in *strategies.Input) {
			reject(in)
			in.Head.Commit.ID = "c3"
		}, reverting, asksForRejected + "rejected: RELEASE too many errors\n" + idle + "\n" + waitsForRevert +
			"; until then, a push can only change replicas\n" + retry + inGitToo + merge},
		"content that was rejected, and a later commit elsewhere": {func(in *strategies.Input) {
			in.Head.Render.Specs, in.Head.Render.Hooked, in.Head.Render.Content = nil, true, in.State.Release.Hash
			reject(in)
			in.State.Stable.Templates, in.Head.Commit.ID = nil, "c3"
		}, nil, asksForRejected + "rejected: RELEASE too many errors\nshop/web: plain \n" + waitsForRevert + "\n" + retry +
			inGitToo + "gitrollout undo shop"},
		"another version that waits for its hooks": {func(in *strategies.Input) {
			reject(in)
			in.State.Rejected[0].Hash = "h1-0000000001"
			held(rollout.HeldHook, "waits for its hooks")(in)
		}, nil, "phase: Degraded\nrunning hooks: HookRuns waits for its hooks\n" + idle + "\nto reject it: gitrollout abort shop"},
		"a rollback": {aborting, nil, goingBack + "\n" + retry + inGitToo + "gitrollout undo shop"},
		"a rollback that Git does not agree with": {aborting, reverting, goingBack + "\n" + retry + inGitToo + merge},
		"a Deployment without a Rollout": {plain(""), nil,
			"phase: Progressing\nreason: Deployment shop/web: 1 of 5 new pods are ready\nshop/web: plain "},
		"a workload unhealthy for long": {plain("Deployment shop/web: 0 of 5 pods are ready"), nil,
			"phase: Degraded\nreason: Deployment shop/web: 1 of 5 new pods are ready\nshop/web: plain "},
		"an unhealthy workload in an unseen cluster": {func(in *strategies.Input) {
			plain("Deployment shop/web: 0 of 5 pods are ready")(in)
			in.Observed.Workloads = nil
		}, nil, "phase: Degraded\nreason: Deployment shop/web: 0 of 5 pods are ready"},
		"an object of another kind": {func(in *strategies.Input) {
			plain("")(in)
			job := rollout.Ref{Group: "batch", Kind: "Job", Namespace: "shop", Name: "move"}
			in.Observed = rollout.Observed{Troubled: []rollout.Trouble{{Ref: job, Failed: true, Message: "Job failed"}}}
		}, nil, "phase: Progressing\nreason: Job shop/move: Job failed"},
		"a workload that runs already": {held(rollout.HeldAdoption, "it runs already"), nil,
			"phase: Paused\nheld: Adoption it runs already\n" + steps + "to replace the running version: gitrollout promote shop --full\n" +
				back},
		"a renamed workload": {func(in *strategies.Input) {
			held(rollout.HeldRenamed, "it was web")(in)
			in.State.Release, in.State.Phase, in.Observed.Workloads = nil, rollout.Healthy, nil
		}, nil, notFollowed + "held: Renamed it was web\n" + idle + "\nto start all its pods at once: gitrollout promote shop --full"},
		"another controller's workload": {held(rollout.HeldForeign, "Flux has it"), nil,
			"phase: Paused\nheld: ForeignController Flux has it\n" + steps +
				"to take it over anyway: gitrollout promote shop --adopt-anyway\n" + back},
		"a release that lost its Rollout document": {held(rollout.HeldRolloutRemoved, "it is gone"), nil,
			"phase: Paused\nheld: RolloutRemoved it is gone\n" + steps + "to promote it fully: gitrollout promote shop --full\n" + back},
		"a release held for another reason": {held(rollout.HeldInvalidInput, "it is wrong"), proposed,
			"phase: Paused\nheld: InvalidInput it is wrong\n" + steps + back},
		"at rest, with a revert proposed": {atRest, reverting, "phase: Healthy\n" + idle + "\nto go back: " + merge},
		"held at rest": {func(in *strategies.Input) {
			atRest(in)
			held(rollout.HeldInvalidInput, "it is wrong")(in)
		}, nil, notFollowed + "held: InvalidInput it is wrong\n" + idle},
		"stalled": {func(in *strategies.Input) { in.State.Phase, in.State.Reason = rollout.Stalled, "no progress" }, nil,
			"phase: Stalled\nreason: no progress\n" + steps + "waits: promotion of RELEASE at step 2/3\n" + goOn + back},
		"under way": {func(in *strategies.Input) {
			in.State.Phase, in.State.Progress[0].Step = rollout.Progressing, 2
		}, nil, "phase: Progressing\nshop/web: canary setWeight 20 done, pause done, setWeight 60 current\n" +
			"waits: pods of the new version: 1 of 3 serve\nto skip all steps: gitrollout promote shop --full\n" + back},
	} {
		t.Run(name, func(t *testing.T) {
			in := paused()
			hash := string(in.State.Release.Hash)
			if c.change != nil {
				c.change(&in)
			}
			a := status.Of(in, "prod", c.proposals)
			for _, n := range a.Next { // each suggested gitrollout command must be in a.Actions
				fits := func(a propose.Action) bool {
					return strings.HasPrefix(n.Command, "gitrollout "+string(a.Verb)) && a.Full == strings.HasSuffix(n.Command, "--full") &&
						a.AdoptAnyway == strings.HasSuffix(n.Command, "--adopt-anyway")
				}
				if strings.HasPrefix(n.Command, "gitrollout ") && !slices.ContainsFunc(a.Actions, fits) {
					t.Errorf("%q is not in %+v", n.Command, a.Actions)
				}
			}
			got := strings.ReplaceAll(inLines(a), hash, "RELEASE")
			compare.Check(t, c.want, got)
		})
	}
}

// TestWaysOnAndBack checks that a command to go on and a command to go back are suggested in each phase of a release in flight.
func TestWaysOnAndBack(t *testing.T) {
	crashes := func(in *strategies.Input) { in.State.Progress[0].Step = 2 }
	for name, c := range map[string]struct {
		phase    rollout.Phase
		change   func(*strategies.Input)
		on, back string
	}{
		"moving":    {rollout.Progressing, crashes, "promote shop --full", "undo shop, abort shop"},
		"a gate":    {rollout.Paused, nil, "promote shop", "undo shop, abort shop"},
		"late":      {rollout.Stalled, crashes, "promote shop --full", "undo shop, abort shop"},
		"promoting": {rollout.Promoting, func(in *strategies.Input) { in.State.Progress[0].Step = 3 }, "", "undo shop, abort shop"},
		"rollback": {rollout.Aborting, func(in *strategies.Input) {
			in.State.Rejected = []rollout.Rejection{{Hash: in.State.Release.Hash, Commit: "c2"}}
			in.State.Rollback = &rollout.Rollback{Reject: true, To: "c1"}
		}, "retry shop", "undo shop"},
		"on hold": {rollout.Paused, func(in *strategies.Input) {
			in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Hold}
		}, "hold shop --off", "undo shop, abort shop"},
		"an analysis": {rollout.Progressing, func(in *strategies.Input) {
			in.Head.Render.Specs[0].Canary.Steps[1] = rollout.Step{Analysis: &rollout.Analysis{Metrics: []rollout.Metric{{Name: "errors"}}}}
		}, "promote shop", "undo shop, abort shop"},
		"paused in its document": {rollout.Paused, func(in *strategies.Input) {
			crashes(in)
			in.Head.Render.Specs[0].Paused = true
		}, "", "undo shop, abort shop"},
		"a newer version waits": {rollout.Progressing, func(in *strategies.Input) {
			crashes(in)
			in.Source = new(*in.Head.Render)
			in.Head.Render.Templates = map[rollout.Workload]rollout.Hash{web: "h1-3"}
		}, "promote shop --full", "abort shop"},
		"a first deployment": {rollout.Progressing, func(in *strategies.Input) { in.State.Stable = nil }, "", ""},
	} {
		in := paused()
		in.State.Phase = c.phase
		if c.change != nil {
			c.change(&in)
		}
		var on, back []string
		for _, n := range status.Of(in, "prod", nil).Next {
			if command := strings.TrimPrefix(n.Command, "gitrollout "); n.Back {
				back = append(back, command)
			} else {
				on = append(on, command)
			}
		}
		compare.CheckNamed(t, name, c.on+"; "+c.back, strings.Join(on, ", ")+"; "+strings.Join(back, ", "))
	}
}

// TestOfFields checks several changes of the input, and the fields of App that each change affects.
func TestOfFields(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*strategies.Input)
		want   func(*status.App, *status.Workload)
	}{
		"pods and weights of the cluster": {func(*strategies.Input) {}, func(a *status.App, w *status.Workload) {
			w.Replicas, w.Ready, w.Weight, w.RealWeight, w.Moving, w.Routed = 5, 6, 20, 16, true, false
			w.Revisions = w.Revisions[:2:2]
			w.Revisions[0].Role, w.Revisions[0].Ready, w.Revisions[0].Pods = "canary", 1, w.Revisions[0].Pods[:1:1]
			w.Revisions[1].Role = "stable"
			a.Release.Author, a.Stable.Commit = "Ann <ann@example.com>", "c1"
			a.Source, a.Warnings = &rollout.Commit{ID: "c2", Author: "Ann <ann@example.com>", Subject: "version h1-2", When: noon}, nil
		}},
		"times and analyses": {func(in *strategies.Input) {
			in.State.Analyses = []rollout.AnalysisRun{{Name: "errors", Phase: rollout.AnalysisRunning}}
			in.Head.Render.Specs[0].Canary.Steps[1].Pause.Duration = new(10 * time.Minute)
		}, func(a *status.App, w *status.Workload) {
			w.Entered, w.Due, a.Due, a.Analyses = new(minute(1)), new(minute(11)), new(minute(11)), a.Analyses[:1:1]
		}},
		"no time without a record": {func(in *strategies.Input) { in.State.Progress[0].Entered = time.Time{} },
			func(_ *status.App, w *status.Workload) { w.Entered = nil }},
		"nothing moves without a release": {func(in *strategies.Input) { in.State.Release = nil },
			func(_ *status.App, w *status.Workload) { w.Moving = false }},
		"of a commit that is not in the cache, its ID": {func(in *strategies.Input) { in.Source = nil },
			func(a *status.App, _ *status.Workload) { a.Source = &rollout.Commit{ID: "c2"} }},
		"nothing of an app that was never applied": {func(in *strategies.Input) { in.Source, in.State.Source = nil, "" },
			func(a *status.App, _ *status.Workload) { a.Source = nil }},
		// The error is not recorded yet. A commit before the head may have caused it.
		"no commit of an unrecorded error": {func(in *strategies.Input) {
			in.Head.Render, in.Head.Err = nil, errors.New("kustomization.yaml: is not valid YAML")
		}, func(a *status.App, _ *status.Workload) { a.Held.Commit = "" }},
	} {
		in := paused()
		c.change(&in)
		want := status.Of(in, "prod", nil)
		c.want(&want, &want.Workloads[0])
		compare.CheckNamed(t, name, want, status.Of(in, "prod", nil))
	}
}

// TestMetrics checks that an app with analyses has each metric's queries and limits once, and the links in the app's entry.
func TestMetrics(t *testing.T) {
	in := paused()
	in.App.Links = `{"Grafana":"https://g.example.com/{app}"}`
	metric := func(name, query string) rollout.Metric {
		return rollout.Metric{Name: name, Provider: "prometheus", Config: map[string]any{"query": query}, SuccessCondition: "result[0] < 0.01",
			FailureLimit: 2}
	}
	page := rollout.Metric{Name: "web", Provider: "web", Config: map[string]any{"url": "https://x/?token=secret"}, FailureLimit: -1,
		FailureCondition: "result > 1", Compare: &rollout.Compare{MaxIncrease: 0.01}}
	pods := map[string]string{"hash": "Latest"}
	compared := rollout.Metric{Name: "compared", Provider: "prometheus", Pods: pods, Compare: &rollout.Compare{},
		Config: map[string]any{"query": "sum(c{pod_template_hash='{{args.hash}}'})"}}
	several := rollout.Metric{Name: "several", Provider: "datadog",
		Config: map[string]any{"queries": map[string]any{"b": "two", "a": "one"}}}
	mapping := rollout.Metric{Name: "mapping", Provider: "opensearch", Pods: pods,
		Config: map[string]any{"query": map[string]any{"term": map[string]any{"pod": "{{args.hash}}"}}}}
	canary := in.Head.Render.Specs[0].Canary
	canary.Analysis = &rollout.Analysis{Metrics: []rollout.Metric{metric("errors", "sum(a)"), metric("idle", "sum(c)")}}
	canary.Steps = append(canary.Steps, rollout.Step{
		Analysis: &rollout.Analysis{Metrics: []rollout.Metric{metric("errors", "sum(a)"), metric("errors", "sum(b)"), page, compared, several,
			mapping}}})
	compare.CheckNamed(t, "without analyses", 0, len(status.Of(in, "prod", nil).Metrics))
	in.State.Analyses = []rollout.AnalysisRun{{Name: "web/step-2", Metrics: []rollout.MetricProgress{{Metric: "errors"}, {Metric: "web"},
		{Metric: "compared"}, {Metric: "several"}, {Metric: "mapping"}}}}
	const limits = "successCondition: result[0] < 0.01; failureLimit: 2"
	a := status.Of(in, "prod", nil)
	compare.Check(t, []status.Metric{{"errors", "prometheus", "sum(a)", limits}, {"errors", "prometheus", "sum(b)", limits},
		{"web", "web", "", "failureCondition: result > 1; compare: maxIncrease 0.01; failureLimit: -1"},
		{"compared", "prometheus", "sum(c{pod_template_hash='bbb'})", "compare: maxIncrease 0; failureLimit: 0"},
		{"compared", "prometheus", "sum(c{pod_template_hash='aaa'})", "compare: maxIncrease 0; failureLimit: 0"},
		{"several", "datadog", "one", "failureLimit: 0"}, {"several", "datadog", "two", "failureLimit: 0"},
		{"mapping", "opensearch", `{"term":{"pod":"bbb"}}`, "failureLimit: 0"}}, a.Metrics)
	in.Observed.Workloads = nil
	if unread := status.Of(in, "prod", nil).Metrics; len(unread) != 7 || unread[3].Query != "sum(c{pod_template_hash='{{args.hash}}'})" {
		t.Errorf("without the cluster, the metrics are %+v", unread)
	}
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	compare.Contains(t, string(data), `"links":{"Grafana":"https://g.example.com/{app}"}`)
	compare.CheckNamed(t, "the URL, which may have a token", false, strings.Contains(string(data), "secret"))
}

// TestElapsedInQueries checks that a shown query has the window of the last measurement. {{elapsed}} begins with the run, the step or the
// recorded counts. {{release.elapsed}} begins with the release or the watch. A query that was not sent keeps the placeholder.
func TestElapsedInQueries(t *testing.T) {
	const query = "a[{{elapsed}}s] b[{{ release.elapsed }}s]"
	run := func(name string, at time.Time, e *rollout.Sequential) rollout.AnalysisRun {
		p := rollout.MetricProgress{Metric: "errors", Evidence: e}
		if !at.IsZero() {
			p.Measurements = []rollout.Measurement{{At: at}}
		}
		return rollout.AnalysisRun{Name: name, Started: minute(1), Metrics: []rollout.MetricProgress{p}}
	}
	for want, c := range map[string]struct {
		run    rollout.AnalysisRun
		change func(*strategies.Input)
	}{
		query:             {run("web/step-2", time.Time{}, nil), func(*strategies.Input) {}},
		"a[180s] b[240s]": {run("web/step-2", minute(4), nil), func(*strategies.Input) {}},
		"a[60s] b[240s]":  {run("web/step-2", minute(4), &rollout.Sequential{Since: minute(3)}), func(*strategies.Input) {}},
		"a[120s] b[120s]": {run("web/step-2", minute(3), nil), func(in *strategies.Input) { in.State.Release, in.State.Progress = nil, nil }},
		"a[1740s] b[2400s]": {run("web/watch", minute(30), nil), func(in *strategies.Input) {
			in.State.Release, in.State.Progress, in.State.Watch = nil, nil, &rollout.Watch{Began: minute(-10)}
		}},
	} {
		in := paused()
		in.State.Release.Since = noon
		metric := rollout.Metric{Name: "errors", Config: map[string]any{"query": query}}
		in.Head.Render.Specs[0].Canary.Analysis = &rollout.Analysis{Metrics: []rollout.Metric{metric}}
		in.State.Analyses = []rollout.AnalysisRun{c.run}
		c.change(&in)
		compare.Check(t, want, status.Of(in, "prod", nil).Metrics[0].Query)
	}
}

// TestOfSaysHowManyPodsAreAsked checks that a setCanaryScale step without a router shows the number of desired pods. Otherwise, the weight
// is shown.
func TestOfSaysHowManyPodsAreAsked(t *testing.T) {
	for want, step := range map[string]rollout.Step{
		"1 pod":  {SetCanaryScale: &rollout.CanaryScale{Replicas: new(1)}},
		"2 pods": {SetCanaryScale: &rollout.CanaryScale{Weight: new(40)}},
		"20%":    {SetCanaryScale: &rollout.CanaryScale{MatchTrafficWeight: true}},
	} {
		in := paused()
		in.Head.Render.Specs[0].Canary.Steps[1] = step
		compare.CheckNamed(t, "pods asked", want, status.Of(in, "prod", nil).Workloads[0].Asked())
		in.Head.Render.Specs[0].Canary.Traffic = &rollout.Traffic{MaxWeight: 100}
		compare.CheckNamed(t, "requests asked", "20%", status.Of(in, "prod", nil).Workloads[0].Asked())
	}
}

// TestShare checks that a weight is in percent or, if trafficRouting sets maxTrafficWeight, a fraction of this maximum.
func TestShare(t *testing.T) {
	for want, w := range map[string]status.Workload{"20%": {}, "20/1000": {FullWeight: 1000}} {
		compare.Check(t, want, w.Share(20))
	}
}

// TestWarnings checks warnings from the render, about objects that were not deleted, and about a promotion file without an effect.
func TestWarnings(t *testing.T) {
	in := paused()
	compare.CheckNamed(t, "warnings", "[]", fmt.Sprint(status.Of(in, "prod", nil).Warnings))
	in.Head.Render.Warnings, in.State.Kept = []string{"a typo"}, "a volume is kept"
	in.Promotion = &rollout.Promotion{Release: "h1-other", Decision: rollout.Promote, Author: "Bob <bob@example.com>"}
	got := status.Of(in, "prod", nil).Warnings
	if len(got) != 3 || got[0] != "a typo" || got[1] != "a volume is kept" ||
		!strings.HasPrefix(got[2], "ignored: .gitrollout/prod/promote/shop.yaml: ") {
		t.Errorf("%q", got)
	}
	compare.CheckNamed(t, "warnings of the render", 1, len(in.Head.Render.Warnings))
}

// TestPlainWorkloads checks that workloads without a Rollout are sorted and that their ready pods are counted. Old
// revisions without pods are omitted.
func TestPlainWorkloads(t *testing.T) {
	in := paused()
	in.Head.Render.Specs = nil
	live := in.Observed.Workloads[web]
	live.Revisions = append(live.Revisions, rollout.Revision{Name: "old"}, rollout.Revision{Name: "asked", Desired: 1},
		rollout.Revision{Name: "ending", Pods: 1}, rollout.Revision{Name: "new", Current: true})
	for _, name := range []string{"b", "a", "c"} {
		in.Observed.Workloads[rollout.Workload{Namespace: "shop", Name: name}] = rollout.ObservedWorkload{}
	}
	in.Observed.Workloads[web] = live
	in.State.Generated = []rollout.Ref{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "c"}}
	for _, source := range []*rollout.Render{in.Head.Render, nil} {
		in.Source = source
		var got []string
		for _, w := range status.Of(in, "prod", nil).Workloads {
			text := w.Workload + " " + w.Strategy + " " + strings.Repeat("*", w.Ready)
			for _, r := range w.Revisions {
				text += " " + r.Name + r.Role
			}
			got = append(got, text)
		}
		want := []string{"shop/a plain ", "shop/b plain ", "shop/c experiment ", "shop/web plain ****** web-bbb web-aaa asked ending new"}
		compare.Check(t, want, got)
	}
	in.Head.Render, in.Head.Err = nil, errors.New("is broken")
	compare.CheckNamed(t, "workloads without a render", 4, len(status.Of(in, "prod", nil).Workloads))
}

// TestWaitingOfSeveral checks an app whose workloads wait for different conditions. The text names each workload with its condition. The
// due time is the earliest of all workloads.
func TestWaitingOfSeveral(t *testing.T) {
	in := strategies.Input{State: rollout.State{Phase: rollout.Paused}}
	soon, late := minute(1), minute(2)
	waits := func(all []status.Workload) string {
		text, due := status.WaitingOf(in, status.App{Workloads: all})
		return fmt.Sprintf("%s until %v", text, due)
	}
	for _, all := range [][]status.Workload{
		{{Workload: "shop/web", Waiting: "a", Due: &late}, {}, {Workload: "shop/api", Waiting: "b", Due: &soon}},
		{{Workload: "shop/web", Waiting: "a", Due: &soon}, {Workload: "shop/api", Waiting: "b", Due: &late}},
	} {
		compare.Check(t, fmt.Sprint("shop/web: a; shop/api: b until ", soon), waits(all))
	}
	same := []status.Workload{{Workload: "shop/web", Waiting: "a"}, {Workload: "shop/api", Waiting: "b"}, {Workload: "shop/db", Waiting: "a"}}
	compare.Check(t, "shop/web: a; shop/api: b; shop/db: a until <nil>", waits(same))
	same[1].Waiting = "a"
	compare.Check(t, "a until <nil>", waits(same))
	compare.Check(t, "a until <nil>", waits([]status.Workload{{Waiting: "a"}}))
}

// TestOfWhatWasNotRead checks that the JSON has no fields about ready pods or requests if the cluster or the namespace
// was not read. Otherwise, it has the number of ready pods, even if this is 0.
func TestOfWhatWasNotRead(t *testing.T) {
	of := func(change func(*strategies.Input)) string {
		in := paused()
		change(&in)
		data, err := json.Marshal(status.Of(in, "prod", nil).Workloads[0])
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for name, c := range map[string]struct {
		json string
		want []string
		not  []string
	}{
		"read": {of(func(*strategies.Input) {}), []string{`"ready":6`, `"realWeight":16`, `"step":2`}, []string{"unread"}},
		"none": {of(func(in *strategies.Input) { clear(in.Observed.Workloads) }), []string{`"ready":0`, `"realWeight":0`}, []string{"unread"}},
		"not read": {of(func(in *strategies.Input) { in.Observed.Workloads = nil }), []string{`"unread":true`, `"step":2`},
			[]string{`"ready"`, `"realWeight"`}},
		"a namespace that was not read": {of(func(in *strategies.Input) {
			in.Observed = rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{}, Unread: []rollout.Workload{web}}
			in.State.Progress[0].Step, in.Head.Render.Specs[0].Replicas = 2, nil
		}), []string{`"unread":true`}, []string{`"ready"`, `"realWeight"`, `"replicas"`, `"waiting"`}},
	} {
		compare.Contains(t, c.json, c.want...)
		for _, not := range c.not {
			compare.CheckNamed(t, name+": "+not+" is in "+c.json, false, strings.Contains(c.json, not))
		}
	}
}

func TestNotesAndHeldTexts(t *testing.T) {
	l := status.Listing{Apps: []status.App{{App: "a"}, {App: "b"}}}
	l.SetNote("no cluster")
	compare.CheckNamed(t, "notes", [3]string{"no cluster", "no cluster", "no cluster"}, [3]string{l.Note, l.Apps[0].Note, l.Apps[1].Note})
	closed, other := status.App{Held: &rollout.Held{Reason: rollout.HeldClosed}}, status.App{Held: &rollout.Held{Reason: "InvalidInput"}}
	if closed.HeldText() != "waiting" || other.HeldText() != "held" || (status.App{}).Waits() {
		t.Error(closed.HeldText(), other.HeldText())
	}
}

func TestOfCluster(t *testing.T) {
	since := func(n int) []time.Time { return make([]time.Time, n) }
	old := rollout.Revision{Name: "old", Hash: "h1-1", Pods: 3, ReadySince: since(3)}
	fresh := rollout.Revision{Name: "new", Hash: "h1-2", Pods: 1, Desired: 1, ReadySince: since(1), Current: true}
	gone := rollout.Revision{Name: "gone", Hash: "h1-0"}
	live := func(held string, complete bool, revisions ...rollout.Revision) status.Live {
		return status.Live{Workload: web, Commit: "c2", Held: held,
			Observed: rollout.ObservedWorkload{Hash: "h1-2", Replicas: 4, Complete: complete, Revisions: revisions}}
	}
	aborted := live("", true, fresh)
	aborted.Observed.BreakGlass = rollout.BreakGlass{Release: "h1-2", Serial: 1, By: "ann", Reason: "v2 burns"}.Encode()
	const rest = "Unknown: all pods have one version; whether Git has a newer version is not known"
	for name, c := range map[string]struct {
		live []status.Live
		want string
	}{
		"nothing": {nil, rest},
		"at rest": {[]status.Live{live("", true, fresh, gone)}, rest + "; stable h1-2; shop/web 1/4 new stable"},
		"nothing is ready": {[]status.Live{live("", true, rollout.Revision{Name: "new", Hash: "h1-2", Current: true})},
			rest + "; stable h1-2; shop/web 0/4 new stable"},
		"pods that are not counted yet": {[]status.Live{live("", true, rollout.Revision{Name: "a", Members: []rollout.Pod{{}}},
			rollout.Revision{Name: "b", Desired: 1}, rollout.Revision{Name: "c", Pods: 1})}, rest + "; stable h1-2; shop/web 0/4 a  b  c "},
		"pods are replaced": {[]status.Live{live("", false, fresh, old)},
			"Progressing: the cluster is replacing pods; stable h1-2; shop/web 4/4 new stable old "},
		"held at a step": {[]status.Live{live("step 2 of h1-2; see: kubectl", false, fresh, old)},
			"Progressing: step 2 of h1-2; release h1-2; stable h1-1; shop/web 4/4 moving new canary old stable"},
		"aborted by break glass": {[]status.Live{aborted}, rest + "; stable h1-2; shop/web 1/4 new stable; " + web.Title() +
			": aborted by break glass of ann: v2 burns; its annotation stays until Git has the record"},
		"held beside one that is replaced": {[]status.Live{live("step 2", true, fresh, old), live("", false, fresh)},
			"Progressing: step 2; release h1-2; stable h1-1; shop/web 4/4 moving new canary old stable; shop/web 1/4 new stable"},
	} {
		t.Run(name, func(t *testing.T) {
			a := status.OfCluster("shop", "prod", c.live)
			got := string(a.Phase) + ": " + a.Reason
			if a.Release != nil {
				got += "; release " + string(a.Release.Hash)
			}
			if a.Stable != nil {
				got += "; stable " + string(a.Stable.Hash)
			}
			for _, w := range a.Workloads {
				got += fmt.Sprintf("; %s %d/%d", w.Workload, w.Ready, w.Replicas)
				data, err := json.Marshal(w)
				if err != nil || strings.Contains(string(data), `"weight"`) || strings.Contains(string(data), "realWeight") {
					t.Errorf("the weight of users is not known: %v %s", err, data)
				}
				if w.Moving {
					got += " moving"
				}
				for _, r := range w.Revisions {
					got += " " + r.Name + " " + r.Role
				}
				compare.CheckNamed(t, "all", 100, w.Full())
			}
			compare.Check(t, c.want, strings.Join(append([]string{got}, a.Warnings...), "; "))
		})
	}
}

// TestOfShowsHooks checks that App.Hooks has the hook Jobs of the newest release that had hooks. A wait for a Job has no due time.
func TestOfShowsHooks(t *testing.T) {
	run := func(release rollout.Hash, phase rollout.HookPhase) rollout.HookRun {
		return rollout.HookRun{Name: "shop/migrate", When: rollout.HookBefore, Release: release, Job: "migrate-1", Phase: phase, Attempt: 1}
	}
	in := strategies.Input{Head: strategies.Head{Render: &rollout.Render{}}, State: rollout.State{App: "shop", Phase: rollout.Healthy,
		Held:  &rollout.Held{Reason: rollout.HeldHook, Message: "waits for its hooks"},
		Hooks: []rollout.HookRun{run("h1-a", rollout.HookFailed), run("h1-b", rollout.HookFailed), run("h1-b", rollout.HookRunning)}}}
	a := status.Of(in, "test", nil)
	if len(a.Hooks) != 2 || a.Hooks[0].Release != "h1-b" || !a.Waits() || a.HeldText() != "running hooks" || a.Due != nil {
		t.Errorf("%+v, waits %t, due %v", a.Hooks, a.Waits(), a.Due)
	}
}
