package strategies

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

// Hooks are Jobs around a release:
//
// 	due → recorded as Running → created → ended → recorded as Succeeded or Failed → next Job, or the release continues

// HookJob is a Job to look up or, with Make, to create if missing.
type HookJob struct {
	Object rollout.Object
	Make   bool
	Delete bool             // delete the Job, do not look it up
	Needs  []rollout.Object // applied before the Job
}

// Key returns the Job's namespace and name.
func (j HookJob) Key() string { return j.Object.Namespace() + "/" + j.Object.Name() }

const startsWithin = 10 * time.Second

const again = 2 * time.Second // interval of a running Job's observation

func started(in Input, start Decision) Decision {
	head, release, source := in.Head.Render, *start.State.Release, start.State.Source
	begun := slices.ContainsFunc(in.State.Hooks, func(r rollout.HookRun) bool {
		return !r.Past && r.Release == release.Hash && r.When == rollout.HookBefore
	})
	isUnchecked := source != in.State.Source && !hasKey(in.Answers.Accepted, source)
	if !begun && runningHook(in.State) < 0 &&
		(isUnchecked || len(hooksAt(in, head, rollout.HookBefore, release)) == 0) {
		return start // the API server checks the commit before hooks run
	}
	rejection, is := in.State.IsRejected(release.Hash)
	switch {
	case is && in.State.Stable == nil && !isTriedAgain(in, rejection):
		return notBegun(in, rejection)
	case in.Promotion.Says(rollout.Abort, release.Hash):
		return refuse(in, release, cause{reason: abortedBy(in.Promotion)})
	}
	if d, waits := runHooks(in, head, rollout.HookBefore, release); waits {
		return d
	}
	return start
}

// Coming returns the release that waits for hooks, a window, a freeze, a hold, a cohort or a stage. A first deployment
// counts only if it waits for hooks, because users cannot abort its other waits.
func Coming(in Input) *rollout.Release {
	h, s := in.State.Held, in.State
	shut := h.Is(rollout.HeldClosed, rollout.HeldCohort, rollout.HeldShared, rollout.HeldStage, rollout.HeldFleet)
	waits := h.Is(rollout.HeldHook) || shut && s.Stable != nil && s.Release == nil
	if !waits || s.Phase == rollout.Aborting || in.Head.Render == nil {
		return nil
	}
	release := newRelease(in)
	release.Since = time.Time{}
	if release.Hash == "" || s.Stable != nil && s.Stable.Hash == release.Hash {
		return nil
	}
	return &release
}

func keptByHook(in Input, d Decision, release rollout.Release) Decision {
	s := &d.State
	beforeRelease(s)
	what := "release " + string(release.Hash) + " of " + in.Head.Commit.Short()
	if isOfStable(in.State, release) {
		what = "commit " + in.Head.Commit.Short()
	} else if by := keptBack(in); by != "" {
		d.Waiting += ", and then the end of " + by + reasonOf(in, by)
	}
	message := fmt.Sprintf("%s by %s waits for its hooks", what, in.Head.Commit.Author)
	s.Held = hold(*s, rollout.HeldHook, message, in.Head.Commit).State.Held
	d.Subject = cmp.Or(d.Subject, fmt.Sprintf("%s: release %s waits for hooks", s.App, release.Hash))
	return d
}

func isOfStable(s rollout.State, release rollout.Release) bool {
	return s.Release == nil && s.Stable != nil && s.Stable.Hash == release.Hash
}

// changed runs the hooks that a commit changes, and afterwards makes the commit's other changes. A new hook first runs
// with the next version.
func changed(in Input, next Decision) Decision {
	s, head := in.State, in.Head.Render
	if s.Stable == nil || in.Source == nil || next.State.Source == s.Source || head.Release() == "" {
		return next
	}
	release := *s.Stable
	release.Fast = false
	run := changedHooks(in)
	unheld := in
	unheld.Promotion = nil // a hold in the promotion file was for the release that is now stable
	if i := runningHook(s); i >= 0 && !s.Hooks[i].Past && s.Hooks[i].Release == release.Hash {
		return awaitHook(in, i, run, s.Hooks[i].When, release)
	}
	for _, when := range []rollout.HookWhen{rollout.HookBefore, rollout.HookAfter} {
		if len(hooksAt(in, run, when, release)) == 0 {
			continue
		}
		if !hasKey(in.Answers.Accepted, next.State.Source) {
			return next // the API server checks the whole commit first
		}
		if d, shut := waitForWindow(unheld, "the hook change (and all else)"); shut {
			return d
		}
		if d, waits := runHooks(in, run, when, release); waits {
			return d
		}
	}
	next.State.Hooks = pastHooks(next.State.Hooks)
	return next
}

func changedHooks(in Input) *rollout.Render {
	was, run := in.Source.ByRef(), *in.Head.Render
	run.Objects = slices.DeleteFunc(slices.Clone(run.Objects), func(o rollout.Object) bool {
		before := was[o.Ref()]
		return hook.Is(o) && (before == nil || !hook.Is(before) || reflect.DeepEqual(o, before))
	})
	return &run
}

func changesHooks(in Input) bool {
	return in.Source != nil && in.Source.Digest != in.Head.Render.Digest && slices.ContainsFunc(
		[]rollout.HookWhen{rollout.HookBefore, rollout.HookAfter},
		func(when rollout.HookWhen) bool {
			return len(hooksAt(in, changedHooks(in), when, *in.State.Release)) > 0
		})
}

