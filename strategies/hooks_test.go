package strategies_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/strategies"
)

// hookLife is a random run of an app whose releases have hooks. Processes stop, pushes fail, Jobs succeed or fail, and users push, revert,
// abort, retry and promote.
type hookLife struct {
	*loop
	rng   *rand.Rand
	ends  map[string]rollout.JobState // the end of each Job, by Job
	made  map[string]int
	alone int // the number of applied commits that changed only hooks
	plain int // the number of releases of the app without Rollout documents
	t     testing.TB
}

// newHookLife returns a random run. A third of the runs begin without Rollout documents.
func newHookLife(t testing.TB, seed uint64) *hookLife {
	rng := rand.New(rand.NewPCG(seed, 7))
	first := source{workloads: []staged{{spec: randomSpec(rng, "web"), version: "v1", plain: seed%3 == 2}}}
	first.workloads[0].spec.Replicas = new(1 + rng.IntN(4))
	for i, name := range []string{"migrate", "load", "check", "undo"}[:1+rng.IntN(4)] {
		annotations := map[string]any{hook.Annotation: []string{"before", "before", "after", "abort"}[i],
			"gitrollout.dev/hook-weight": fmt.Sprint(rng.IntN(3))}
		if rng.IntN(4) == 0 {
			annotations["gitrollout.dev/hook-failure"] = "continue"
		}
		if rng.IntN(4) == 0 {
			annotations["gitrollout.dev/hook-interrupt"] = "delete"
		}
		first.hooks = append(first.hooks, jobOf(name, annotations))
	}
	l := &hookLife{loop: newLoop(newHistory(first), kube.New(rng, noon)), rng: rng, t: t,
		ends: map[string]rollout.JobState{}, made: map[string]int{}}
	l.fate = func(job string) rollout.JobState {
		if l.ends[job] == (rollout.JobState{}) && rng.IntN(3) == 0 {
			failed := rollout.JobState{Failed: true, Message: "BackoffLimitExceeded", Log: strings.Repeat(job+" says\n", rng.IntN(200))}
			l.ends[job] = []rollout.JobState{{Complete: true}, {Complete: true}, failed}[rng.IntN(3)]
		}
		return l.ends[job]
	}
	l.fails = func(what string) bool { return rng.IntN(8) == 0 }
	l.madeJob, l.commits = l.isMade, l.isCommitted
	return l
}

// isMade checks that a Job is recorded before it is created, and that it is created only once.
func (l *hookLife) isMade(j strategies.HookJob) {
	id := j.Object.Annotation(hook.AnnotationID)
	if l.made[id]++; l.made[id] > 1 {
		l.t.Errorf("the Job of %s is made %d times", id, l.made[id])
	}
	delete(l.ends, j.Key()) // forget an earlier Job with the same name
	if !slices.ContainsFunc(l.state.Hooks, func(r rollout.HookRun) bool {
		return r.Phase == rollout.HookRunning && r.Job == j.Object.Name()
	}) {
		l.t.Errorf("Job %s is made and not on record: %+v", j.Key(), l.state.Hooks)
	}
}

