package status

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

var (
	web  = rollout.Workload{Namespace: "shop", Name: "web"}
	noon = minute(0)
)

// paused is an app whose release waits at the second of three steps.
func paused() strategies.Input {
	weight := func(n int) *int { return &n }
	spec := rollout.Spec{
		Name: "web", Workload: web, Replicas: weight(5), MaxSurge: rollout.Amount{Value: 1}, ProgressDeadlineSeconds: 600, Scaling: rollout.Surge,
		Canary: &rollout.Canary{Steps: []rollout.Step{{SetWeight: weight(20)}, {Pause: &rollout.Pause{}}, {SetWeight: weight(60)}}},
	}
	render := func(commit string, hash rollout.Hash) *rollout.Render {
		return &rollout.Render{
			Commit: rollout.Commit{ID: commit, Author: "Ann <ann@example.com>", Subject: "version " + string(hash), When: noon}, Digest: string(hash),
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
				{Name: "web-bbb", Pin: rollout.PodHash("bbb"), Hash: "h1-2", Current: true, Desired: 1, Pods: 1, ReadySince: []time.Time{noon}, Members: ready("web-bbb-", 1)},
				{Name: "web-aaa", Pin: rollout.PodHash("aaa"), Hash: "h1-1", Desired: 5, Pods: 5, ReadySince: []time.Time{noon, noon, noon, noon, noon}, Members: ready("web-aaa-", 5)},
			},
		}}},
	}
}

// reject makes of the release one that was rejected, and that Git still asks for.
func reject(in *strategies.Input) {
	in.State.Phase, in.State.Source, in.State.Progress = rollout.Degraded, "c1", nil
	in.State.Rejected = []rollout.Rejection{{Hash: in.State.Release.Hash, Commit: "c2", Reason: "too many errors", At: minute(3)}}
	in.State.Reason = "Git asks for " + string(in.State.Release.Hash) + ", which was rejected: too many errors"
	in.State.Release, in.Source = nil, nil
}

// inLines is what people look for in an App.
func inLines(a App) string {
	var lines []string
	add := func(label, text string) {
		if text != "" {
			lines = append(lines, label+": "+text)
		}
	}
	add("phase", string(a.Phase))
	add("reason", a.Reason)
	if a.Held != nil {
		add(a.HeldText(), a.Held.Reason+" "+a.Held.Message)
	}
	if a.Rejected != nil {
		add("rejected", string(a.Rejected.Hash)+" "+a.Rejected.Reason)
	}
	for _, w := range a.Workloads {
		var steps []string
		for _, s := range w.Steps {
			steps = append(steps, s.Text+" "+s.Status)
		}
		add(w.Workload, w.Strategy+" "+strings.Join(steps, ", "))
	}
	add("waits", a.Waiting)
	for _, n := range a.Next {
		add("to "+n.To, n.Command)
	}
	return strings.Join(lines, "\n")
}

