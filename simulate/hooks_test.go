package simulate

import (
	"context"
	"slices"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

// endOf is how a Job stands: it ends some time, in either way, and well when everything is put right.
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

// isChecked reports whether a hook runs before a version is stable that users are on.
func (a *appSource) isChecked() bool {
	return slices.ContainsFunc(a.hooks, func(h hookSource) bool { return h.when == "after" })
}

// checkJobs holds that no Job of one attempt is made twice, and none that is not on record as one that runs. With
// several processes, or where the record is meddled with, one may work on an older record.
func (o *oracle) checkJobs() {
	for id, n := range o.u.cluster.made {
		if n > 1 {
			o.u.fail("the Job of %s was made %d times", id, n)
		}
	}
	if len(o.u.procs) > 1 || o.u.chaos.meddling {
		return
	}
	for key := range o.u.cluster.jobs {
		if !slices.ContainsFunc(sorted(o.jobsOnRecord()), func(name string) bool { return key == name }) {
			o.u.fail("Job %s is there and not on record", key)
		}
	}
}

// jobsOnRecord are all Jobs that ever were.
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

// checkHooks holds that hooks run one at a time, that no release begins before what runs before it has ended well, and
// that none is stable before what runs after it has. Without Rollout documents, too, nothing is followed that is no release.
func (o *oracle) checkHooks(app string, was, is rollout.State) {
	running := 0
	if r := o.at(app, is.Source); r != nil && is.Source != was.Source && len(r.Specs) == 0 && r.Hooked {
		o.u.played["a content with hooks"]++
		isBack := is.Stable != nil && (is.Stable.Hash == r.Content || is.Stable.Commit == is.Source) // or was, before it had a document
		if !isBack && (is.Release == nil || is.Release.Hash != r.Content) {
			o.u.fail("%s: %s is followed, whose content %s is no release", app, is.Source, r.Content)
		}
	}
	for _, h := range is.Hooks {
		o.checkVerdict(app, h)
		if h.Phase == rollout.HookRunning {
			running++
		}
	}
	if running > 1 {
		o.u.fail("%s: %d hooks run at once", app, running)
	}
	begins := is.Release != nil && !is.Release.Fast && is.Phase != rollout.Aborting && releaseID(was) != releaseID(is)
	if begins {
		o.checkEnded(app, is.Release, rollout.HookBefore, is.Hooks)
	}
	follows := was.Release == nil && is.Release == nil && was.Stable != nil && is.Stable != nil && was.Stable.Hash == is.Stable.Hash &&
		was.Phase == rollout.Healthy && is.Phase == rollout.Healthy && was.Source != "" && was.Source != is.Source && was.Former == nil // else it is a release's still
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

// checkAlone holds that what has changed of hooks without a new version has run and ended well before its commit is followed.
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

// isFollowed reports whether a content without Rollout documents is all there, or a Job runs after it, which is waited for.
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

// checkVerdict holds that the end of a Job on record is the one that it had.
func (o *oracle) checkVerdict(app string, run rollout.HookRun) {
	end := o.u.ends[run.Job]
	switch {
	case run.Phase == rollout.HookSucceeded && !end.Complete:
		o.u.fail("%s: Job %s is on record as one that has ended well, and is %+v", app, run.Job, end)
	case run.Phase == rollout.HookFailed && end.Complete && run.Message == end.Message:
		o.u.fail("%s: Job %s has ended well, and is on record as one that has failed", app, run.Job)
	}
}

// checkReturned holds that what runs after a way back has run when that has ended, whatever came of it. There is none to a
// version that served before, nor of a release of which nothing had begun.
func (o *oracle) checkReturned(app string, was, is rollout.State) {
	ends := was.Release != nil && was.Phase == rollout.Aborting && was.Stable != nil && was.Release.Hash != was.Stable.Hash &&
		!was.Release.Fast && is.Phase != rollout.Aborting && is.Phase != rollout.Promoting && is.Release == nil
	left := o.u.appIn(releaseCommit(was), app)
	if !ends || left == nil {
		return
	}
	for _, h := range left.hooks {
		if h.when != "abort" {
			continue
		}
		o.u.played["a hook after a way back"]++
		if !slices.ContainsFunc(was.Hooks, func(r rollout.HookRun) bool {
			return r.Release == was.Release.Hash && r.Name == namespace+"/"+h.name && r.When == rollout.HookAbort && r.Phase != rollout.HookRunning
		}) {
			o.u.fail("%s: the way back from %s has ended, and hook %s has not run: %+v", app, was.Release.Hash, h.name, was.Hooks)
		}
	}
}

func releaseCommit(s rollout.State) string {
	if s.Release == nil {
		return ""
	}
	return s.Release.Commit
}

// kindJobs takes Jobs that have failed for ones that have ended well.
type kindJobs struct{ *View }

func (j kindJobs) EnsureJob(ctx context.Context, object map[string]any, annotation string, begun bool) (rollout.JobState, error) {
	state, err := j.View.EnsureJob(ctx, object, annotation, begun)
	if state.Failed {
		state = rollout.JobState{Complete: true}
	}
	return state, err
}

// hastyJobs makes Jobs when it is asked whether they could be made.
type hastyJobs struct{ *View }

func (j hastyJobs) CheckJob(_ context.Context, object map[string]any) error {
	o := rollout.Object(object)
	j.cluster.makeJob(o.Namespace()+"/"+o.Name(), o.Annotation(hook.AnnotationID))
	return nil
}

// leftOut sees no hooks of one time.
type leftOut struct {
	reconciler.Renderer
	when string
}

func withoutHooks(when string) func(*universe, *Process, *reconciler.Options) {
	return func(_ *universe, _ *Process, o *reconciler.Options) { o.Renderer = leftOut{o.Renderer, when} }
}

func (r leftOut) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	built, err := r.Renderer.Render(tree, app, commit)
	if err != nil {
		return nil, err
	}
	out := *built
	out.Objects = slices.DeleteFunc(slices.Clone(built.Objects), func(o rollout.Object) bool {
		return o.Annotation(hook.Annotation) == r.when
	})
	return &out, nil
}

// sameHooks sees each hook as it was at first.
type sameHooks struct{ reconciler.Renderer }

func (r sameHooks) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	built, err := r.Renderer.Render(tree, app, commit)
	if err != nil {
		return nil, err
	}
	out := *built
	out.Objects = slices.Clone(built.Objects)
	for i, o := range out.Objects {
		if hook.Is(o) {
			out.Objects[i] = o.Copy()
			out.Objects[i].Map("spec")["completions"] = int64(1)
		}
	}
	return &out, nil
}

// hopefulJobs takes Jobs that have failed for ones that were lost, and makes them again.
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

// unhooked sees no hooks where nothing is staged.
type unhooked struct{ reconciler.Renderer }

func (r unhooked) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	built, err := r.Renderer.Render(tree, app, commit)
	if err != nil || len(built.Specs) > 0 {
		return built, err
	}
	out := *built
	out.Hooked = false
	return &out, nil
}