// isCommitted checks the hooks in a new state. Logs are bounded, and only the newest run of a hook has a log. One hook runs at a time, and
// each result comes from a Job. A release begins once its "before" hooks have succeeded, and becomes stable once its "after" hooks have
// succeeded.
func (l *hookLife) isCommitted(was, is rollout.State, subject string) {
	running, logged := 0, map[string]bool{}
	for _, r := range slices.Backward(is.Hooks) {
		if r.Log != "" && logged[r.Name] || len(r.Log) > rollout.MaxHookLog {
			l.t.Errorf("%s: %s has a log of %d bytes on record", subject, r.Job, len(r.Log))
		}
		logged[r.Name] = true
		var end rollout.JobState
		if live := l.jobs["shop/"+r.Job]; live != nil {
			end = live.state
		}
		switch {
		case r.Phase == rollout.HookRunning:
			running++
		case r.Phase == rollout.HookSucceeded && end.Failed:
			l.t.Errorf("%s: %s has failed and is on record as succeeded", subject, r.Job)
		case r.Phase == rollout.HookFailed && end.Complete && !strings.Contains(r.Message, "deleted for"):
			l.t.Errorf("%s: %s has ended well and is on record as failed: %s", subject, r.Job, r.Message)
		}
	}
	if running > 1 {
		l.t.Errorf("%s: %d hooks run at once: %+v", subject, running, is.Hooks)
	}
	if source := l.git.at(is.Source); source != nil && is.Source != was.Source && len(source.Specs) == 0 {
		l.plain++
		isBack := is.Stable != nil && (is.Stable.Hash == source.Content || is.Stable.Commit == is.Source)
		if !isBack && (is.Release == nil || is.Release.Hash != source.Content) {
			l.t.Errorf("%s: %s is followed, and it is no release: %s %+v", subject, source.Content, is.Phase, is.Release)
		}
	}
	if is.Release != nil && (was.Release == nil || was.Release.Hash != is.Release.Hash) && !is.Release.Fast && is.Phase != rollout.Aborting {
		l.hold(subject, is.Release.Commit, is.Release.Hash, rollout.HookBefore, is.Hooks)
	}
	if was.Release == nil && is.Release == nil && was.Stable != nil && is.Stable != nil && was.Stable.Hash == is.Stable.Hash &&
		is.Source != was.Source && was.Source != "" && is.Phase == rollout.Healthy && was.Phase == rollout.Healthy {
		l.follows(subject, was, is)
	}
	done := was.Release != nil && is.Stable != nil && is.Phase != rollout.Aborting && was.Phase != rollout.Aborting &&
		is.Release == nil && is.Stable.Hash == was.Release.Hash
	if done && !was.Release.Fast {
		l.hold(subject, was.Release.Commit, was.Release.Hash, rollout.HookAfter, was.Hooks)
	}
}

// hold checks that each hook of the given time (before, after or abort) has succeeded, or has failed with an ignored failure.
func (l *hookLife) hold(subject, commit string, release rollout.Hash, when rollout.HookWhen, runs []rollout.HookRun) {
	for _, h := range hook.At(l.git.at(commit).Objects, when, hook.Release{}) {
		if !slices.ContainsFunc(runs, func(r rollout.HookRun) bool {
			return r.Release == release && r.Name == h.Name() && r.When == when && !r.Past &&
				// The content of an "after" hook is not compared, because a later commit may have changed the hook.
				(when == rollout.HookAfter || r.Content == hook.Content(h.Object)) &&
				(r.Phase == rollout.HookSucceeded || h.Continues && r.Phase == rollout.HookFailed)
		}) {
			l.t.Errorf("%s: hook %s %s %s has not ended well: %+v", subject, h.Name(), when, release, runs)
		}
	}
}

// follows checks that a commit that changes only hooks is applied only after the changed hooks have succeeded.
func (l *hookLife) follows(subject string, was, is rollout.State) {
	before := l.git.at(was.Source).ByRef()
	for _, when := range []rollout.HookWhen{rollout.HookBefore, rollout.HookAfter} {
		for _, h := range hook.At(l.git.at(is.Source).Objects, when, hook.Release{}) {
			if old := before[h.Object.Ref()]; old == nil || reflect.DeepEqual(old, h.Object) {
				continue
			}
			if l.alone++; !slices.ContainsFunc(was.Hooks, func(r rollout.HookRun) bool {
				return r.Release == is.Stable.Hash && r.Name == h.Name() && r.Content == hook.Content(h.Object) &&
					(r.Phase == rollout.HookSucceeded || h.Continues && r.Phase == rollout.HookFailed)
			}) {
				l.t.Errorf("%s: hook %s has changed and not ended well: %+v", subject, h.Name(), was.Hooks)
			}
		}
	}
}

