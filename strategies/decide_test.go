package strategies

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

var web = rollout.Workload{Namespace: testApp.Namespace, Name: "web"}

// oneWeb returns an app with one workload of ten pods and a canary that replaces pods in place.
func oneWeb(change func(*rollout.Spec)) *history {
	spec := rollout.Spec{
		Workload: web, Replicas: new(10), MaxSurge: rollout.Amount{Value: 25, Percent: true},
		MaxUnavailable:          rollout.Amount{Value: 25, Percent: true},
		ProgressDeadlineSeconds: 600, Scaling: rollout.InPlace,
		Canary: &rollout.Canary{Steps: []rollout.Step{
			{SetWeight: new(20)}, {Pause: &rollout.Pause{}}, {Name: "soak", Pause: &rollout.Pause{Duration: new(time.Minute)}},
		}},
	}
	if change != nil {
		change(&spec)
	}
	return newHistory(source{workloads: []staged{{spec: spec, version: "v1"}}})
}

func version(v string) func(*source) {
	return func(x *source) { x.workloads[0].version = v }
}

// set returns a ReplicaSet with desired pods, of which ready have been ready since noon.
func set(h *history, commit string, desired, ready int) rollout.Revision {
	r := pods(desired, ready)
	r.Name, r.Pin, r.Hash = "web-"+commit, rollout.PodHash(commit), h.at(commit).Templates[web]
	return r
}

// healed says that the cluster equals the state.
var healed = Answers{Healed: new(true)}

// world returns an Input at rest at the first commit of a history, with the newest commit as the head.
func world(h *history, sets ...rollout.Revision) Input {
	release := rollout.Release{
		Commit: commitID(0), Hash: h.at(commitID(0)).Release(), Author: "Ann", Since: noon,
		Templates: h.at(commitID(0)).Staged(),
	}
	if len(sets) == 0 {
		sets = []rollout.Revision{set(h, commitID(0), 10, 10)}
	}
	return Input{
		Now: noon.Add(time.Hour), App: testApp, Head: h.headInput(), Source: h.at(commitID(0)), Answers: healed,
		Promotion: h.head().promotion,
		State: rollout.State{
			App: testApp.Name, Path: testApp.Path, Phase: rollout.Healthy, Source: commitID(0), Stable: &release,
			Verified: []rollout.Hash{release.Hash},
		},
		Observed: rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{
			web: {Replicas: 10, Hash: sets[0].Hash, Synced: true, Complete: true, Revisions: sets},
		}},
	}
}

// inFlight returns a world that releases the newest commit and is at a step.
func inFlight(h *history, step int, sets ...rollout.Revision) Input {
	in := world(h, sets...)
	in.State = Decide(in).State
	in.Source = h.at(in.State.Source)
	spec, _ := in.Source.Spec(web)
	in.State.Progress = []rollout.Progress{plan.Compile(spec).Enter(step, in.Now)}
	in.State.Phase = phaseOf(in, in.State.Progress)
	live := in.Observed.Workloads[web]
	live.Hash, live.Complete = in.Source.Templates[web], false
	in.Observed.Workloads[web] = live
	return in
}

