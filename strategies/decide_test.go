package strategies_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

var web = rollout.Workload{Namespace: testApp.Namespace, Name: "web"}

var aPause = rollout.Step{Pause: &rollout.Pause{}}

func weight(n int) rollout.Step { return rollout.Step{SetWeight: &n} }

func percent(n int) rollout.Amount { return rollout.Amount{Value: n, Percent: true} }

// oneWeb returns an app with one workload of ten pods and a canary that replaces pods in place.
func oneWeb(change func(*rollout.Spec)) *history {
	spec := rollout.Spec{
		Workload: web, Replicas: new(10), MaxSurge: percent(25), MaxUnavailable: percent(25), ProgressDeadlineSeconds: 600,
		Scaling: rollout.InPlace, Canary: &rollout.Canary{Steps: []rollout.Step{
			weight(20), aPause, {Name: "soak", Pause: &rollout.Pause{Duration: new(time.Minute)}},
		}},
	}
	if change != nil {
		change(&spec)
	}
	return historyOf(spec)
}

// twoVersions returns the app of oneWeb after a push of v2.
func twoVersions(change func(*rollout.Spec)) *history {
	h := oneWeb(change)
	h.push(version("v2"))
	return h
}

func version(v string) func(*source) {
	return func(x *source) { x.workloads[0].version = v }
}

// set returns a commit's ReplicaSet with the given number of desired pods. Its ready pods have been ready since noon.
func set(h *history, commit string, desired, ready int) rollout.Revision {
	r := pods(desired, ready)
	r.Name, r.Pin, r.Hash = "web-"+commit, rollout.PodHash(commit), h.at(commit).Templates[h.workload()]
	return r
}

// healed answers Ask.Heal: the cluster has accepted the state's objects.
var healed = strategies.Answers{Healed: new(true)}

// world returns the input of an app without a release in flight, at the first commit of a history. The newest commit is the head.
func world(h *history, sets ...rollout.Revision) strategies.Input {
	release := h.releaseAt(commitID(0))
	if len(sets) == 0 {
		sets = []rollout.Revision{set(h, commitID(0), 10, 10)}
	}
	return strategies.Input{
		Now: noon.Add(time.Hour), App: testApp, Head: h.headInput(), Source: h.at(commitID(0)), Answers: healed,
		Promotion: h.head().promotion,
		State: rollout.State{
			App: testApp.Name, Path: testApp.Path, Phase: rollout.Healthy, Source: commitID(0), Stable: &release,
			Verified: []rollout.Hash{release.Hash},
		},
		Observed: rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{
			h.workload(): {Replicas: 10, Hash: sets[0].Hash, Synced: true, Complete: true, Revisions: sets},
		}},
	}
}

// transition decides once and records the result.
func transition(in *strategies.Input, h *history) strategies.Decision {
	d := strategies.Decide(*in)
	in.State, in.Source = d.State, h.at(d.State.Source)
	return d
}

// inFlight returns the input of an app at a given step of the release of the newest commit.
func inFlight(h *history, step int, sets ...rollout.Revision) strategies.Input {
	in := world(h, sets...)
	transition(&in, h)
	spec, _ := in.Source.Spec(web)
	in.State.Progress = []rollout.Progress{plan.Compile(spec).Enter(step, in.Now)}
	in.State.Phase = strategies.PhaseOf(in, in.State.Progress)
	changeLive(&in, web, func(live *rollout.ObservedWorkload) { live.Hash, live.Complete = in.Source.Templates[web], false })
	return in
}

// atStep returns a release of web from v1 to v2 at the given step, with 8 pods of v1 and 2 pods of v2.
func atStep(change func(*rollout.Spec), step int) (*history, strategies.Input) {
	h := twoVersions(change)
	return h, inFlight(h, step, set(h, commitID(0), 8, 8), set(h, commitID(1), 2, 2))
}

// checkPhase fails the test if a decision does not lead to the phase.
func checkPhase(t *testing.T, when string, in strategies.Input, want rollout.Phase) {
	t.Helper()
	if d := strategies.Decide(in); d.State.Phase != want {
		t.Errorf("%s it is %s, want %s: %s %s, waits for %q", when, d.State.Phase, want, d.Subject, d.State.Reason, d.Waiting)
	}
}

func changeLive(in *strategies.Input, w rollout.Workload, change func(*rollout.ObservedWorkload)) {
	live := in.Observed.Workloads[w]
	change(&live)
	in.Observed.Workloads[w] = live
}