// live makes random changes and then repairs the cluster. The release must end, and no hook may still run.
func (l *hookLife) live() {
	for range 40 {
		switch l.rng.IntN(12) {
		case 10, 11:
			l.git.push(func(x *source) {
				x.hooks = slices.Clone(x.hooks)
				i := l.rng.IntN(len(x.hooks))
				x.hooks[i] = x.hooks[i].Copy()
				x.hooks[i].Map("spec")["completions"] = int64(1 + l.rng.IntN(3))
			})
		case 0, 1, 2:
			version := fmt.Sprintf("v%d", 1+l.rng.IntN(4))
			l.git.push(func(x *source) {
				if x.workloads[0].version = version; x.workloads[0].plain && l.rng.IntN(2) == 0 {
					x.config = l.rng.IntN(4)
				}
				if l.rng.IntN(10) == 0 {
					x.workloads[0].plain = !x.workloads[0].plain
				}
			})
		case 3, 4, 5:
			verb := []rollout.Verb{rollout.Promote, rollout.Promote, rollout.Abort, rollout.Retry}[l.rng.IntN(4)]
			p := &rollout.Promotion{Release: l.git.at(l.git.headID()).Release(), Decision: verb, Through: rollout.Full,
				Author: "Ann", Digest: fmt.Sprint(len(l.git.commits))}
			l.git.push(func(x *source) { x.promotion = p })
		default:
			l.kube.Now = l.kube.Now.Add(time.Duration(l.rng.IntN(20)) * time.Second)
		}
		for range l.rng.IntN(30) {
			l.kube.Micro()
		}
		l.pass()
	}
	l.fails = func(string) bool { return false }
	l.git.push(func(x *source) { x.promotion = nil })
	for range 60 {
		l.kube.Now = l.kube.Now.Add(5 * time.Second)
		l.rest()
	}
	if i := running(l.state); i >= 0 {
		l.t.Errorf("hook %+v still runs", l.state.Hooks[i])
	}
	for key := range l.jobs { // otherwise a later Job could get the name of a Job that stays
		if !slices.ContainsFunc(l.state.Hooks, func(r rollout.HookRun) bool { return "shop/"+r.Job == key }) {
			l.t.Errorf("Job %s is there and not on record any more", key)
		}
	}
}