func TestOf(t *testing.T) {
	const steps = "shop/web: canary setWeight 20 done, pause current, setWeight 60 toCome\n"
	const still = "shop/web: canary setWeight 20 toCome, pause toCome, setWeight 60 toCome\n"
	back := "to go back: git revert c2 && git push\nto go back: gitrollout abort shop"
	proposed := map[string]string{"gitrollout/promote/prod/shop": "c9"}
	reverting := map[string]string{"gitrollout/revert/prod/shop": "c8"}
	cases := map[string]struct {
		change    func(*strategies.Input)
		proposals map[string]string
		want      string
	}{
		"a gate": {nil, proposed, "phase: Paused\n" + steps + "waits: promotion of RELEASE at step 2/3\n" +
			"to go on: git fetch && git merge origin/gitrollout/promote/prod/shop && git push\nto go on: gitrollout promote shop\n" + back},
		"a revert that somebody has proposed": {nil, reverting, "phase: Paused\n" + steps + "waits: promotion of RELEASE at step 2/3\nto go on: gitrollout promote shop\n" +
			"to go back: git fetch && git merge origin/gitrollout/revert/prod/shop && git push\n" + back},
		"a gate whose proposal is gone": {nil, nil, "phase: Paused\n" + steps + "waits: promotion of RELEASE at step 2/3\nto go on: gitrollout promote shop\n" + back},
		"a hold": {func(in *strategies.Input) {
			in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Hold, Author: "Bob <bob@example.com>"}
		}, proposed, "phase: Paused\n" + steps + "waits: the end of decision: hold by Bob <bob@example.com>\nto end the hold: gitrollout hold shop --off\n" + back},
		"a pause by the clock": {func(in *strategies.Input) {
			in.Head.Render.Specs[0].Canary.Steps[1].Pause.Duration = new(10 * time.Minute)
		}, nil, "phase: Paused\nshop/web: canary setWeight 20 done, pause 10m0s current, setWeight 60 toCome\nwaits: pause 10m0s, until 2026-11-20T12:11:00Z\nto skip the wait: gitrollout promote shop\n" + back},
		"never seen": {func(in *strategies.Input) { in.State = rollout.State{}; in.Observed.Workloads = nil }, nil,
			"phase: Pending\nreason: gitrollout has not seen this app yet; is gitrollout run at work?\n" + strings.TrimSuffix(still, "\n")},
		"a head that cannot be read, before that is on record": {func(in *strategies.Input) {
			in.Head.Render, in.Head.Err = nil, errors.New("kustomization.yaml: is not valid YAML")
		}, nil, "phase: Paused\nheld: InvalidInput kustomization.yaml: is not valid YAML\n" + steps + "to go back: gitrollout abort shop"},
		"an app that is not listed": {func(in *strategies.Input) {
			in.Head.Render, in.Head.Err = nil, errors.New("apps: no longer lists shop")
			in.State.Held = &rollout.Held{Reason: rollout.HeldInvalidInput, Message: "apps: no longer lists shop"}
			in.State.Phase = rollout.Progressing
		}, proposed, "phase: Progressing\nheld: InvalidInput apps: no longer lists shop\n" + steps + "to go back: gitrollout abort shop"},
		"an app that is not listed, and was rejected": {func(in *strategies.Input) {
			reject(in)
			in.Source, in.Head.Render, in.Head.Err = in.Head.Render, nil, errors.New("apps: no longer lists shop")
			in.State.Held = &rollout.Held{Reason: rollout.HeldInvalidInput, Message: "apps: no longer lists shop"}
		}, nil, "phase: Degraded\nreason: Git asks for RELEASE, which was rejected: too many errors\nheld: InvalidInput apps: no longer lists shop\n" + strings.TrimSuffix(still, "\n")},
		"what was rejected, without its Rollout document": {func(in *strategies.Input) {
			reject(in)
			in.Head.Render.Specs = nil
		}, reverting, "phase: Degraded\nreason: Git asks for RELEASE, which was rejected: too many errors\nshop/web: plain \n" +
			"waits: a revert of RELEASE in Git, a new version, or its Rollout document\nto go back in Git too: git fetch && git merge origin/gitrollout/revert/prod/shop && git push"},
		"a rejected version that serves": {func(in *strategies.Input) {
			reject(in)
			in.State.Phase, in.State.Reason = rollout.Healthy, ""
			in.State.Stable.Hash, in.State.Stable.Templates = in.Head.Render.Release(), in.Head.Render.Templates
			in.Observed.Workloads = nil
		}, nil, "phase: Healthy\n" + strings.TrimSuffix(still, "\n")},
		"what was rejected": {reject, reverting, "phase: Degraded\nreason: Git asks for RELEASE, which was rejected: too many errors\nrejected: RELEASE too many errors\n" + still +
			"waits: a revert of RELEASE in Git, a new version, or decision: retry\nto go back in Git too: git fetch && git merge origin/gitrollout/revert/prod/shop && git push\nto try it again: gitrollout retry shop"},
		"a commit that scales what was rejected": {func(in *strategies.Input) {
			reject(in)
			in.Head.Commit.ID = "c3"
		}, reverting, "phase: Degraded\nreason: Git asks for RELEASE, which was rejected: too many errors\nrejected: RELEASE too many errors\n" + still +
			"waits: a revert of RELEASE in Git, a new version, or decision: retry; of what is pushed until then, replicas alone have an effect\n" +
			"to go back in Git too: git fetch && git merge origin/gitrollout/revert/prod/shop && git push\nto try it again: gitrollout retry shop"},
		"a way back": {func(in *strategies.Input) {
			in.State.Phase, in.State.Reason = rollout.Aborting, "aborted by Bob"
			in.State.Rejected = []rollout.Rejection{{Hash: in.State.Release.Hash, Commit: "c2", Reason: "aborted by Bob", At: minute(3)}}
			in.State.Retreat = &rollout.Retreat{Reject: true, Routed: minute(4), Drain: minute(30), To: "c1"}
		}, nil, "phase: Aborting\nreason: aborted by Bob\nrejected: RELEASE aborted by Bob\nshop/web: canary setWeight 20 done, pause toCome, setWeight 60 toCome\nwaits: all pods to be of the stable version"},
		"a way back that Git does not agree with": {func(in *strategies.Input) {
			in.State.Phase, in.State.Reason = rollout.Aborting, "aborted by Bob"
			in.State.Rejected = []rollout.Rejection{{Hash: in.State.Release.Hash, Commit: "c2", Reason: "aborted by Bob", At: minute(3)}}
			in.State.Retreat = &rollout.Retreat{Reject: true, Routed: minute(4), Drain: minute(30), To: "c1"}
		}, reverting, "phase: Aborting\nreason: aborted by Bob\nrejected: RELEASE aborted by Bob\nshop/web: canary setWeight 20 done, pause toCome, setWeight 60 toCome\n" +
			"waits: all pods to be of the stable version\nto go back in Git too: git fetch && git merge origin/gitrollout/revert/prod/shop && git push"},
		"a Deployment without a Rollout": {func(in *strategies.Input) {
			in.Head.Render.Specs, in.State = nil, rollout.State{App: "shop", Phase: rollout.Healthy, Source: "c2"}
		}, nil, "phase: Progressing\nreason: Deployment shop/web: 1 of 5 pods are ready\nshop/web: plain "},
		"what is not well for long": {func(in *strategies.Input) {
			in.Head.Render.Specs, in.State = nil, rollout.State{App: "shop", Phase: rollout.Healthy, Source: "c2", Unhealthy: "Deployment shop/web: 0 of 5 pods are ready"}
		}, nil, "phase: Degraded\nreason: Deployment shop/web: 1 of 5 pods are ready\nshop/web: plain "},
		"what is not well, of which the cluster is not seen": {func(in *strategies.Input) {
			in.Head.Render.Specs, in.State = nil, rollout.State{App: "shop", Phase: rollout.Healthy, Source: "c2", Unhealthy: "Deployment shop/web: 0 of 5 pods are ready"}
			in.Observed.Workloads = nil
		}, nil, "phase: Degraded\nreason: Deployment shop/web: 0 of 5 pods are ready"},
		"an object of another kind": {func(in *strategies.Input) {
			in.Head.Render.Specs, in.State = nil, rollout.State{App: "shop", Phase: rollout.Healthy, Source: "c2"}
			in.Observed = rollout.Observed{Troubled: []rollout.Trouble{{Ref: rollout.Ref{Group: "batch", Kind: "Job", Namespace: "shop", Name: "move"}, Failed: true, Message: "Job failed"}}}
		}, nil, "phase: Progressing\nreason: Job shop/move: Job failed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := paused()
			hash := string(in.State.Release.Hash)
			if c.change != nil {
				c.change(&in)
			}
			got := strings.ReplaceAll(inLines(Of(in, "prod", c.proposals)), hash, "RELEASE")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOfCountsWhatIsThere: pods and weights are the cluster's.
func TestOfCountsWhatIsThere(t *testing.T) {
	a := Of(paused(), "prod", nil)
	w := a.Workloads[0]
	if w.Replicas != 5 || w.Ready != 6 || w.Weight != 20 || w.RealWeight != 16 || !w.Moving || w.Routed || len(w.Revisions) != 2 {
		t.Errorf("%+v", w)
	}
	if r := w.Revisions[0]; r.Role != "canary" || r.Ready != 1 || len(r.Pods) != 1 || w.Revisions[1].Role != "stable" {
		t.Errorf("%+v", w.Revisions)
	}
	if a.Release.Author != "Ann <ann@example.com>" || a.Stable.Commit != "c1" || a.Source.Subject == "" {
		t.Errorf("%+v, %+v, %+v", a.Release, a.Stable, a.Source)
	}
}

// TestShare writes weights as people wrote them.
func TestShare(t *testing.T) {
	for want, w := range map[string]Workload{"20%": {}, "20/1000": {FullWeight: 1000}} {
		if got := w.Share(20); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