func TestDecideAtRest(t *testing.T) {
	reject := func(in *Input, h rollout.Hash) {
		in.State.Rejected = []rollout.Rejection{{Hash: h, Commit: commitID(1), Reason: "errors", At: noon, Promotion: "d1"}}
	}
	type want struct {
		Phase   rollout.Phase
		Source  string
		Release string // its commit
		Fast    bool
		Held    string
		Says    string // a part of the subject
	}
	cases := map[string]struct {
		reason string
		push   []func(*source)
		change func(*Input, *history)
		want   want
	}{
		"Nothing": {"nothing to do is no transition", nil, nil, want{Phase: rollout.Healthy, Source: commitID(0)}},
		"Configuration": {"a change outside the template is followed at once", []func(*source){func(x *source) { x.config++ }}, nil,
			want{Phase: rollout.Healthy, Source: commitID(1), Says: "follows"}},
		"PromotionOnly": {"a commit that changes nothing of the app is not followed",
			[]func(*source){func(x *source) { x.promotion = &rollout.Promotion{} }}, nil, want{Phase: rollout.Healthy, Source: commitID(0)}},
		"Version": {"a new template is a release", []func(*source){version("v2")}, nil,
			want{Phase: rollout.Progressing, Source: commitID(1), Release: commitID(1), Says: "release"}},
		"VerifiedBefore": {"a hash that served well is rolled out without pauses", []func(*source){version("v2")},
			func(in *Input, h *history) {
				in.State.Verified = append(in.State.Verified, h.at(commitID(1)).Release())
			}, want{Phase: rollout.Promoting, Source: commitID(1), Release: commitID(1), Fast: true, Says: "verified before"}},
		"Rejected": {"a rejected hash is not tried again", []func(*source){version("v2")},
			func(in *Input, h *history) { reject(in, h.at(commitID(1)).Release()) },
			want{Phase: rollout.Degraded, Source: commitID(0), Says: "degraded"}},
		"RejectedConfig": {"and stable keeps the newest that it served with",
			[]func(*source){func(x *source) { x.config++ }, version("v2")}, func(in *Input, h *history) {
				reject(in, h.at(commitID(2)).Release())
				in.State.Source, in.Source = commitID(1), h.at(commitID(1))
			}, want{Phase: rollout.Degraded, Source: commitID(1), Says: "degraded"}},
		"Retry": {"unless a promotion says retry", []func(*source){version("v2")}, func(in *Input, h *history) {
			reject(in, h.at(commitID(1)).Release())
			in.Promotion = &rollout.Promotion{Decision: rollout.Retry, Release: h.at(commitID(1)).Release(), Digest: "d2"}
		}, want{Phase: rollout.Progressing, Source: commitID(1), Release: commitID(1), Says: "release"}},
		"RetryStale": {"about this very hash", []func(*source){version("v2")}, func(in *Input, h *history) {
			reject(in, h.at(commitID(1)).Release())
			in.Promotion = &rollout.Promotion{Decision: rollout.Retry, Release: "h1-other", Digest: "d2"}
		}, want{Phase: rollout.Degraded, Source: commitID(0), Says: "degraded"}},
		"RetryTwice": {"and the same file retries once", []func(*source){version("v2")}, func(in *Input, h *history) {
			reject(in, h.at(commitID(1)).Release())
			in.Promotion = &rollout.Promotion{Decision: rollout.Retry, Release: h.at(commitID(1)).Release(), Digest: "d1"}
		}, want{Phase: rollout.Degraded, Source: commitID(0), Says: "degraded"}},
		"Broken": {"a commit that cannot be rendered is not followed", []func(*source){func(x *source) { x.broken = true }}, nil,
			want{Phase: rollout.Healthy, Source: commitID(0), Held: "InvalidInput", Says: "held"}},
		"Mended": {"and is forgotten when it can", nil,
			func(in *Input, _ *history) { in.State.Held = &rollout.Held{Reason: "InvalidInput", Message: "x"} },
			want{Phase: rollout.Healthy, Source: commitID(0), Says: "goes on"}},
		"NoDocuments": {"without Rollout documents Deployments are plain",
			[]func(*source){func(x *source) { x.workloads[0].plain, x.workloads[0].version = true, "v2" }}, nil,
			want{Phase: rollout.Healthy, Source: commitID(1), Says: "follows"}},
		"NoPods": {"a workload without pods is not promoted unseen",
			[]func(*source){func(x *source) { x.workloads[0].spec.Replicas, x.workloads[0].version = new(0), "v2" }}, nil,
			want{Phase: rollout.Paused, Source: commitID(1), Release: commitID(1), Says: "release"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := oneWeb(nil)
			for _, push := range tc.push {
				h.push(push)
			}
			in := world(h)
			if tc.change != nil {
				tc.change(&in, h)
			}
			d := Decide(in)
			got := want{Phase: d.State.Phase, Source: d.State.Source, Says: tc.want.Says}
			if r := d.State.Release; r != nil {
				got.Release, got.Fast = r.Commit, r.Fast
			}
			if d.State.Held != nil {
				got.Held = string(d.State.Held.Reason)
			}
			compare.CheckNamed(t, tc.reason, tc.want, got)
			if !strings.Contains(d.Subject, tc.want.Says) || (d.Subject == "") != (tc.want.Says == "") {
				t.Errorf("%s: subject is %q, want %q", tc.reason, d.Subject, tc.want.Says)
			}
			if d.Rollback {
				t.Errorf("%s: applied before it is recorded", tc.reason)
			}
		})
	}
}