func TestHooksInAnyOrder(t *testing.T) {
	lives := uint64(400)
	if testing.Short() {
		lives = 24
		newHookLife(t, 250).live() // with this seed, a hook changes while old pods are kept
	}
	jobs, failures, alone, plain := 0, 0, 0, 0
	for seed := range lives {
		l := newHookLife(t, seed)
		l.live()
		jobs, alone, plain = jobs+len(l.made), alone+l.alone, plain+l.plain
		for _, end := range l.ends {
			if end.Failed {
				failures++
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if jobs < int(lives) || failures < int(lives)/10 || alone < int(lives)/80 || plain < int(lives)/8 {
		t.Errorf("%d Jobs, %d of them failed, %d ran alone, %d contents: the lives show too little", jobs, failures, alone, plain)
	}
}

// running returns the index of the hook that runs, or -1.
func running(s rollout.State) int {
	return slices.IndexFunc(s.Hooks, func(r rollout.HookRun) bool { return r.Phase == rollout.HookRunning })
}

// TestHooksNoticeMutants checks that TestHooksInAnyOrder fails if decisions violate a rule for hooks.
func TestHooksNoticeMutants(t *testing.T) {
	mutants := map[string]func(*strategies.Input, *strategies.Decision){
		"a verdict that is forgotten when a process dies": func(_ *strategies.Input, d *strategies.Decision) {
			for i := range d.State.Hooks {
				if d.State.Hooks[i].Phase == rollout.HookFailed {
					d.State.Hooks = slices.Clone(d.State.Hooks)
					d.State.Hooks[i].Phase = rollout.HookSucceeded
				}
			}
		},
		"logs that are kept of every run": func(in *strategies.Input, d *strategies.Decision) {
			d.State.Hooks = slices.Clone(d.State.Hooks)
			for i, run := range d.State.Hooks {
				for _, old := range in.State.Hooks {
					if old.Job == run.Job && run.Log == "" {
						d.State.Hooks[i].Log = old.Log
					}
				}
			}
		},
		"two hooks that run at once": func(in *strategies.Input, d *strategies.Decision) {
			if i := running(d.State); i >= 0 && running(in.State) < 0 {
				twin := d.State.Hooks[i]
				twin.Attempt, twin.Job = twin.Attempt+1, twin.Job+"0"
				d.State.Hooks = append(slices.Clone(d.State.Hooks), twin)
			}
		},
		"a hook that changes alone is left out": func(in *strategies.Input, d *strategies.Decision) {
			if d.State.Held != nil && d.State.Held.Reason == rollout.HeldHook && strings.HasPrefix(d.State.Held.Message, "commit ") {
				next := *in
				next.State.Held = nil
				*d = strategies.Unhooked(next, false)
			}
		},
		"a content that is followed at once": func(in *strategies.Input, d *strategies.Decision) {
			if h := in.Head.Render; h != nil && len(h.Specs) == 0 && in.State.Release == nil && d.State.Release == nil && d.Ask == nil {
				d.State.Source, d.State.Held = h.Commit.ID, nil
			}
		},
		"a release that does not wait": func(in *strategies.Input, d *strategies.Decision) {
			if d.State.Held != nil && d.State.Held.Reason == rollout.HeldHook && in.State.Stable != nil && d.Subject != "" {
				next := *in
				next.State.Held = nil
				*d = strategies.Unhooked(next, true)
			}
		},
	}
	for name, mutate := range mutants {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(200) {
				noticed := &noticing{TB: t}
				l := newHookLife(noticed, seed)
				l.mutate = mutate
				l.live()
				if noticed.is {
					return
				}
			}
			t.Error("nothing was noticed in 200 lives")
		})
	}
}

// noticing is a testing.TB that only records whether the test failed.
type noticing struct {
	testing.TB
	is bool
}

func (n *noticing) Errorf(string, ...any) { n.is = true }

func plainWeb(replicas int) rollout.Spec {
	return rollout.Spec{Name: "web", Workload: web, Canary: &rollout.Canary{}, Replicas: &replicas, MaxSurge: rollout.Amount{Value: 1},
		ProgressDeadlineSeconds: 600}
}

// hooked returns the simulation of an app with hooks before its first deployment. The Jobs of its hooks succeed.
func hooked(hooks ...rollout.Object) *loop {
	l := newLoop(newHistory(source{workloads: []staged{{spec: plainWeb(1), version: "v1"}}, hooks: hooks}), newKube())
	l.fate = func(string) rollout.JobState { return rollout.JobState{Complete: true} }
	return l
}

func beforeHook(name string) rollout.Object {
	return jobOf(name, map[string]any{hook.Annotation: "before"})
}

// TestHooksKeepTheNewest checks that the three newest Jobs of a hook are kept, or one if an annotation requests the deletion of old Jobs.
func TestHooksKeepTheNewest(t *testing.T) {
	for policy, want := range map[string]int{"": 3, "before-hook-creation": 1} {
		l := hooked(jobOf("migrate", map[string]any{"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-delete-policy": policy}))
		for i := range 6 {
			l.git.push(version(fmt.Sprint("v", i+2)))
			l.rest()
		}
		if len(l.jobs) != want || len(l.state.Hooks) != want || l.state.Phase != rollout.Healthy {
			t.Errorf("%q: %s, %d Jobs are there and %d on record, want %d", policy, l.state.Phase, len(l.jobs), len(l.state.Hooks), want)
		}
	}
}

// TestHooksWithAVersionInTheirName checks that hooks whose names differ only in a version share one limit of recorded runs and of Jobs.
func TestHooksWithAVersionInTheirName(t *testing.T) {
	letters := func(i int) string { return "migrate-" + strings.Repeat("x", i) }
	for name, most := range map[string]int{"migrate-v%d": 4, "migrate-1.%d.0": 4, "%da1b2c3-migrate": 4, "": 22} {
		job := func(i int) rollout.Object {
			return beforeHook(cmp.Or(strings.ReplaceAll(name, "%d", fmt.Sprint(i)), letters(i)))
		}
		l := hooked(job(0))
		for i := range 30 {
			l.git.push(func(s *source) { s.workloads[0].version, s.hooks = fmt.Sprint("v", i+2), []rollout.Object{job(i + 1)} })
			l.rest()
		}
		if len(l.jobs) > most || len(l.state.Hooks) > most || l.state.Phase != rollout.Healthy {
			t.Errorf("%s: %s, %d Jobs are there and %d on record", name, l.state.Phase, len(l.jobs), len(l.state.Hooks))
		}
	}
}

// TestHooksOfOneCommitAreKeptApart checks that two hooks of one commit each keep their last runs, although their names differ only in a
// part with a digit.
func TestHooksOfOneCommitAreKeptApart(t *testing.T) {
	l := hooked(beforeHook("sync-s3"), beforeHook("sync-ec2"))
	for i := range 6 {
		l.git.push(version(fmt.Sprint("v", i+2)))
		l.rest()
	}
	runs := map[string]int{}
	for _, run := range l.state.Hooks {
		runs[run.Name]++
	}
	if runs["shop/sync-s3"] < 3 || runs["shop/sync-ec2"] < 3 {
		t.Errorf("on record are %v, want at least 3 runs of each", runs)
	}
}

// beforeFirst returns the simulation of an app before its first deployment. A hook with a deadline of one minute is running.
func beforeFirst() *loop {
	job := beforeHook("migrate")
	job.Map("spec")["activeDeadlineSeconds"] = int64(60)
	l := hooked(job)
	l.fate = func(string) rollout.JobState { return rollout.JobState{} }
	l.rest()
	return l
}

// TestJobThatIsMadeLate checks a process that records a Job, stops before it creates the Job, and starts again after more time than the
// Job's deadline. The deadline must count from the creation of the Job, and no second migration may run beside the Job.
func TestJobThatIsMadeLate(t *testing.T) {
	l, made := beforeFirst(), 0
	if len(l.jobs) != 1 {
		t.Fatalf("%d Jobs are made", len(l.jobs))
	}
	l.madeJob = func(strategies.HookJob) { made++ }
	clear(l.jobs)
	l.kube.Now = l.kube.Now.Add(5 * time.Minute)
	l.rest()
	if i := running(l.state); i < 0 || made != 1 {
		t.Fatalf("made %d times more, hooks %+v", made, l.state.Hooks)
	}
	l.git.push(version("v9"))
	l.rest()
	if len(l.jobs) != 1 {
		t.Errorf("%d migrations run beside each other", len(l.jobs))
	}
	l.fate = func(string) rollout.JobState { return rollout.JobState{Suspended: true} }
	l.kube.Now = l.kube.Now.Add(time.Hour)
	l.rest()
	if running(l.state) < 0 {
		t.Errorf("a suspended Job is late: %+v", l.state.Hooks)
	}
}

// TestJobThatAnotherProcessMakes checks a push of another version while a recorded Job does not exist yet. The hook fails only after a
// minute, because another process with an older head may still create the Job.
func TestJobThatAnotherProcessMakes(t *testing.T) {
	l := beforeFirst()
	clear(l.jobs)
	l.git.push(version("v9"))
	l.rest()
	l.kube.Now = l.kube.Now.Add(50 * time.Second)
	if l.rest(); l.state.Hooks[0].Phase != rollout.HookRunning {
		t.Errorf("early: %+v", l.state.Hooks)
	}
	l.kube.Now = l.kube.Now.Add(10 * time.Second)
	if l.rest(); l.state.Hooks[0].Phase != rollout.HookFailed || !strings.Contains(l.state.Hooks[0].Message, "the Job does not exist") {
		t.Errorf("late: %+v", l.state.Hooks)
	}
}

// TestHooksThatDoNotEnd checks that a hook fails after its deadline, and that the app's status says why a hook's Job cannot start.
func TestHooksThatDoNotEnd(t *testing.T) {
	begin := func(fate rollout.JobState) (l *loop, waiting string) {
		l = beforeFirst()
		l.fate = func(string) rollout.JobState { return fate }
		d := strategies.Decide(l.input(l.state, true))
		for d.Ask != nil {
			d = strategies.Decide(l.answer(l.input(l.state, true), *d.Ask))
		}
		return l, d.Waiting
	}
	ended := rollout.JobState{Complete: true, Message: "Reached expected number of succeeded pods"}
	if _, got := begin(ended); strings.Contains(got, "Reached") {
		t.Errorf("one that has ended well is waited for: %q", got)
	}
	l, got := begin(rollout.JobState{Stuck: "ImagePullBackOff", Message: "no such image"})
	if want := "Job migrate-c0fcc874-1 to end (ImagePullBackOff: no such image)"; !strings.Contains(got, want) {
		t.Errorf("waits for %q, want %q", got, want)
	}
	l.kube.Now = l.kube.Now.Add(119 * time.Second)
	if l.rest(); l.state.Held.Reason != rollout.HeldHook {
		t.Errorf("early: %+v", l.state.Held)
	}
	l.kube.Now = l.kube.Now.Add(time.Second)
	if l.rest(); l.state.Held.Reason != rollout.HeldHookFailed || !strings.Contains(l.state.Held.Message, "it has not ended in time") {
		t.Errorf("late: %+v", l.state.Held)
	}
}

// TestNewHooksWaitForTheNextVersion checks a commit that adds a hook, or turns a Job into a hook, without a new version. The hook runs with
// the next version, not at once. An unchanged hook never runs for such a commit.
func TestNewHooksWaitForTheNextVersion(t *testing.T) {
	for name, before := range map[string][]rollout.Object{"added": nil, "a Job before": {jobOf("load", nil)}} {
		l := hooked(append(before, beforeHook("migrate"))...)
		l.rest()
		l.git.push(func(s *source) { s.hooks = []rollout.Object{beforeHook("load"), beforeHook("migrate")} })
		l.rest()
		if len(l.state.Hooks) != 1 || l.state.Source != l.git.headID() {
			t.Errorf("%s: the source is %s of %s, with hooks %+v", name, l.state.Source, l.git.headID(), l.state.Hooks)
		}
		l.git.push(version("v2"))
		l.rest()
		if len(l.state.Hooks) != 3 || l.state.Phase != rollout.Healthy {
			t.Errorf("%s: %s, with hooks %+v", name, l.state.Phase, l.state.Hooks)
		}
	}
}

// TestAVersionWithoutHooksWaitsForARunningJob checks that a version without hooks does not start while the Job of an earlier version runs.
// A migration must not run beside a release.
func TestAVersionWithoutHooksWaitsForARunningJob(t *testing.T) {
	l := hooked(beforeHook("migrate"))
	l.rest()
	l.fate = func(string) rollout.JobState { return rollout.JobState{} }
	l.git.push(version("v2"))
	l.rest()
	l.git.push(func(s *source) { s.workloads[0].version, s.hooks = "v3", nil })
	if l.rest(); l.state.Release != nil || running(l.state) < 0 {
		t.Errorf("release %+v beside the Job: %+v", l.state.Release, l.state.Hooks)
	}
	l.fate = func(string) rollout.JobState { return rollout.JobState{Complete: true} }
	l.rest()
	if l.state.Phase != rollout.Healthy || l.state.Source != l.git.headID() {
		t.Errorf("%s at %s after the Job's end", l.state.Phase, l.state.Source)
	}
}
