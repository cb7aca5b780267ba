package simulate

import (
	"context"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

// endOf returns the state of a Job. Each Job succeeds or fails after some calls. While u.calm is set, unfinished Jobs succeed.
func (u *universe) endOf(job string) rollout.JobState {
	if u.ends == nil {
		u.ends = map[string]rollout.JobState{}
	}
	if u.ends[job] == (rollout.JobState{}) && (u.calm || u.rng.IntN(3) == 0) {
		u.ends[job] = rollout.JobState{Complete: true}
		if !u.calm && u.rng.IntN(3) == 0 {
			u.ends[job] = rollout.JobState{Failed: true, Message: "BackoffLimitExceeded"}
			u.played["a Job that fails"]++
		}
	}
	return u.ends[job]
}

// isChecked reports whether the app has a hook "after". The hook's Job runs when all users have the version, before the version is stable.
func (a *appSource) isChecked() bool {
	return slices.ContainsFunc(a.hooks, func(h hookSource) bool { return h.when == "after" })
}

// checkJobs checks that there is at most one Job for each run of a hook. With one process and no edited records, it also checks that each
// Job was recorded before its creation.
func (o *oracle) checkJobs() {
	for id, n := range o.u.cluster.made {
		if n > 1 {
			o.u.fail("the Job of %s was made %d times", id, n)
		}
	}
	if len(o.u.procs) > 1 || o.u.chaos.meddling {
		return
	}
	known := o.jobsOnRecord()
	for key := range o.u.cluster.jobs {
		if !known[key] {
			o.u.fail("Job %s is there and not on record", key)
		}
	}
}

// jobsOnRecord returns the Jobs that any record names, as namespace/name.
func (o *oracle) jobsOnRecord() map[string]bool {
	all := map[string]bool{}
	for _, records := range o.records {
		for _, s := range records {
			for _, h := range s.Hooks {
				all[namespace+"/"+h.Job] = true
			}
		}
	}
	return all
}

// checkHooks checks that hooks run one at a time. The hooks "before" must end before a release begins, and the hooks "after" before the
// release becomes stable. If an app has hooks but no Rollout documents, its record may name a new content only with a release.
func (o *oracle) checkHooks(app string, was, is rollout.State) {
	before, running := 0, 0
	if is.Source == "" {
		return // the app continues under a new name
	}
	if r := o.at(app, is.Source); r != nil && is.Source != was.Source && len(r.Specs) == 0 && r.Hooked {
		o.u.played["a content with hooks"]++
		// A return to the stable content needs no release.
		isBack := is.Stable != nil && (is.Stable.Hash == r.Content || is.Stable.Commit == is.Source)
		if !isBack && (is.Release == nil || is.Release.Hash != r.Content) {
			o.u.fail("%s: %s is followed, whose content %s is no release", app, is.Source, r.Content)
		}
	}
	for _, h := range was.Hooks {
		o.checkIdentity(app, h, is.Hooks)
		if h.Phase == rollout.HookRunning {
			before++
		}
	}
	for _, h := range is.Hooks {
		o.checkVerdict(app, h)
		if h.Phase == rollout.HookRunning {
			running++
		}
	}
	// A renamed app may run Jobs of its old and its new name.
	if isNamed := len(is.Formerly) > len(was.Formerly); running > max(1, before) && !isNamed {
		o.u.fail("%s: %d hooks run at once", app, running)
	}
	begins := is.Release != nil && !is.Release.Fast && is.Phase != rollout.Aborting && releaseID(was) != releaseID(is)
	if begins {
		o.checkEnded(app, is.Release, rollout.HookBefore, is.Hooks)
	}
	follows := was.Release == nil && is.Release == nil && was.Stable != nil && is.Stable != nil && was.Stable.Hash == is.Stable.Hash &&
		// In phases other than Healthy, the change still belongs to a release.
		was.Phase == rollout.Healthy && is.Phase == rollout.Healthy && was.Source != "" && was.Source != is.Source && was.Draining == nil
	if follows {
		o.checkAlone(app, was, is)
	}
	ends := was.Release != nil && !was.Release.Fast && was.Phase != rollout.Aborting && is.Release == nil && is.Stable != nil &&
		is.Phase != rollout.Aborting && is.Stable.Hash == was.Release.Hash
	if ends {
		o.checkEnded(app, was.Release, rollout.HookAfter, was.Hooks)
	}
	o.checkReturned(app, was, is)
}

// checkAlone checks a commit that changes only hooks. A record may name the commit only after these hooks have succeeded.
func (o *oracle) checkAlone(app string, was, is rollout.State) {
	before, now := o.u.appIn(was.Source, app), o.u.appIn(is.Source, app)
	if before == nil || now == nil {
		return
	}
	for _, h := range now.hooks {
		if h.when == "abort" || !slices.ContainsFunc(before.hooks, func(b hookSource) bool { return b.name == h.name && b != h }) {
			continue
		}
		o.u.played["a hook alone"]++
		if !slices.ContainsFunc(was.Hooks, func(r rollout.HookRun) bool {
			return r.Release == is.Stable.Hash && r.Name == namespace+"/"+h.name && !r.Past &&
				(r.Phase == rollout.HookSucceeded || r.Phase == rollout.HookFailed && h.continues)
		}) {
			o.u.fail("%s: %s is followed, and hook %s has changed and not ended well: %+v", app, is.Source, h.name, was.Hooks)
		}
	}
}

// isFollowed reports, for a release without steps, whether a Job of the release runs or all pods have the recorded content.
func (u *universe) isFollowed(app string, s rollout.State) bool {
	runs := slices.ContainsFunc(s.Hooks, func(h rollout.HookRun) bool {
		return h.Phase == rollout.HookRunning && h.Release == s.Release.Hash
	})
	source, live := u.oracle.at(app, s.Source), u.kube.Observe().Workloads
	if source == nil || runs {
		return runs
	}
	for w, hash := range source.Templates {
		if live[w].Hash != hash || !live[w].Complete {
			return false
		}
	}
	return true
}

func (o *oracle) checkEnded(app string, release *rollout.Release, when rollout.HookWhen, runs []rollout.HookRun) {
	i := slices.IndexFunc(o.u.sources[release.Commit].apps, func(a appSource) bool { return a.name == app })
	if i < 0 {
		return
	}
	for _, h := range o.u.sources[release.Commit].apps[i].hooks {
		if rollout.HookWhen(h.when) == when && !slices.ContainsFunc(runs, func(r rollout.HookRun) bool {
			return r.Release == release.Hash && r.Name == namespace+"/"+h.name && r.When == when && !r.Past &&
				(r.Phase == rollout.HookSucceeded || r.Phase == rollout.HookFailed && h.continues)
		}) {
			o.u.fail("%s: release %s goes on, and hook %s has not ended well: %+v", app, release.Hash, h.name, runs)
		}
	}
}

// checkVerdict checks that the result of a Job in a record is the Job's real result.
func (o *oracle) checkVerdict(app string, run rollout.HookRun) {
	end := o.u.ends[run.Job]
	switch {
	case run.Phase == rollout.HookSucceeded && !end.Complete:
		o.u.fail("%s: Job %s is on record as one that has ended well, and is %+v", app, run.Job, end)
	case run.Phase == rollout.HookFailed && end.Complete && run.Message == end.Message:
		o.u.fail("%s: Job %s has ended well, and is on record as one that has failed", app, run.Job)
	}
}

// checkIdentity checks that the record of a running hook names the same Job until the Job ends, even if the app is renamed.
func (o *oracle) checkIdentity(app string, run rollout.HookRun, is []rollout.HookRun) {
	j := o.u.cluster.jobs[namespace+"/"+run.Job]
	if run.Phase != rollout.HookRunning || j == nil || j.annotation != hook.ID(app, run) {
		return
	}
	for _, r := range is {
		if r.Job == run.Job && !strings.HasPrefix(r.Message, "the Job does not exist") {
			return
		}
	}
	o.u.fail("%s: hook %s was running as Job %s, and has lost it", app, run.Name, run.Job)
}

// checkReturned checks that each hook "abort" has ended when the rollback ends. It ignores releases that return to an earlier version, and
// releases with the stable version's hash.
func (o *oracle) checkReturned(app string, was, is rollout.State) {
	ends := was.Release != nil && was.Phase == rollout.Aborting && was.Stable != nil && was.Release.Hash != was.Stable.Hash &&
		!was.Release.Fast && is.Phase != rollout.Aborting && is.Phase != rollout.Promoting && is.Release == nil
	if !ends {
		return
	}
	left := o.u.appIn(was.Release.Commit, app)
	if left == nil {
		return
	}
	for _, h := range left.hooks {
		if h.when != "abort" {
			continue
		}
		o.u.played["a hook after a rollback"]++
		if !slices.ContainsFunc(was.Hooks, func(r rollout.HookRun) bool {
			return r.Release == was.Release.Hash && r.Name == namespace+"/"+h.name && r.When == rollout.HookAbort && r.Phase != rollout.HookRunning
		}) {
			o.u.fail("%s: the rollback from %s has ended, and hook %s has not run: %+v", app, was.Release.Hash, h.name, was.Hooks)
		}
	}
}

// kindJobs is a mutation that reports failed Jobs as successful.
type kindJobs struct{ *View }

func (j kindJobs) EnsureJob(ctx context.Context, object map[string]any, annotation string, begun bool) (rollout.JobState, error) {
	state, err := j.View.EnsureJob(ctx, object, annotation, begun)
	if state.Failed {
		state = rollout.JobState{Complete: true}
	}
	return state, err
}

// namedJobs is a mutation that reports a Job as another app's Job if the Job was created under a former name of its app.
type namedJobs struct {
	*View
	u *universe
}

func (j namedJobs) EnsureJob(ctx context.Context, object map[string]any, annotation string, begun bool) (rollout.JobState, error) {
	state, err := j.View.EnsureJob(ctx, object, annotation, begun)
	app, _, _ := strings.Cut(rollout.Object(object).Annotation(annotation), " ")
	if begun && !slices.ContainsFunc(j.u.head().apps, func(a appSource) bool { return a.name == app }) {
		return rollout.JobState{Taken: true}, err
	}
	return state, err
}

// hastyJobs is a mutation that creates each Job when the process only checks the Job's manifest.
type hastyJobs struct{ *View }

func (j hastyJobs) CheckJob(_ context.Context, object map[string]any) error {
	o := rollout.Object(object)
	j.cluster.makeJob(o.Namespace()+"/"+o.Name(), o.Annotation(hook.AnnotationID))
	return nil
}

// withoutHooks returns a mutation that hides all hooks with a given value of the annotation, such as "before".
func withoutHooks(when string) wrap {
	return renders(func(_ starting, _ string, r *rollout.Render) {
		r.Objects = slices.DeleteFunc(r.Objects, func(o rollout.Object) bool { return o.Annotation(hook.Annotation) == when })
	})
}

// sameHooks is a mutation that renders each hook with the content of the hook's first edition.
func sameHooks(_ starting, _ string, r *rollout.Render) {
	for i, o := range r.Objects {
		if hook.Is(o) {
			r.Objects[i] = o.Copy()
			r.Objects[i].Map("spec")["completions"] = int64(1)
		}
	}
}

// unhooked is a mutation that hides the hooks of apps without Rollout documents.
func unhooked(_ starting, _ string, r *rollout.Render) { r.Hooked = r.Hooked && len(r.Specs) > 0 }

// hopefulJobs is a mutation that deletes each failed Job, so that the Job is created again.
type hopefulJobs struct{ *View }

func (j hopefulJobs) EnsureJob(ctx context.Context, object map[string]any, annotation string, begun bool) (rollout.JobState, error) {
	state, err := j.View.EnsureJob(ctx, object, annotation, begun)
	if state.Failed && !begun {
		o := rollout.Object(object)
		if err := j.DeleteJob(ctx, o.Namespace(), o.Name()); err == nil {
			return rollout.JobState{}, nil
		}
	}
	return state, err
}
