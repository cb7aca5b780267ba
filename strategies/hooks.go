package strategies

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

// Jobs that run around a release. Each one is on record as Running before it is made, and its end is on record before
// anything follows from it, so that a process which is killed in between finds it again:
//
//	due → recorded as Running → made → ended → recorded as Succeeded or Failed → the next one, or the release goes on
//
// Those before a release run while the app is as it was; those after it while all users are on it and it is not
// stable yet; those of an abort when the way back has ended. One runs at a time, whichever release it is of.

// HookJob is a Job to be looked for, and to be made unless it is there.
type HookJob struct {
	Object rollout.Object
	Make   bool
	Delete bool             // instead: remove it
	Needs  []rollout.Object // to be applied before it is made
}

// Key is the Job's name with its namespace.
func (j HookJob) Key() string { return j.Object.Namespace() + "/" + j.Object.Name() }

// startsWithin is how long a Job may take to have a pod that runs before it makes room for one of another release.
const startsWithin = 10 * time.Second

// again is how often a Job that runs is looked at.
const again = 2 * time.Second

// started is a decision to start a release, once what runs before it has ended.
func started(in Input, start Decision) Decision {
	head, release, source := in.Head.Render, *start.State.Release, start.State.Source
	begun := slices.ContainsFunc(in.State.Hooks, func(r rollout.HookRun) bool {
		return !r.Past && r.Release == release.Hash && r.When == rollout.HookBefore
	})
	if !begun && runningHook(in.State) < 0 {
		switch {
		case len(hooksAt(in, head, rollout.HookBefore, release)) == 0:
			return start
		case source != in.State.Source && !hasKey(in.Answers.Accepted, source):
			return start // the API server is asked about all of it first
		}
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

// Coming is the release that waits for what runs before it, of which nothing has begun; nil if none does.
func Coming(in Input) *rollout.Release {
	h := in.State.Held
	if h == nil || h.Reason != rollout.HeldHook || in.State.Phase == rollout.Aborting || in.Head.Render == nil {
		return nil
	}
	release := newRelease(in)
	release.Since = time.Time{}
	if release.Hash == "" || in.State.Stable != nil && in.State.Stable.Hash == release.Hash {
		return nil // Git has left it since
	}
	return &release
}

// keptByHook is an app that stays as it is while something runs before a release of it.
func keptByHook(in Input, d Decision, release rollout.Release) Decision {
	s := &d.State
	switch {
	case s.Phase == "":
		s.Phase = rollout.Pending
	case s.Phase == rollout.Aborting && s.Retreat == nil: // the way back has ended
		s.Phase, s.Reason, s.Analyses = rollout.Healthy, "", nil
	}
	what := "release " + string(release.Hash) + " of " + in.Head.Commit.Short()
	if isOfStable(in.State, release) {
		what = "commit " + in.Head.Commit.Short()
	}
	s.Held = &rollout.Held{Reason: rollout.HeldHook, Commit: in.Head.Commit.ID, Message: fmt.Sprintf(
		"%s by %s waits for its hooks", what, in.Head.Commit.Author)}
	d.Subject = orElse(d.Subject, fmt.Sprintf("%s: release %s waits for hooks", s.App, release.Hash))
	return d
}

// isOfStable reports whether hooks run that have changed without a new version: what serves stays.
func isOfStable(s rollout.State, release rollout.Release) bool {
	return s.Release == nil && s.Stable != nil && s.Stable.Hash == release.Hash
}

// changed runs the hooks that have changed in a commit that has no new version: those before a release and those after
// it, before anything else of the commit is applied. One that is new runs with the next version.
func changed(in Input, next Decision) Decision {
	s, head := in.State, in.Head.Render
	if s.Stable == nil || in.Source == nil || next.State.Source == s.Source || head.Release() == "" {
		return next
	}
	was := in.Source.ByRef()
	isLeft := func(o rollout.Object) bool {
		before := was[o.Ref()]
		return hook.Is(o) && (before == nil || !hook.Is(before) || reflect.DeepEqual(o, before))
	}
	release := *s.Stable
	release.Fast = false
	run := *head
	run.Objects = slices.DeleteFunc(slices.Clone(head.Objects), isLeft)
	unheld := in
	unheld.Promotion = nil // a hold that was left behind is about the release that is stable since
	if i := runningHook(s); i >= 0 && !s.Hooks[i].Past && s.Hooks[i].Release == release.Hash {
		return awaitHook(in, i, &run, s.Hooks[i].When, release)
	}
	for _, when := range []rollout.HookWhen{rollout.HookBefore, rollout.HookAfter} {
		if len(hooksAt(in, &run, when, release)) == 0 {
			continue
		}
		if !hasKey(in.Answers.Accepted, next.State.Source) {
			return next // the API server is asked about all of it first
		}
		if d, shut := waitForWindow(unheld, "a hook that has changed, and commit"); shut {
			return d
		}
		if d, waits := runHooks(in, &run, when, release); waits {
			return d
		}
	}
	next.State.Hooks = pastHooks(next.State.Hooks)
	return next
}

// afterwards runs what runs after a release and before it is stable; false if nothing is left to.
func afterwards(in Input) (Decision, bool) {
	s := in.State
	if s.Former != nil || s.Release == nil || s.Phase == rollout.Aborting {
		return Decision{}, false
	}
	return runHooks(in, in.renderOf(s.Release.Hash), rollout.HookAfter, *s.Release)
}

// returned runs what runs after a way back; false if nothing is left to.
func returned(in Input) (Decision, bool) {
	s := in.State
	switch {
	case s.Release.Hash == s.Stable.Hash: // it is on its way to what nothing was released over
		return Decision{}, false
	case in.Unread:
		return Decision{State: s, Waiting: "the commit of the release that is left to be read"}, true
	}
	return runHooks(in, in.Left, rollout.HookAbort, *s.Release)
}

// renderOf is the commit that has a version, as far as one is here; nil if none is.
func (in Input) renderOf(h rollout.Hash) *rollout.Render {
	for _, r := range []*rollout.Render{in.Head.Render, in.Source, in.Left} {
		if r != nil && r.Release() == h {
			return r
		}
	}
	return nil
}

// hooksAt are the Jobs that a release has to have run at a time.
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

// runningHook is the place of the one that runs, -1 if none does.
func runningHook(s rollout.State) int {
	return slices.IndexFunc(s.Hooks, func(r rollout.HookRun) bool { return r.Phase == rollout.HookRunning })
}

// runHooks makes the next transition of those that run at a time of a release; false if all of them are over.
func runHooks(
	in Input, r *rollout.Render, when rollout.HookWhen, release rollout.Release,
) (d Decision, waits bool) {
	if i := runningHook(in.State); i >= 0 {
		return awaitHook(in, i, r, when, release), true
	}
	for _, h := range hooksAt(in, r, when, release) {
		i := slices.IndexFunc(in.State.Hooks, func(run rollout.HookRun) bool {
			return !run.Past && run.Release == release.Hash && run.When == when && run.Name == h.Name()
		})
		switch {
		case i < 0, when != rollout.HookAbort && isAnother(in.State.Hooks[i], h):
			return beginHook(in, r, h, when, release), true // it has not run yet, or has changed since
		case when == rollout.HookAbort: // there is nothing to go back to from there
		case in.State.Hooks[i].Phase == rollout.HookFailed && !h.Continues && runsAgain(in, in.State.Hooks[i]):
			return beginHook(in, r, h, when, release), true
		case in.State.Hooks[i].Phase == rollout.HookFailed && !h.Continues:
			return failed(in, in.State.Hooks[i], release), true
		}
	}
	return Decision{}, false
}

// runsAgain reports whether somebody asked for another try of what a failed hook is of, after it had failed: no version
// was rejected for it.
func runsAgain(in Input, run rollout.HookRun) bool {
	if !in.Promotion.Says(rollout.Retry, run.Release) {
		return false
	}
	at, err := time.Parse(time.RFC3339, in.Promotion.At)
	return err == nil && at.After(run.Since)
}

// FailedHook is the hook for which an app is held though no version was rejected, "" if it is not: it can be tried
// again as it is.
func FailedHook(in Input) string {
	h := in.State.Held
	if h == nil || h.Reason != rollout.HeldHookFailed && h.Reason != rollout.HeldNoStable || in.Head.Render == nil {
		return ""
	}
	for _, run := range in.State.Hooks {
		if !run.Past && run.Phase == rollout.HookFailed && run.When != rollout.HookAbort &&
			run.Release == in.Head.Render.Release() {
			return run.Name
		}
	}
	return ""
}

// isAnother reports whether a hook is not any more what ran.
func isAnother(run rollout.HookRun, h hook.Hook) bool {
	return run.Content != "" && run.Content != hook.Content(h.Object)
}

// interrupted is what is on record of a Job that makes room for a newer release: it is deleted when that begins, and
// not before nobody would make it again.
const interrupted = "deleted for a newer release"

// beginHook records that a Job is to be made. Those of earlier attempts that are too many by then, or run no more, are
// deleted first: what is not on record any more would stay for ever.
func beginHook(
	in Input, r *rollout.Render, h hook.Hook, when rollout.HookWhen, release rollout.Release,
) Decision {
	d := Decision{State: in.State, Waiting: "hook " + h.Name() + " to begin"}
	s, attempt, before := &d.State, 1, 0
	s.Hooks = nil
	var gone []HookJob
	for _, run := range slices.Backward(in.State.Hooks) {
		isIts := run.Name == h.Name()
		if isIts {
			before++
		}
		if isIts && run.Release == release.Hash {
			attempt = max(attempt, run.Attempt+1)
		}
		isOld := isIts && before >= h.Kept
		job := HookJob{Object: hook.Known(s.App, run), Delete: true}
		if (isOld || run.Message == interrupted) && !hasKey(in.Answers.Jobs, job.Key()) {
			gone = append(gone, job)
		}
		if isOld {
			continue
		}
		run.Past = run.Past || run.Release != release.Hash || run.Name == h.Name() && run.When == when
		s.Hooks = append(s.Hooks, run)
	}
	if len(gone) > 0 {
		d.State, d.Ask = in.State, &Ask{Jobs: gone}
		return d
	}
	slices.Reverse(s.Hooks)
	run := rollout.HookRun{
		Name: h.Name(), When: when, Release: release.Hash, Job: h.JobName(release.Hash, attempt),
		Phase: rollout.HookRunning, Since: rollout.Second(in.Now), Attempt: attempt, Content: hook.Content(h.Object),
	}
	s.Hooks = append(s.Hooks, run)
	s.Inventory = sorted(slices.Concat(s.Inventory, refsOf(needsOfHook(in, r, h, when, release))))
	d.Subject = fmt.Sprintf("%s runs hook %s %s %s", s.App, h.Name(), when, release.Hash)
	if when == rollout.HookBefore || isOfStable(in.State, release) {
		return keptByHook(in, d, release)
	}
	return d
}

func needsOfHook(
	in Input, r *rollout.Render, h hook.Hook, when rollout.HookWhen, release rollout.Release,
) []rollout.Object {
	return hook.Needs(h, when, tryOf(in, release), r.Objects, in.Source.ByRef())
}

// awaitHook looks at the one that runs, and records its end. That of another release than the one that is to go on
// decides nothing, and is waited for all the same: a migration is not run beside another one. But one that cannot
// start, for its image is missing, makes room.
func awaitHook(
	in Input, i int, r *rollout.Render, when rollout.HookWhen, release rollout.Release,
) (d Decision) {
	run := in.State.Hooks[i]
	isIts := !run.Past && run.Release == release.Hash && run.When == when
	job, late, interrupts := HookJob{Object: hook.Known(in.State.App, run)}, time.Time{}, false
	for _, h := range hooksAt(in, r, run.When, release) {
		switch {
		case h.Name() != run.Name:
		case isIts:
			job = HookJob{Object: h.Job(in.State.App, run), Make: true, Needs: needsOfHook(in, r, h, when, release)}
			late = run.Since.Add(h.Deadline() + time.Minute) // the cluster ends it by itself before that
		default:
			interrupts = h.Interrupt
		}
	}
	d = Decision{State: in.State, Requeue: in.Now.Add(again), Waiting: fmt.Sprintf("hook %s (%s %s): Job %s to end",
		run.Name, run.When, run.Release, run.Job)}
	if when == rollout.HookBefore || isOfStable(in.State, release) {
		d = keptByHook(in, d, release)
	}
	state, known := in.Answers.Jobs[job.Key()]
	isStuck := state.Idle && !in.Now.Before(run.Since.Add(startsWithin))
	if interrupts || isStuck && !isIts && len(hooksAt(in, r, when, release)) > 0 {
		run.Phase, run.Message = rollout.HookFailed, interrupted
		return ended(in, i, run, d, false, r, release)
	}
	if why := orElse(strings.TrimSuffix(state.Stuck+": "+state.Message, ": "), state.Waits); why != "" && !state.Failed {
		d.Waiting += " (" + rollout.Printable(why) + ")"
	}
	switch isLate := !late.IsZero() && !in.Now.Before(late); {
	case !known:
		d.Ask = &Ask{Jobs: []HookJob{job}}
		return d
	case state.Complete:
		run.Phase, run.Message = rollout.HookSucceeded, ""
	case state.Refused:
		run.Phase, run.Message = rollout.HookFailed, "the cluster refuses it: "+state.Stuck
	case state.Failed:
		run.Phase, run.Message = rollout.HookFailed, orElse(state.Message, "the Job failed")
	case state.Gone:
		run.Phase, run.Message = rollout.HookFailed, "the Job is not there, and what it was made of is not in Git any more"
	case isLate:
		run.Phase, run.Message = rollout.HookFailed, "it has not ended in time"
	default:
		return d
	}
	return ended(in, i, run, d, isIts, r, release)
}

// ended records the end of a Job, and what follows from it.
func ended(
	in Input, i int, run rollout.HookRun, d Decision, isIts bool, r *rollout.Render, release rollout.Release,
) Decision {
	run.Since, run.Message = rollout.Second(in.Now), rollout.Printable(run.Message)
	in.State.Hooks = slices.Clone(in.State.Hooks)
	in.State.Hooks[i] = run
	continues := slices.ContainsFunc(hooksAt(in, r, run.When, release), func(h hook.Hook) bool {
		return h.Name() == run.Name && h.Continues
	})
	if run.Phase == rollout.HookFailed && isIts && !continues && run.When != rollout.HookAbort {
		return failed(in, run, release)
	}
	d.State.Hooks, d.Requeue = in.State.Hooks, time.Time{}
	d.Subject = fmt.Sprintf("%s hook %s %s %s: %s", in.State.App, run.Name, run.When, run.Release,
		strings.ToLower(string(run.Phase)))
	if run.Message != "" {
		d.Subject += ": " + run.Message
	}
	return d
}

// withHooks looks at a Job that runs though nothing waits for it, as after a revert: its end is recorded too.
func withHooks(in Input, d Decision, was rollout.State) Decision {
	i := runningHook(d.State)
	if i < 0 || d.Retreat || d.Stale || d.Ask != nil || !d.State.Equal(&was) {
		return d
	}
	job := awaitHook(in, i, nil, "", rollout.Release{})
	d.State.Hooks, d.Ask, d.Subject = job.State.Hooks, job.Ask, job.Subject
	d.Requeue = soonest(d.Requeue, job.Requeue)
	return d
}

// failed is what follows when a hook has failed without which a release does not go on.
func failed(in Input, run rollout.HookRun, release rollout.Release) Decision {
	reason := fmt.Sprintf("hook %s (%s) failed: %s", run.Name, run.When, run.Message)
	switch {
	case isOfStable(in.State, release):
		return hold(in.State, rollout.HeldHookFailed, reason+"; it runs again when it changes in Git, or by gitrollout "+
			"retry "+in.App.Name+", and is left when Git has what it was before; nothing else of the commit is applied until "+
			"then", in.Head.Commit.ID)
	case run.When == rollout.HookBefore:
		return refuse(in, release, cause{reason: reason, hook: run})
	case in.State.Stable == nil:
		return hold(in.State, rollout.HeldNoStable, reason+"; there is no stable version yet: push a version that works, "+
			"or change the hook, or try it again as it is: gitrollout retry "+in.App.Name, in.Head.Commit.ID)
	}
	return retreat(in, cause{reason: reason, to: in.State.Stable.Commit, reject: true, hook: run})
}

// refuse rejects a release that has not begun.
func refuse(in Input, release rollout.Release, why cause) Decision {
	s := rejected(in, in.State, release, why)
	s.Stable, s.Hooks = newestStable(in), pastHooks(s.Hooks)
	in.State = s
	d := Decision{State: s} // while what was before it is still on its way out
	switch {
	case s.Stable == nil:
		d = notBegun(in, s.Rejected[0])
	case s.Retreat == nil:
		d = degraded(in, s.Rejected[0])
	}
	d.Subject = fmt.Sprintf("%s rejects %s, of which nothing has begun: %s", s.App, release.Hash, why.reason)
	return d
}

// notBegun keeps an app without a stable version as it is.
func notBegun(in Input, why rollout.Rejection) Decision {
	d := hold(in.State, rollout.HeldHookFailed, fmt.Sprintf("release %s was not begun: %s; change what failed and push, "+
		"or try it again as it is: gitrollout retry %s", why.Hash, why.Reason, in.App.Name), in.Head.Commit.ID)
	d.State.Phase = rollout.Phase(orElse(string(d.State.Phase), string(rollout.Pending)))
	return d
}

// hookInFlight looks at what runs after the release in flight; false if nothing does.
func hookInFlight(in Input) (Decision, bool) {
	s := in.State
	i := runningHook(s)
	isMoving := s.Release != nil && s.Former == nil && s.Phase != rollout.Aborting
	if i < 0 || !isMoving || s.Hooks[i].Release != s.Release.Hash {
		return Decision{}, false
	}
	return awaitHook(in, i, in.renderOf(s.Release.Hash), s.Hooks[i].When, *s.Release), true
}

// pastHooks are those of a try that is over. What still runs of it is waited for before another one begins.
func pastHooks(all []rollout.HookRun) []rollout.HookRun {
	all = slices.Clone(all)
	for i := range all {
		all[i].Past = true
	}
	return all
}