// TestHeldIsRecordedOnce checks that the same error in a later commit is no transition. A broken branch does not fill
// the state branch.
func TestHeldIsRecordedOnce(t *testing.T) {
	h := oneWeb(nil)
	h.push(func(x *source) { x.broken = true })
	in := world(h)
	d := Decide(in)
	if d.Subject == "" || d.State.Held == nil || d.State.Held.Commit != commitID(1) {
		t.Fatalf("held is %+v, subject %q", d.State.Held, d.Subject)
	}
	h.push(func(x *source) { x.config++ })
	in.State, in.Head = d.State, h.headInput()
	if d := Decide(in); d.Subject != "" || d.State.Held.Commit != commitID(1) {
		t.Errorf("recorded again: %q, %+v", d.Subject, d.State.Held)
	}
}

func TestLeavingARelease(t *testing.T) {
	type want struct {
		Phase    rollout.Phase
		To       string
		Rejected bool
		Drain    time.Duration // after the change of the routes
	}
	surge := func(s *rollout.Spec) {
		s.Scaling, s.Canary.StableService, s.Canary.AbortScaleDownDelaySeconds = rollout.Surge, "web", 30
	}
	abort := func(x *source) { x.promotion = &rollout.Promotion{Decision: rollout.Abort, Author: "Bob", Digest: "d"} }
	cases := map[string]struct {
		reason string
		spec   func(*rollout.Spec)
		push   func(*source)
		change func(*Input)
		want   want
	}{
		"Revert": {"a revert's own commit is where the app goes, and nothing is rejected", surge, version("v1"), nil,
			want{rollout.Aborting, commitID(3), false, 0}},
		"Supersede": {"the newest that stable served with", surge, version("v3"), nil, want{rollout.Aborting, commitID(1), false, 0}},
		"Abort": {"rejected; the canary's pods stay for the delay", surge, abort, nil,
			want{rollout.Aborting, commitID(1), true, 30 * time.Second}},
		"AbortInPlace": {"in place stable needs their room", nil, abort, nil, want{rollout.Aborting, commitID(1), true, 0}},
		"AbortPromoting": {"while promoting stable is no longer whole", surge, abort, func(in *Input) { in.State.Phase = rollout.Promoting },
			want{rollout.Aborting, commitID(1), true, 0}},
		"Deadline": {"progressDeadlineAbort", func(s *rollout.Spec) { s.ProgressDeadlineAbort = true },
			func(x *source) { x.promotion = nil },
			func(in *Input) { in.Now = in.Now.Add(600 * time.Second) }, want{rollout.Aborting, commitID(1), true, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := oneWeb(tc.spec)
			h.push(func(x *source) { x.config++ })
			h.push(version("v2"))
			in := world(h, set(h, commitID(0), 10, 10), set(h, commitID(2), 2, 0))
			in.State.Source, in.Source = commitID(1), h.at(commitID(1)) // a change of the configuration was followed
			in.State = Decide(in).State
			in.Source = h.at(in.State.Source)
			h.push(tc.push)
			if p := h.head().promotion; p != nil {
				p.Release = in.State.Release.Hash
			}
			in.Head, in.Promotion = h.headInput(), h.head().promotion
			if tc.change != nil {
				tc.change(&in)
			}
			d := Decide(in)
			if d.State.Rollback == nil || !d.Rollback {
				t.Fatalf("%s: no rollback but %q", tc.reason, d.Subject)
			}
			_, rejected := d.State.IsRejected(in.State.Release.Hash)
			got := want{d.State.Phase, d.State.Rollback.To, rejected, d.State.Rollback.Drain.Sub(d.State.Rollback.Routed)}
			compare.CheckNamed(t, tc.reason, tc.want, got)
		})
	}
}