func afterwards(in Input) (Decision, bool) {
	s := in.State
	if s.Draining != nil || s.Release == nil || s.Phase == rollout.Aborting {
		return Decision{}, false
	}
	return runHooks(in, in.renderOf(s.Release.Hash), rollout.HookAfter, *s.Release)
}

func rolledBack(in Input) (Decision, bool) {
	s := in.State
	switch {
	case s.Release.Hash == s.Stable.Hash: // after StartOver, no release was rolled back
		return Decision{}, false
	case in.Unread:
		return Decision{State: s, Waiting: "the commit of the abandoned release to be read"}, true
	}
	return runHooks(in, in.Left, rollout.HookAbort, *s.Release)
}

func (in Input) renderOf(h rollout.Hash) *rollout.Render {
	r, _ := rollout.Find([]*rollout.Render{in.Head.Render, in.Source, in.Left}, func(r *rollout.Render) bool {
		return r != nil && r.Release() == h
	})
	return r
}

func hooksAt(in Input, r *rollout.Render, when rollout.HookWhen, release rollout.Release) []hook.Hook {
	if r == nil {
		return nil
	}
	all := hook.At(r.Objects, when, tryOf(in, release))
	return slices.DeleteFunc(all, func(h hook.Hook) bool { return !h.IsJob() })
}

func tryOf(in Input, release rollout.Release) hook.Release {
	return hook.Release{First: in.State.Stable == nil, Fast: release.Fast}
}

// interrupted is the message of an interrupted Job. The Job stays until the next hook begins. If Git does not have this
// message when the Job is deleted, gitrollout creates the Job again.
const interrupted = "deleted for a newer release"

// IsLeftToHook reports whether an object, such as a hook's ConfigMap, must stay for the running Job.
func IsLeftToHook(s rollout.State, o rollout.Object) bool {
	i := runningHook(s)
	if i < 0 {
		return false
	}
	goesWith := func(fast bool) bool {
		return hook.GoesWith(o, s.Hooks[i].When, hook.Release{First: s.Stable == nil, Fast: fast})
	}
	return goesWith(false) || goesWith(true)
}

// withHooks records the end of a Job whose release has ended, for example after a revert.
func withHooks(in, given Input, d Decision) Decision {
	i := runningHook(d.State)
	if i < 0 || d.Rollback || d.Stale || d.Ask != nil || in.Unread || !d.State.Equal(&given.State) {
		return d
	}
	job := awaitHook(in, i, nil, "", rollout.Release{})
	d.State.Hooks, d.Ask, d.Subject = job.State.Hooks, job.Ask, job.Subject
	d.Requeue = rollout.Soonest(d.Requeue, job.Requeue)
	return d
}

func failed(in Input, run rollout.HookRun, release rollout.Release) Decision {
	reason := fmt.Sprintf("hook %s (%s) failed: %s", run.Name, run.When, run.Message)
	switch {
	case isOfStable(in.State, release):
		beforeRelease(&in.State)
		return hold(in.State, rollout.HeldHookFailed, reason+"; the rest of the commit waits: change the hook in Git, "+
			"restore it there (it is then skipped), or run it again: gitrollout retry "+in.App.Name, in.Head.Commit)
	case run.When == rollout.HookBefore:
		return refuse(in, release, cause{reason: reason, hook: run})
	case in.State.Stable == nil:
		return hold(in.State, rollout.HeldNoStable, reason+"; there is no stable version yet: push a version that works, "+
			"or change the hook, or run it again without a change: gitrollout retry "+in.App.Name, in.Head.Commit)
	}
	return rollback(in, cause{reason: reason, to: in.State.Stable.Commit, reject: true, hook: run})
}

func refuse(in Input, release rollout.Release, why cause) Decision {
	s := rejected(in, in.State, release, why)
	s.Stable, s.Hooks = newestStable(in), pastHooks(s.Hooks)
	in.State = s
	d := Decision{State: s} // unchanged if an earlier rollback is in progress
	switch {
	case s.Stable == nil:
		d = notBegun(in, s.Rejected[0])
	case s.Rollback == nil:
		d = degraded(in, s.Rejected[0])
	}
	d.Subject = fmt.Sprintf("%s rejects %s before its first step: %s", s.App, release.Hash, why.reason)
	return d
}

func notBegun(in Input, why rollout.Rejection) Decision {
	d := hold(in.State, rollout.HeldHookFailed, fmt.Sprintf("release %s did not begin: %s; change the hook and push, "+
		"or run the hook again without a change: gitrollout retry %s", why.Hash, why.Reason, in.App.Name), in.Head.Commit)
	d.State.Phase = cmp.Or(d.State.Phase, rollout.Pending)
	return d
}

func hookInFlight(in Input) (Decision, bool) {
	s := in.State
	i := runningHook(s)
	isMoving := s.Release != nil && s.Draining == nil && s.Phase != rollout.Aborting
	if i < 0 || !isMoving || s.Hooks[i].Release != s.Release.Hash {
		return Decision{}, false
	}
	return awaitHook(in, i, in.renderOf(s.Release.Hash), s.Hooks[i].When, *s.Release), true
}

func pastHooks(all []rollout.HookRun) []rollout.HookRun {
	all = slices.Clone(all)
	for i := range all {
		all[i].Past = true
	}
	return all
}