// withLive returns a function that changes web's observed state.
func withLive(change func(*rollout.ObservedWorkload)) func(*strategies.Input) {
	return func(in *strategies.Input) { changeLive(in, web, change) }
}

func TestDecideAtRest(t *testing.T) {
	type pushes = []func(*source)
	config := func(x *source) { x.config++ }
	reject := func(in *strategies.Input) {
		in.State.Rejected = []rollout.Rejection{{Hash: in.Head.Render.Release(), Commit: commitID(1), Reason: "errors", At: noon,
			Promotion: "d1"}}
	}
	retry := func(release rollout.Hash, digest string) func(*strategies.Input) {
		return func(in *strategies.Input) {
			reject(in)
			in.Promotion = &rollout.Promotion{Decision: rollout.Retry, Release: cmp.Or(release, in.Head.Render.Release()), Digest: digest}
		}
	}
	type want struct {
		Phase   rollout.Phase
		Source  string
		Release string // the release's commit
		Fast    bool
		Held    rollout.HeldReason
		Says    string // a substring of the decision's subject
	}
	healthy := want{Phase: rollout.Healthy, Source: commitID(0)}
	degraded := want{Phase: rollout.Degraded, Source: commitID(0), Says: "degraded"}
	follows := want{Phase: rollout.Healthy, Source: commitID(1), Says: "follows"}
	releases := want{Phase: rollout.Progressing, Source: commitID(1), Release: commitID(1), Says: "release"}
	cases := map[string]struct {
		reason string
		push   pushes
		change func(*strategies.Input)
		want   want
	}{
		"Nothing":       {"nothing to do is no transition", nil, nil, healthy},
		"Configuration": {"a change outside the template is followed at once", pushes{config}, nil, follows},
		"PromotionOnly": {"a commit that changes nothing of the app is not followed",
			pushes{func(x *source) { x.promotion = &rollout.Promotion{} }}, nil, healthy},
		"Version": {"a new template is a release", pushes{version("v2")}, nil, releases},
		"VerifiedBefore": {"a hash that served well is rolled out without pauses", pushes{version("v2")},
			func(in *strategies.Input) { in.State.Verified = append(in.State.Verified, in.Head.Render.Release()) },
			want{Phase: rollout.Promoting, Source: commitID(1), Release: commitID(1), Fast: true, Says: "verified before"}},
		"Rejected": {"a rejected hash is not tried again", pushes{version("v2")}, reject, degraded},
		"RejectedConfig": {"and stable keeps the newest that it served with", pushes{config, version("v2")}, func(in *strategies.Input) {
			reject(in)
			in.State.Source = commitID(1)
		}, want{Phase: rollout.Degraded, Source: commitID(1), Says: "degraded"}},
		"Retry":      {"unless a promotion says retry", pushes{version("v2")}, retry("", "d2"), releases},
		"RetryStale": {"about this very hash", pushes{version("v2")}, retry("h1-other", "d2"), degraded},
		"RetryTwice": {"and the same file retries once", pushes{version("v2")}, retry("", "d1"), degraded},
		"Broken": {"a commit that cannot be rendered is not followed", pushes{func(x *source) { x.broken = true }}, nil,
			want{Phase: rollout.Healthy, Source: commitID(0), Held: "InvalidInput", Says: "held"}},
		"Mended": {"and is forgotten when it can", nil,
			func(in *strategies.Input) { in.State.Held = &rollout.Held{Reason: "InvalidInput", Message: "x"} },
			want{Phase: rollout.Healthy, Source: commitID(0), Says: "goes on"}},
		"NoDocuments": {"without Rollout documents Deployments are plain",
			pushes{func(x *source) { x.workloads[0].plain, x.workloads[0].version = true, "v2" }}, nil, follows},
		"NoPods": {"a workload without pods is not promoted unseen",
			pushes{func(x *source) { x.workloads[0].spec.Replicas, x.workloads[0].version = new(0), "v2" }}, nil,
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
				tc.change(&in)
				in.Source = h.at(in.State.Source)
			}
			d := strategies.Decide(in)
			got := want{Phase: d.State.Phase, Source: d.State.Source, Says: tc.want.Says}
			if r := d.State.Release; r != nil {
				got.Release, got.Fast = r.Commit, r.Fast
			}
			if d.State.Held != nil {
				got.Held = d.State.Held.Reason
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

// TestHeldIsRecordedOnce checks that the recorded state does not change if the next commit has the same error. Otherwise each commit of a
// broken branch would add a commit to the state branch.
func TestHeldIsRecordedOnce(t *testing.T) {
	h := oneWeb(nil)
	h.push(func(x *source) { x.broken = true })
	in := world(h)
	d := strategies.Decide(in)
	if d.Subject == "" || d.State.Held == nil || d.State.Held.Commit != commitID(1) {
		t.Fatalf("held is %+v, subject %q", d.State.Held, d.Subject)
	}
	h.push(func(x *source) { x.config++ })
	in.State, in.Head = d.State, h.headInput()
	if d := strategies.Decide(in); d.Subject != "" || d.State.Held.Commit != commitID(1) {
		t.Errorf("recorded again: %q, %+v", d.Subject, d.State.Held)
	}
}

// TestLeavingAFirstDeployment checks that the second version is released in steps if the first version's pods are ready. The first version
// need not be recorded as stable yet.
func TestLeavingAFirstDeployment(t *testing.T) {
	for name, ready := range map[string]int{"enough pods serve": 10, "too few pods serve": 5} {
		h := oneWeb(nil)
		in := world(h, set(h, commitID(0), 10, ready))
		first := *in.State.Stable
		in.State.Phase, in.State.Release, in.State.Stable, in.State.Verified = rollout.Progressing, &first, nil, nil
		h.push(version("v2"))
		in.Head = h.headInput()
		transition(&in, h)
		d := transition(&in, h)
		if hasSteps := len(d.State.Progress) > 0; hasSteps != (ready == 10) {
			t.Errorf("%s: %s", name, dump(d))
		}
	}
}

// TestRollbackWithoutItsCommit checks a rollback after the release's commit is lost. The new pods stay for the settle time that the head's
// Rollout document sets.
func TestRollbackWithoutItsCommit(t *testing.T) {
	h, in := routedAt(1)
	in.State.Progress[0].Routed = &rollout.Routing{Step: 0, Weight: 50, At: in.Now}
	h.push(version("v1"))
	in.Head = h.headInput()
	want := strategies.Decide(in).State.Rollback.Drain
	in.Source = nil
	got := strategies.Decide(in).State.Rollback
	if got == nil || !got.Drain.Equal(want) || !want.After(in.Now) {
		t.Errorf("pods go at %+v, want %s", got, want)
	}
}

func TestLeavingARelease(t *testing.T) {
	type want struct {
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
		change func(*strategies.Input)
		want   want
	}{
		"Revert": {"a revert's own commit is where the app goes, and nothing is rejected", surge, version("v1"), nil,
			want{commitID(3), false, 0}},
		"Supersede":    {"the newest that stable served with", surge, version("v3"), nil, want{commitID(1), false, 0}},
		"Abort":        {"rejected; the canary's pods stay for the delay", surge, abort, nil, want{commitID(1), true, 30 * time.Second}},
		"AbortInPlace": {"in place stable needs their room", nil, abort, nil, want{commitID(1), true, 0}},
		"AbortPromoting": {"while promoting stable is no longer whole", surge, abort,
			func(in *strategies.Input) { in.State.Phase = rollout.Promoting }, want{commitID(1), true, 0}},
		"AbortStalled": {"also while promoting stalls", surge, abort, func(in *strategies.Input) {
			in.State.Phase, in.State.Progress[0] = rollout.Stalled, plan.Compile(in.Source.Specs[0]).Enter(99, in.Now)
		}, want{commitID(1), true, 0}},
		"Deadline": {"progressDeadlineAbort", func(s *rollout.Spec) { s.ProgressDeadlineAbort = true },
			func(x *source) { x.promotion = nil }, func(in *strategies.Input) { in.Now = in.Now.Add(600 * time.Second) },
			want{commitID(1), true, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := oneWeb(tc.spec)
			h.push(func(x *source) { x.config++ })
			h.push(version("v2"))
			in := world(h, set(h, commitID(0), 10, 10), set(h, commitID(2), 2, 0))
			in.State.Source, in.Source = commitID(1), h.at(commitID(1)) // the app followed a commit that changed only its configuration
			transition(&in, h)
			h.push(tc.push)
			if p := h.head().promotion; p != nil {
				p.Release = in.State.Release.Hash
			}
			in.Head, in.Promotion = h.headInput(), h.head().promotion
			if tc.change != nil {
				tc.change(&in)
			}
			d := strategies.Decide(in)
			if d.State.Rollback == nil || !d.Rollback || d.State.Phase != rollout.Aborting {
				t.Fatalf("%s: no rollback but %s, %q", tc.reason, d.State.Phase, d.Subject)
			}
			_, rejected := d.State.IsRejected(in.State.Release.Hash)
			got := want{d.State.Rollback.To, rejected, d.State.Rollback.Drain.Sub(d.State.Rollback.Routed)}
			compare.CheckNamed(t, tc.reason, tc.want, got)
		})
	}
}

func TestGates(t *testing.T) {
	h := twoVersions(func(s *rollout.Spec) { s.MinReadySeconds = 60 })
	hash := h.at(commitID(1)).Release()
	type sets = []rollout.Revision
	stable := set(h, commitID(0), 8, 8)
	ailing := rollout.Revision{Hash: stable.Hash, Desired: 8, Pods: 8, Problem: "pod web-7: CrashLoopBackOff"}
	fresh := func(ready int) rollout.Revision { return set(h, commitID(1), 2, ready) }
	broken := func(why string) rollout.Revision {
		return rollout.Revision{Hash: hash, Desired: 2, Pods: 2, Problem: why}
	}
	waits := func(text string) strategies.Verdict { return strategies.Verdict{Text: text} }
	gated := strategies.Verdict{Paused: true, Text: "promotion of " + string(hash) + " at step 2/3"}
	timed := strategies.Verdict{Paused: true, Due: noon.Add(61 * time.Minute), Text: "pause 1m0s, until 2026-11-20T13:01:00Z"}
	cases := map[string]struct {
		reason    string
		step      int
		after     time.Duration // since the beginning of the step, which is an hour after noon
		sets      sets          // default: all pods of both versions are ready
		promotion *rollout.Promotion
		change    func(*strategies.Input)
		want      strategies.Verdict
	}{
		"Done":     {reason: "pods serve, old ones are gone", want: strategies.Verdict{Done: true}},
		"NotReady": {reason: "pods are missing", sets: sets{stable, fresh(1)}, want: waits("pods of the new version: 1 of 2 serve")},
		"Problem": {reason: "and why", sets: sets{stable, broken("ImagePullBackOff")},
			want: waits("pods of the new version: 0 of 2 serve (ImagePullBackOff)")},
		"StableProblem": {reason: "and of stable pods where pods are replaced in place", sets: sets{ailing, fresh(0)},
			want: waits("pods of the new version: 0 of 2 serve (stable pod web-7: CrashLoopBackOff)")},
		"StableProblemBeside": {reason: "the new version's own comes first", sets: sets{ailing, broken("x")},
			want: waits("pods of the new version: 0 of 2 serve (x)")},
		"StableProblemOfSurge": {reason: "new pods beside the stable ones do not wait for them", sets: sets{ailing, fresh(0)},
			change: func(in *strategies.Input) { in.Head.Render.Specs[0].Scaling = rollout.Surge },
			want:   waits("pods of the new version: 0 of 2 serve")},
		"TooYoung": {reason: "ready is not yet serving", after: 10*time.Second - time.Hour,
			want: strategies.Verdict{Text: "pods of the new version: 0 of 2 serve", Due: noon.Add(time.Minute)}},
		"OldAreLeft": {reason: "in place the old ones have to go", sets: sets{set(h, commitID(0), 10, 10), fresh(2)},
			want: waits("pods of the old version: 2 of 10 must still be removed")},
		"NotSynced": {reason: "the controller has not seen it", change: withLive(func(live *rollout.ObservedWorkload) { live.Synced = false }),
			want: waits("the Deployment controller")},
		"Gone": {reason: "the Deployment was deleted", change: func(in *strategies.Input) { delete(in.Observed.Workloads, web) },
			want: waits("Deployment shop/web to exist")},
		"NotSettled": {reason: "the cluster has not accepted the step", change: func(in *strategies.Input) { in.Answers.Healed = new(false) },
			want: waits("the cluster to accept the objects of setWeight 20")},
		"Gate": {reason: "the gate waits for a promotion", step: 1, want: gated},
		"GateOpen": {reason: "a promotion opens the gate", step: 1, want: strategies.Verdict{Done: true, By: "Bob"},
			promotion: &rollout.Promotion{Release: hash, Decision: rollout.Promote, Through: "2", Author: "Bob"}},
		"GateStale": {reason: "something else", step: 1, want: gated,
			promotion: &rollout.Promotion{Release: "h1-other", Decision: rollout.Promote, Through: "full"}},
		"GateFast": {reason: "a verified hash does not wait", step: 1, change: func(in *strategies.Input) { in.State.Release.Fast = true },
			want: strategies.Verdict{Done: true}},
		"Timer":     {reason: "the clock runs from when the step began", step: 2, after: 59 * time.Second, want: timed},
		"TimerDone": {reason: "and is through", step: 2, after: time.Minute, want: strategies.Verdict{Done: true}},
		"TimerBack": {reason: "a clock that was set back waits longer", step: 2, after: -time.Hour, want: timed},
		"TimerOpen": {reason: "a promotion passes the pause early", step: 2, want: strategies.Verdict{Done: true, By: "a promotion file"},
			promotion: &rollout.Promotion{Release: hash, Decision: rollout.Promote, Through: "soak"}},
		"Hold": {reason: "hold stops everything", want: strategies.Verdict{Paused: true, Text: "the end of decision: hold by Bob"},
			promotion: &rollout.Promotion{Release: hash, Decision: rollout.Hold, Author: "Bob"}},
		"Paused": {reason: "and so does the document", change: func(in *strategies.Input) { in.Head.Render.Specs[0].Paused = true },
			want: strategies.Verdict{Paused: true, Text: "the end of paused: true in the Rollout document"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h.renders = map[int]*rollout.Render{} // a case may change its render
			if tc.sets == nil {
				tc.sets = sets{stable, fresh(2)}
			}
			in := inFlight(h, tc.step, tc.sets...)
			in.Now, in.Promotion = in.Now.Add(tc.after), tc.promotion
			if tc.change != nil {
				tc.change(&in)
			}
			spec, _ := in.Head.Render.Spec(web)
			got := strategies.Gates(in, workloads.New(in.State, plan.Compile(spec), in.State.Progress[0], in.Observed))
			compare.CheckNamed(t, tc.reason, tc.want, got)
		})
	}
}

func TestOverdue(t *testing.T) {
	h := twoVersions(nil)
	late := set(h, commitID(1), 2, 0)
	late.ReadySince = []time.Time{noon.Add(time.Hour + 5*time.Minute)} // the step begins an hour after noon
	cases := map[string]struct {
		reason string
		step   int
		fresh  rollout.Revision
		after  time.Duration
		want   bool
	}{
		"InTime":      {"just before the deadline", 0, set(h, commitID(1), 2, 0), 599 * time.Second, false},
		"TooLate":     {"at the deadline", 0, set(h, commitID(1), 2, 0), 600 * time.Second, true},
		"PodWasReady": {"a pod that became ready is progress", 0, late, 600 * time.Second, false},
		"PodLongAgo":  {"once", 0, late, 900 * time.Second, true},
		"Pause":       {"pauses do not count", 1, set(h, commitID(1), 2, 2), 24 * time.Hour, false},
	}
	for name, tc := range cases {
		in := inFlight(h, tc.step, set(h, commitID(0), 8, 8), tc.fresh)
		in.Now = in.Now.Add(tc.after)
		if _, _, got := strategies.Overdue(in); got != tc.want {
			t.Errorf("%s, %s: got %t", name, tc.reason, got)
		}
	}
}

// TestTwoDeadlines checks the deadlines of two workloads. The earlier deadline only reports a delay, and does not hide the later deadline,
// which rolls the release back. Decide requeues for the later deadline.
func TestTwoDeadlines(t *testing.T) {
	reports := oneWeb(func(s *rollout.Spec) { s.ProgressDeadlineSeconds = 60 }).head().workloads[0]
	aborts := reports
	aborts.spec.Workload.Name, aborts.spec.ProgressDeadlineSeconds, aborts.spec.ProgressDeadlineAbort = "api", 600, true
	h := newHistory(source{workloads: []staged{reports, aborts}})
	h.push(func(x *source) { x.workloads[0].version, x.workloads[1].version = "v2", "v2" })
	in := world(h)
	in.Observed.Workloads[aborts.spec.Workload] = in.Observed.Workloads[web]
	transition(&in, h)
	began := in.Now
	in.Now = began.Add(time.Minute)
	d := strategies.Decide(in)
	if d.State.Phase != rollout.Stalled || !d.Requeue.Equal(began.Add(10*time.Minute)) {
		t.Errorf("after a minute it is %s, and it looks again at %s", d.State.Phase, d.Requeue)
	}
	in.State, in.Now = d.State, began.Add(10*time.Minute)
	checkPhase(t, "after ten minutes", in, rollout.Aborting)
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
		h := oneWeb(func(s *rollout.Spec) { s.RollbackWindow = tc.window })
		in := world(h)
		in.State.Verified = tc.verified
		if i := slices.Index(tc.verified, "x"); i >= 0 {
			tc.verified[i] = in.Head.Render.Release()
		}
		compare.CheckNamed(t, name+", "+tc.reason, tc.want, strategies.IsFast(in.State, in.Head.Render))
	}
}

// TestPauseWatchesPods checks that an app in a pause is requeued for the time when a new pod becomes available, which no event reports. If
// an autoscaler added this pod, the release may then remove another pod.
func TestPauseWatchesPods(t *testing.T) {
	_, in := atStep(func(s *rollout.Spec) { s.MinReadySeconds = 60 }, 1)
	if d := strategies.Decide(in); !d.Requeue.IsZero() {
		t.Errorf("all pods serve, and it looks again at %v", d.Requeue)
	}
	in.Observed.Workloads[web].Revisions[1].ReadySince[1] = in.Now.Add(-20 * time.Second)
	if d, want := strategies.Decide(in), in.Now.Add(40*time.Second); !d.Requeue.Equal(want) {
		t.Errorf("looks again at %v, want %v", d.Requeue, want)
	}
}

// TestReplicasAtAPauseKeepTheMark checks a workload that is scaled to 0 and back during a pause. The recorded state changes, but State.Mark
// stays, because no object changes.
func TestReplicasAtAPauseKeepTheMark(t *testing.T) {
	for replicas, suspended := range map[int]bool{0: false, 10: true} {
		_, in := atStep(func(s *rollout.Spec) { s.Replicas = nil }, 1)
		in.State.Progress[0].Suspended, in.State.Serial = suspended, 7
		changeLive(&in, web, func(live *rollout.ObservedWorkload) { live.Replicas = replicas })
		if d := strategies.Decide(in); d.State.Progress[0].Suspended == suspended || d.State.Written != 7 {
			t.Errorf("%s: the mark is %d, want 7", d.Subject, d.State.Written)
		}
	}
}

// TestTooManyOldOnesAreWatched checks that a surge release with surplus old pods is requeued for the time when the next new pod becomes
// available. Surplus pods come from a manual change, or from a step that applied the stable template for a while.
func TestTooManyOldOnesAreWatched(t *testing.T) {
	h, in := atStep(func(s *rollout.Spec) { s.MinReadySeconds, s.Scaling = 60, rollout.Surge }, 1)
	want := workloads.All(in.State, in.Head.Render.Specs, in.Observed, plan.Cache{})[0].Want()
	for old, looks := range map[int]bool{want.Stable: false, want.Stable + 1: true} {
		in = inFlight(h, 1, set(h, commitID(0), old, old), set(h, commitID(1), want.Canary, want.Canary))
		in.Observed.Workloads[web].Revisions[1].ReadySince[0] = in.Now.Add(-20 * time.Second)
		if due := strategies.Decide(in).Requeue; due.Equal(in.Now.Add(40*time.Second)) != looks {
			t.Errorf("%d old pods, where %d are asked for: it looks again at %v", old, want.Stable, due)
		}
	}
}

// TestHeldLooksAgain checks requeues while the head is unreadable. A release is requeued for its deadline, and a rollback for the time when
// the canary's pods may be removed.
func TestHeldLooksAgain(t *testing.T) {
	h := twoVersions(func(s *rollout.Spec) {
		s.ProgressDeadlineAbort, s.Scaling = true, rollout.Surge
		s.Canary.StableService, s.Canary.CanaryService, s.Canary.AbortScaleDownDelaySeconds = "web", "web-canary", 30
	})
	in := world(h)
	transition(&in, h)
	h.push(func(x *source) { x.broken = true })
	in.Head = h.headInput()
	if d, want := strategies.Decide(in), in.Now.Add(10*time.Minute); d.State.Held == nil || !d.Requeue.Equal(want) {
		t.Errorf("held at its first step it looks again at %v, want %v (held %+v)", d.Requeue, want, d.State.Held)
	}
	in.Now = in.Now.Add(10 * time.Minute)
	if in.State = strategies.Decide(in).State; in.State.Phase != rollout.Aborting {
		t.Fatalf("at the deadline it is %s", in.State.Phase)
	}
	if d, want := strategies.Decide(in), in.Now.Add(30*time.Second); !d.Requeue.Equal(want) {
		t.Errorf("rolling back it looks again at %v, want %v", d.Requeue, want)
	}
}

// TestWaitingLooksAgain checks that a release on hold has no deadline, and that an overdue release is rolled back when its hold ends. While
// the head is unreadable, an in-place update is requeued for the time when the next pod becomes available.
func TestWaitingLooksAgain(t *testing.T) {
	h := twoVersions(func(s *rollout.Spec) { s.ProgressDeadlineAbort = true })
	in := world(h)
	transition(&in, h)
	in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Hold}
	if d := strategies.Decide(in); d.State.Phase != rollout.Paused || !d.Requeue.IsZero() {
		t.Errorf("%s, it looks again at %v", d.State.Phase, d.Requeue)
	}
	in.Now = in.Now.Add(10 * time.Minute)
	checkPhase(t, "on hold past its deadline", in, rollout.Paused)
	in.Promotion = nil
	checkPhase(t, "when the hold ends", in, rollout.Aborting)

	h, in = atStep(func(s *rollout.Spec) { s.MinReadySeconds = 30 }, 0)
	in.Observed.Workloads[web].Revisions[1].ReadySince[1] = in.Now.Add(-10 * time.Second)
	h.push(func(x *source) { x.broken = true })
	in.Head = h.headInput()
	if d, want := strategies.Decide(in), in.Now.Add(20*time.Second); d.State.Held == nil || !d.Requeue.Equal(want) {
		t.Errorf("held %+v, it looks again at %v, want %v", d.State.Held, d.Requeue, want)
	}
}

// TestUnreportedPodsCount checks that a rollback waits for the pods of another version, even if the Deployment's status counts no such
// pods. The status may be older than the scale-down.
func TestUnreportedPodsCount(t *testing.T) {
	h := twoVersions(nil)
	in := world(h)
	transition(&in, h)
	h.push(version("v3"))
	in.Head = h.headInput()
	if transition(&in, h); in.State.Phase != rollout.Aborting {
		t.Fatalf("superseded it is %s", in.State.Phase)
	}
	sets := []rollout.Revision{set(h, commitID(0), 10, 10), set(h, commitID(1), 0, 0)}
	sets[0].Current, sets[1].Pods = true, 3
	in.Observed.Workloads[web] = rollout.ObservedWorkload{Replicas: 10, Hash: sets[0].Hash, Synced: true, Complete: true, Revisions: sets}
	checkPhase(t, "with 3 pods of the old version", in, rollout.Aborting)
	sets[1].Pods = 0
	checkPhase(t, "without them", in, rollout.Progressing)
}

// TestOverdueNamesWhatItWaitsFor checks that the message about a delayed in-place update names the pod that is not ready. This pod may be a
// stable pod.
func TestOverdueNamesWhatItWaitsFor(t *testing.T) {
	h := twoVersions(nil)
	ailing := set(h, commitID(0), 8, 7)
	ailing.Problem = "pod web-7: CrashLoopBackOff"
	in := inFlight(h, 0, ailing, set(h, commitID(1), 2, 0))
	in.Now = noon.Add(24 * time.Hour)
	if _, reason, is := strategies.Overdue(in); !is || !strings.HasSuffix(reason, ": stable pod web-7: CrashLoopBackOff") {
		t.Errorf("overdue: %t, %q", is, reason)
	}
}

// TestReplicasWithoutDocument checks that new replicas in Git apply after the Rollout document was removed, both in a release and after an
// abort.
func TestReplicasWithoutDocument(t *testing.T) {
	for _, aborted := range []bool{false, true} {
		h, in := atStep(nil, 0)
		if aborted {
			in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Abort}
		}
		transition(&in, h)
		h.push(func(x *source) { x.workloads[0].plain, x.workloads[0].spec.Replicas = true, new(12) })
		in.Head = h.headInput()
		s := strategies.Decide(in).State
		if len(s.Replicas) != 1 || s.Replicas[0].Count == nil || *s.Replicas[0].Count != 12 {
			t.Errorf("aborted %t: the replicas of Git are %+v, phase %s", aborted, s.Replicas, s.Phase)
		}
	}
}