func TestGates(t *testing.T) {
	h := oneWeb(func(s *rollout.Spec) { s.MinReadySeconds = 60 })
	h.push(version("v2"))
	hash := h.at(commitID(1)).Release()
	stable := set(h, commitID(0), 8, 8)
	ailing := rollout.Revision{Hash: stable.Hash, Desired: 8, Pods: 8, Problem: "pod web-7: CrashLoopBackOff"}
	fresh := func(ready int) rollout.Revision { return set(h, commitID(1), 2, ready) }
	cases := map[string]struct {
		reason    string
		step      int
		at        time.Duration // after noon
		sets      []rollout.Revision
		promotion *rollout.Promotion
		change    func(*Input)
		want      verdict
	}{
		"Done": {"pods serve, old ones are gone", 0, time.Hour, []rollout.Revision{stable, fresh(2)}, nil, nil, verdict{done: true}},
		"NotReady": {"pods are missing", 0, time.Hour, []rollout.Revision{stable, fresh(1)}, nil, nil,
			verdict{text: "pods of the new version: 1 of 2 serve"}},
		"Problem": {"and why", 0, time.Hour, []rollout.Revision{stable, {Hash: hash, Desired: 2, Pods: 2, Problem: "ImagePullBackOff"}}, nil, nil,
			verdict{text: "pods of the new version: 0 of 2 serve (ImagePullBackOff)"}},
		"StableProblem": {"and of stable pods where pods are replaced in place", 0, time.Hour, []rollout.Revision{ailing, fresh(0)}, nil, nil,
			verdict{text: "pods of the new version: 0 of 2 serve (stable pod web-7: CrashLoopBackOff)"}},
		"StableProblemBeside": {"the new version's own comes first", 0, time.Hour,
			[]rollout.Revision{ailing, {Hash: hash, Desired: 2, Problem: "x"}}, nil, nil,
			verdict{text: "pods of the new version: 0 of 2 serve (x)"}},
		"StableProblemOfSurge": {"new pods beside the stable ones do not wait for them", 0, time.Hour, []rollout.Revision{ailing, fresh(0)}, nil,
			func(in *Input) { in.Head.Render.Specs[0].Scaling = rollout.Surge }, verdict{text: "pods of the new version: 0 of 2 serve"}},
		"TooYoung": {"ready is not yet serving", 0, 10 * time.Second, []rollout.Revision{stable, fresh(2)}, nil, nil,
			verdict{text: "pods of the new version: 0 of 2 serve", due: noon.Add(time.Minute)}},
		"OldAreLeft": {"in place the old ones have to go", 0, time.Hour, []rollout.Revision{set(h, commitID(0), 10, 10), fresh(2)}, nil, nil,
			verdict{text: "pods of the old version: 2 of 10 have yet to go"}},
		"NotSynced": {"the controller has not seen it", 0, time.Hour, []rollout.Revision{stable, fresh(2)}, nil,
			func(in *Input) {
				live := in.Observed.Workloads[web]
				live.Synced = false
				in.Observed.Workloads[web] = live
			}, verdict{text: "the Deployment controller"}},
		"Gone": {"the Deployment was deleted", 0, time.Hour, []rollout.Revision{stable}, nil,
			func(in *Input) { delete(in.Observed.Workloads, web) }, verdict{text: "Deployment shop/web to exist"}},
		"NotSettled": {"the cluster has not accepted the step", 0, time.Hour, []rollout.Revision{stable, fresh(2)}, nil,
			func(in *Input) { in.Answers.Healed = new(false) }, verdict{text: "the cluster to accept the objects of setWeight 20"}},
		"Gate": {"the gate waits for a promotion", 1, time.Hour, []rollout.Revision{stable, fresh(2)}, nil, nil,
			verdict{paused: true, text: "promotion of " + string(hash) + " at step 2/3"}},
		"GateOpen": {"a promotion opens the gate", 1, time.Hour, []rollout.Revision{stable, fresh(2)},
			&rollout.Promotion{Release: hash, Decision: rollout.Promote, Through: "2", Author: "Bob"}, nil, verdict{done: true, by: "Bob"}},
		"GateStale": {"something else", 1, time.Hour, []rollout.Revision{stable, fresh(2)},
			&rollout.Promotion{Release: "h1-other", Decision: rollout.Promote, Through: "full"}, nil,
			verdict{paused: true, text: "promotion of " + string(hash) + " at step 2/3"}},
		"GateFast": {"a verified hash does not wait", 1, time.Hour, []rollout.Revision{stable, fresh(2)}, nil,
			func(in *Input) { in.State.Release.Fast = true }, verdict{done: true}},
		"Timer": {"the clock runs from when the step began", 2, time.Hour + 59*time.Second, []rollout.Revision{stable, fresh(2)}, nil, nil,
			verdict{paused: true, due: noon.Add(61 * time.Minute), text: "pause 1m0s, until 2026-11-20T13:01:00Z"}},
		"TimerDone": {"and is through", 2, time.Hour + time.Minute, []rollout.Revision{stable, fresh(2)}, nil, nil, verdict{done: true}},
		"TimerBack": {"a clock that was set back waits longer", 2, 0, []rollout.Revision{stable, fresh(2)}, nil, nil,
			verdict{paused: true, due: noon.Add(61 * time.Minute), text: "pause 1m0s, until 2026-11-20T13:01:00Z"}},
		"TimerOpen": {"a promotion passes the pause early", 2, time.Hour, []rollout.Revision{stable, fresh(2)},
			&rollout.Promotion{Release: hash, Decision: rollout.Promote, Through: "soak"}, nil, verdict{done: true, by: "a promotion file"}},
		"Hold": {"hold stops everything", 0, time.Hour, []rollout.Revision{stable, fresh(2)},
			&rollout.Promotion{Release: hash, Decision: rollout.Hold, Author: "Bob"}, nil,
			verdict{paused: true, text: "the end of decision: hold by Bob"}},
		"Paused": {"and so does the document", 0, time.Hour, []rollout.Revision{stable, fresh(2)}, nil,
			func(in *Input) { in.Head.Render.Specs[0].Paused = true },
			verdict{paused: true, text: "the end of paused: true in the Rollout document"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h.renders = map[int]*rollout.Render{} // a case may change its render
			in := inFlight(h, tc.step, tc.sets...)
			in.Now, in.Promotion = noon.Add(tc.at), tc.promotion
			if tc.change != nil {
				tc.change(&in)
			}
			spec, _ := in.Head.Render.Spec(web)
			got := gates.verdict(in, workloads.New(in.State, plan.Compile(spec), in.State.Progress[0], in.Observed))
			compare.CheckNamed(t, tc.reason, tc.want, got)
		})
	}
}

func TestOverdue(t *testing.T) {
	h := oneWeb(nil)
	h.push(version("v2"))
	entered := noon.Add(time.Hour)
	late := func(r rollout.Revision, at time.Duration) rollout.Revision {
		r.ReadySince = append(r.ReadySince, entered.Add(at))
		return r
	}
	cases := map[string]struct {
		reason string
		step   int
		sets   []rollout.Revision
		after  time.Duration
		want   bool
	}{
		"InTime": {"just before the deadline", 0, []rollout.Revision{set(h, commitID(0), 8, 8), set(h, commitID(1), 2, 0)}, 599 * time.Second,
			false},
		"TooLate": {"at the deadline", 0, []rollout.Revision{set(h, commitID(0), 8, 8), set(h, commitID(1), 2, 0)}, 600 * time.Second, true},
		"PodWasReady": {"a pod that became ready is progress", 0,
			[]rollout.Revision{set(h, commitID(0), 8, 8), late(set(h, commitID(1), 2, 0), 5*time.Minute)}, 600 * time.Second, false},
		"PodLongAgo": {"once", 0, []rollout.Revision{set(h, commitID(0), 8, 8), late(set(h, commitID(1), 2, 0), 5*time.Minute)},
			900 * time.Second, true},
		"Pause": {"pauses do not count", 1, []rollout.Revision{set(h, commitID(0), 8, 8), set(h, commitID(1), 2, 2)}, 24 * time.Hour, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := inFlight(h, tc.step, tc.sets...)
			in.Now = entered.Add(tc.after)
			if _, got := overdue(in); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}

// TestTwoDeadlines checks that one workload's deadline only reports a delay. The later deadline of another workload
// still rolls the release back, and causes a requeue in time.
func TestTwoDeadlines(t *testing.T) {
	api := rollout.Workload{Namespace: testApp.Namespace, Name: "api"}
	h := oneWeb(func(s *rollout.Spec) { s.ProgressDeadlineSeconds = 60 })
	spec, _ := h.at(commitID(0)).Spec(web)
	spec.Workload, spec.ProgressDeadlineSeconds, spec.ProgressDeadlineAbort = api, 600, true
	h = newHistory(source{workloads: []staged{{spec: h.head().workloads[0].spec, version: "v1"}, {spec: spec, version: "v1"}}})
	h.push(func(x *source) { x.workloads[0].version, x.workloads[1].version = "v2", "v2" })
	in := world(h)
	in.Observed.Workloads[api] = in.Observed.Workloads[web]
	in.State = Decide(in).State
	in.Source = h.at(in.State.Source)
	began := in.Now
	in.Now = began.Add(time.Minute)
	d := Decide(in)
	if d.State.Phase != rollout.Stalled || !d.Requeue.Equal(began.Add(10*time.Minute)) {
		t.Errorf("after a minute it is %s, and it looks again at %s", d.State.Phase, d.Requeue)
	}
	in.State, in.Now = d.State, began.Add(10*time.Minute)
	if d := Decide(in); d.State.Phase != rollout.Aborting {
		t.Errorf("after ten minutes it is %s", d.State.Phase)
	}
}

func TestRollbackWindow(t *testing.T) {
	cases := map[string]struct {
		reason   string
		window   *int
		verified []rollout.Hash // newest first; the first is stable
		want     bool
	}{
		"Unlimited":     {"every verified hash", nil, []rollout.Hash{"a", "b", "c", "x"}, true},
		"NotVerified":   {"a hash that never served", nil, []rollout.Hash{"a", "b"}, false},
		"None":          {"0 is none", new(0), []rollout.Hash{"a", "x"}, false},
		"InsideOfTwo":   {"the second one before stable", new(2), []rollout.Hash{"a", "b", "x"}, true},
		"OutsideOfTwo":  {"the third one", new(2), []rollout.Hash{"a", "b", "c", "x"}, false},
		"NothingBefore": {"an app without a history", nil, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := oneWeb(func(s *rollout.Spec) { s.RollbackWindow = tc.window })
			in := world(h)
			in.State.Verified = tc.verified
			if got := isFast(in, "x"); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}

func TestRemember(t *testing.T) {
	list := []rollout.Hash{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
	before := dump(list)
	compare.CheckNamed(t, "the oldest goes", []rollout.Hash{"x", "0", "1", "2", "3", "4", "5", "6", "7", "8"}, remember(list, "x"))
	compare.CheckNamed(t, "those that came after a known one are left", []rollout.Hash{"4", "5", "6", "7", "8", "9"}, remember(list, "4"))
	if dump(list) != before {
		t.Error("the list was changed in place")
	}
}

// TestPauseWatchesPods checks that a pause requeues for the pods of an autoscaler. Those pods replace others when
// they are ready, and no other event would cause a look.
func TestPauseWatchesPods(t *testing.T) {
	h := oneWeb(func(s *rollout.Spec) { s.MinReadySeconds = 60 })
	h.push(version("v2"))
	in := inFlight(h, 1, set(h, commitID(0), 8, 8), set(h, commitID(1), 2, 2))
	if d := Decide(in); !d.Requeue.IsZero() {
		t.Errorf("all pods serve, and it looks again at %v", d.Requeue)
	}
	young := in.Observed.Workloads[web].Revisions[1].ReadySince
	young[1] = in.Now.Add(-20 * time.Second)
	if d, want := Decide(in), in.Now.Add(40*time.Second); !d.Requeue.Equal(want) {
		t.Errorf("looks again at %v, want %v", d.Requeue, want)
	}
}

// TestReplicasAtAPauseKeepTheMark scales a paused workload to 0 and back. The record changes, and no object does.
func TestReplicasAtAPauseKeepTheMark(t *testing.T) {
	h := oneWeb(func(s *rollout.Spec) { s.Replicas = nil })
	h.push(version("v2"))
	for _, suspended := range []bool{false, true} {
		in := inFlight(h, 1, set(h, commitID(0), 8, 8), set(h, commitID(1), 2, 2))
		in.State.Progress[0].Suspended, in.State.Serial = suspended, 7
		if live := in.Observed.Workloads[web]; !suspended {
			live.Replicas = 0
			in.Observed.Workloads[web] = live
		}
		if d := Decide(in); d.State.Progress[0].Suspended == suspended || d.State.Written != 7 {
			t.Errorf("%s: the mark is %d, want 7", d.Subject, d.State.Written)
		}
	}
}

// TestTooManyOldOnesAreWatched checks that surplus old pods cause a requeue for the next available new pod, also with
// surge. Surplus pods come from a change by hand, or from a template that was stable for a while.
func TestTooManyOldOnesAreWatched(t *testing.T) {
	h := oneWeb(func(s *rollout.Spec) { s.MinReadySeconds, s.Scaling = 60, rollout.Surge })
	h.push(version("v2"))
	in := inFlight(h, 1, set(h, commitID(0), 8, 8), set(h, commitID(1), 2, 2))
	want := stagedIn(in.prepared())[0].Want()
	for old, looks := range map[int]bool{want.Stable: false, want.Stable + 1: true} {
		in = inFlight(h, 1, set(h, commitID(0), old, old), set(h, commitID(1), want.Canary, want.Canary))
		in.Observed.Workloads[web].Revisions[1].ReadySince[0] = in.Now.Add(-20 * time.Second)
		if due := Decide(in).Requeue; due.Equal(in.Now.Add(40*time.Second)) != looks {
			t.Errorf("%d old pods, where %d are asked for: it looks again at %v", old, want.Stable, due)
		}
	}
}

// TestHeldLooksAgain checks that an unreadable head does not stop the deadline of a release. A rollback still removes
// the canary's pods in time.
func TestHeldLooksAgain(t *testing.T) {
	h := oneWeb(func(s *rollout.Spec) {
		s.ProgressDeadlineAbort, s.Scaling = true, rollout.Surge
		s.Canary.StableService, s.Canary.CanaryService, s.Canary.AbortScaleDownDelaySeconds = "web", "web-canary", 30
	})
	h.push(version("v2"))
	in := world(h)
	in.State = Decide(in).State
	in.Source = h.at(in.State.Source)
	h.push(func(x *source) { x.broken = true })
	in.Head = h.headInput()
	if d, want := Decide(in), in.Now.Add(10*time.Minute); d.State.Held == nil || !d.Requeue.Equal(want) {
		t.Errorf("held at its first step it looks again at %v, want %v (held %+v)", d.Requeue, want, d.State.Held)
	}
	in.Now = in.Now.Add(10 * time.Minute)
	back := Decide(in)
	if back.State.Phase != rollout.Aborting {
		t.Fatalf("at the deadline it is %s", back.State.Phase)
	}
	in.State = back.State
	if d, want := Decide(in), in.Now.Add(30*time.Second); !d.Requeue.Equal(want) {
		t.Errorf("rolling back it looks again at %v, want %v", d.Requeue, want)
	}
}

// TestWaitingLooksAgain checks that no deadline passes while a release is on hold. A release that is late when the
// hold ends rolls back at once. With an unreadable head, an in-place update continues with each ready pod.
func TestWaitingLooksAgain(t *testing.T) {
	h := oneWeb(func(s *rollout.Spec) { s.ProgressDeadlineAbort = true })
	h.push(version("v2"))
	in := world(h)
	in.State = Decide(in).State
	in.Source = h.at(in.State.Source)
	in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Hold}
	d := Decide(in)
	if d.State.Phase != rollout.Paused || !d.Requeue.IsZero() {
		t.Errorf("%s, it looks again at %v", d.State.Phase, d.Requeue)
	}
	if in.Now = in.Now.Add(10 * time.Minute); Decide(in).State.Phase != rollout.Paused {
		t.Error("on hold it does not stay")
	}
	if in.Promotion = nil; Decide(in).State.Phase != rollout.Aborting {
		t.Error("past the deadline it stays")
	}

	h = oneWeb(func(s *rollout.Spec) { s.MinReadySeconds = 30 })
	h.push(version("v2"))
	in = inFlight(h, 0, set(h, commitID(0), 8, 8), set(h, commitID(1), 2, 2))
	in.Observed.Workloads[web].Revisions[1].ReadySince[1] = in.Now.Add(-10 * time.Second)
	h.push(func(x *source) { x.broken = true })
	in.Head = h.headInput()
	if d, want := Decide(in), in.Now.Add(20*time.Second); d.State.Held == nil || !d.Requeue.Equal(want) {
		t.Errorf("held %+v, it looks again at %v, want %v", d.State.Held, d.Requeue, want)
	}
}

// TestUnreportedPodsCount checks that pods count before their ReplicaSet reports them. Right after a scale-down, the
// Deployment's status may come from an old ReplicaSet without pods.
func TestUnreportedPodsCount(t *testing.T) {
	h := oneWeb(nil)
	h.push(version("v2"))
	in := world(h)
	in.State = Decide(in).State
	h.push(version("v3"))
	in.Head, in.Source = h.headInput(), h.at(in.State.Source)
	in.State = Decide(in).State
	in.Source = h.at(in.State.Source)
	if in.State.Phase != rollout.Aborting {
		t.Fatalf("superseded it is %s", in.State.Phase)
	}
	sets := []rollout.Revision{set(h, commitID(0), 10, 10), set(h, commitID(1), 0, 0)}
	sets[0].Current, sets[1].Pods = true, 3
	in.Observed.Workloads[web] = rollout.ObservedWorkload{Replicas: 10, Hash: sets[0].Hash, Synced: true, Complete: true, Revisions: sets}
	if d := Decide(in); d.State.Phase != rollout.Aborting {
		t.Errorf("with 3 pods of the old version it goes on: %s", d.Subject)
	}
	sets[1].Pods = 0
	if d := Decide(in); d.State.Phase != rollout.Progressing {
		t.Errorf("without them it is %s: %s", d.State.Phase, d.Subject)
	}
}

// TestOverdueNamesWhatItWaitsFor checks the message of a delay: with pods replaced in place, the unready pod may be a
// stable one.
func TestOverdueNamesWhatItWaitsFor(t *testing.T) {
	h := oneWeb(nil)
	h.push(version("v2"))
	ailing := set(h, commitID(0), 8, 7)
	ailing.Problem = "pod web-7: CrashLoopBackOff"
	in := inFlight(h, 0, ailing, set(h, commitID(1), 2, 0))
	in.Now = noon.Add(24 * time.Hour)
	if d, is := overdue(in); !is || !strings.HasSuffix(d.reason, ": stable pod web-7: CrashLoopBackOff") {
		t.Errorf("overdue: %t, %q", is, d.reason)
	}
}

// TestWhoHoldsIsRemembered checks that a new process reports the recorded author of a hold.
func TestWhoHoldsIsRemembered(t *testing.T) {
	for recorded, want := range map[string]string{
		"": "", "release h1 waits for the end of decision: hold by Ann": "Ann", "of another kind": "",
	} {
		p := &rollout.Promotion{}
		var held *rollout.Held
		if recorded != "" {
			held = &rollout.Held{Message: recorded}
		}
		if got := whoHeld(p, held); got.Author != want || p.Author != "" {
			t.Errorf("recorded %q: %q, want %q; the given author is %q", recorded, got.Author, want, p.Author)
		}
		if got := whoHeld(&rollout.Promotion{Author: "Bob"}, held); got.Author != "Bob" {
			t.Errorf("recorded %q, and Bob holds it: %q", recorded, got.Author)
		}
	}
}

// TestReplicasWithoutDocument checks that replicas of Git count after the Rollout document left Git, in flight and
// after an abort.
func TestReplicasWithoutDocument(t *testing.T) {
	for name, change := range map[string]func(*Input){
		"in flight": func(*Input) {},
		"aborted": func(in *Input) {
			in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Abort}
		},
	} {
		h := oneWeb(nil)
		h.push(version("v2"))
		in := inFlight(h, 0, set(h, commitID(0), 8, 8), set(h, commitID(1), 2, 2))
		change(&in)
		in.State = Decide(in).State
		h.push(func(x *source) { x.workloads[0].plain, x.workloads[0].spec.Replicas = true, new(12) })
		in.Head, in.Source = h.headInput(), h.at(in.State.Source)
		s := Decide(in).State
		if len(s.Replicas) != 1 || s.Replicas[0].Count == nil || *s.Replicas[0].Count != 12 {
			t.Errorf("%s: the replicas of Git are %+v, phase %s", name, s.Replicas, s.Phase)
		}
	}
}
