package strategies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

func runningHook(s rollout.State) int {
	return slices.IndexFunc(s.Hooks, func(r rollout.HookRun) bool { return r.Phase == rollout.HookRunning })
}

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
			return beginHook(in, r, h, when, release), true
		case when == rollout.HookAbort: // after a failed abort hook, the next hook runs
		case in.State.Hooks[i].Phase == rollout.HookFailed && !h.Continues && runsAgain(in, in.State.Hooks[i]):
			return beginHook(in, r, h, when, release), true
		case in.State.Hooks[i].Phase == rollout.HookFailed && !h.Continues:
			return failed(in, in.State.Hooks[i], release), true
		}
	}
	return Decision{}, false
}

func runsAgain(in Input, run rollout.HookRun) bool {
	if !in.Promotion.Says(rollout.Retry, run.Release) {
		return false
	}
	at, err := time.Parse(time.RFC3339, in.Promotion.At)
	return err == nil && at.After(run.Since)
}

// FailedHook returns the failed hook that holds the app until a retry, or "".
func FailedHook(in Input) string {
	h := in.State.Held
	if h == nil || h.Reason != rollout.HeldHookFailed && h.Reason != rollout.HeldNoStable || in.Head.Render == nil {
		return ""
	}
	run, _ := rollout.Find(in.State.Hooks, func(run rollout.HookRun) bool {
		return !run.Past && run.Phase == rollout.HookFailed && run.When != rollout.HookAbort &&
			run.Release == in.Head.Render.Release()
	})
	return run.Name
}

// Disregarded returns failed hooks of the present version that do not stop its release (hook.Hook.Continues).
func Disregarded(in Input) (all []rollout.HookRun) {
	release := cmp.Or(in.State.Release, in.State.Stable, &rollout.Release{})
	source := cmp.Or(in.renderOf(release.Hash), &rollout.Render{})
	for i, run := range in.State.Hooks {
		isOver := run.Release != release.Hash || slices.ContainsFunc(in.State.Hooks[i+1:], func(later rollout.HookRun) bool {
			return later.Release == run.Release && later.Name == run.Name && later.When == run.When
		})
		if run.Phase == rollout.HookFailed && !isOver && slices.ContainsFunc(source.Objects, func(o rollout.Object) bool {
			h, _, err := hook.Of(o)
			return err == nil && h.Continues && h.Name() == run.Name && !isAnother(run, h)
		}) {
			all = append(all, run)
		}
	}
	return all
}

func isAnother(run rollout.HookRun, h hook.Hook) bool {
	return run.Content != "" && run.Content != hook.Content(h.Object)
}

// mostLeft limits the recorded runs of hooks that Git no longer has, such as hooks with random names.
const mostLeft = 20

// beginHook records a run before its Job exists. It first deletes interrupted and surplus Jobs. Surplus runs leave the
// record afterwards, because gitrollout deletes only recorded Jobs.
func beginHook(
	in Input, r *rollout.Render, h hook.Hook, when rollout.HookWhen, release rollout.Release,
) Decision {
	d := Decision{State: in.State, Waiting: "hook " + h.Name() + " to begin"}
	s, attempt, before, left := &d.State, 1, 0, 0
	s.Hooks = nil
	var gone []HookJob
	for _, run := range slices.Backward(in.State.Hooks) {
		isIts := run.Name == h.Name()
		isLeft := run.Release != release.Hash && !slices.ContainsFunc(r.Objects, func(o rollout.Object) bool {
			h, is, err := hook.Of(o)
			return is && err == nil && h.Name() == run.Name // users may have renamed the hook
		})
		counts := isIts || isLeft && unversioned(run.Name) == unversioned(h.Name())
		if counts {
			before++
		}
		if isLeft {
			left++
		}
		if isIts && run.Release == release.Hash {
			attempt = max(attempt, run.Attempt+1)
		}
		isOld := counts && before >= h.Kept || isLeft && left > mostLeft
		job := HookJob{Object: hook.Known(s.App, run), Delete: true}
		answer, known := in.Answers.Jobs[job.Key()]
		if (isOld || run.Message == interrupted) && !known {
			gone = append(gone, job)
		}
		if isOld && answer.Stuck == "" {
			continue // if the deletion failed (Stuck), a later pass deletes the Job
		}
		if isIts {
			run.Log = ""
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
		Interrupt: h.Interrupt,
	}
	s.Hooks = append(s.Hooks, run)
	s.Inventory = Inventory(*s, needsOfHook(in, r, h, when, release))
	d.Subject = fmt.Sprintf("%s runs hook %s %s %s", s.App, h.Name(), when, release.Hash)
	if when == rollout.HookBefore || isOfStable(in.State, release) {
		return keptByHook(in, d, release)
	}
	return d
}

// unversioned removes name parts with a digit: ns/migrate-v12 becomes ns/migrate. Jobs are immutable, so many users put
// a version into the name.
func unversioned(name string) string {
	namespace, name, _ := strings.Cut(name, "/")
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' })
	parts = slices.DeleteFunc(parts, func(s string) bool { return strings.ContainsAny(s, "0123456789") })
	return namespace + "/" + strings.Join(parts, "-")
}

func needsOfHook(
	in Input, r *rollout.Render, h hook.Hook, when rollout.HookWhen, release rollout.Release,
) []rollout.Object {
	return hook.Needs(h, when, tryOf(in, release), r.Objects, in.Source.ByRef())
}

// awaitHook waits for the running hook, and records its end. It also waits for a hook of another release, because
// migrations must not overlap. It interrupts such a hook if an annotation allows that, or if no pod starts.
func awaitHook(
	in Input, i int, r *rollout.Render, when rollout.HookWhen, release rollout.Release,
) (d Decision) {
	run := in.State.Hooks[i]
	isIts := !run.Past && run.Release == release.Hash && run.When == when
	job, interrupts := HookJob{Object: hook.Known(in.State.App, run)}, false
	var its *hook.Hook
	for _, h := range hooksAt(in, r, run.When, release) {
		switch {
		case h.Name() != run.Name:
		case isIts:
			job = HookJob{Object: h.Job(in.State.App, run), Make: true, Needs: needsOfHook(in, r, h, when, release)}
			its = &h
		default:
			interrupts = run.Interrupt
		}
	}
	d = Decision{State: in.State, Requeue: in.Now.Add(again), Waiting: fmt.Sprintf("hook %s (%s %s): Job %s to end",
		run.Name, run.When, run.Release, run.Job)}
	state, known := in.Answers.Jobs[job.Key()]
	why := cmp.Or(strings.TrimSuffix(state.Stuck+": "+state.Message, ": "), state.Waits)
	if why != "" && !state.Failed && !state.Complete {
		d.Waiting += " (" + rollout.Printable(why) + ")"
	}
	if !isIts {
		d.Waiting += "; its result no longer matters: delete the Job to continue"
	}
	if when == rollout.HookBefore || isOfStable(in.State, release) {
		d = keptByHook(in, d, release)
	}
	isStuck := state.Idle && !in.Now.Before(run.Since.Add(startsWithin))
	if interrupts || isStuck && !isIts && len(hooksAt(in, r, when, release)) > 0 {
		run.Phase, run.Message = rollout.HookFailed, interrupted
		return ended(in, i, run, d, false, r, release)
	}
	next := run
	if state.Gone && in.Now.Before(run.Since.Add(time.Minute)) {
		return d // another process may be about to create the Job
	}
	switch over, isOver := endOf(in.Now, run, its, state); {
	case !known:
		d.Ask = &Ask{Jobs: []HookJob{job}}
		return d
	case state.Taken && its != nil:
		next.Attempt++
		next.Job, next.Since = its.JobName(run.Release, next.Attempt), rollout.Second(in.Now)
		d.Subject = fmt.Sprintf("another Job %s exists, so the hook runs as Job %s", run.Job, next.Job)
	case isOver:
		return ended(in, i, over, d, isIts, r, release)
	case state.Anew && run.Message == "":
		next.Message = "the hook's Job was created again, because the previous Job was deleted"
		d.Subject = fmt.Sprintf("Job %s was deleted while it ran, and is created again", run.Job)
	default:
		return d
	}
	d.State.Hooks = slices.Clone(in.State.Hooks)
	d.State.Hooks[i] = next
	d.Subject = fmt.Sprintf("%s hook %s %s %s: %s", in.State.App, run.Name, run.When, run.Release, d.Subject)
	return d
}

// endOf returns a run with its Job's result. A running Job counts as failed a minute after its hook's deadline. If Git
// lacks the hook or another release began the run, endOf gets no hook.
func endOf(
	now time.Time, run rollout.HookRun, its *hook.Hook, state rollout.JobState,
) (over rollout.HookRun, isOver bool) {
	began := rollout.Later(run.Since, state.Started) // a Job may be created late or suspended
	run.Phase, run.Log = rollout.HookFailed, state.Log
	switch {
	case state.Complete:
		run.Phase = rollout.HookSucceeded
	case state.Refused:
		run.Message = "the cluster refuses it: " + state.Stuck
	case state.Failed:
		run.Message = cmp.Or(state.Message, "the Job failed")
	case state.Gone, state.Taken:
		run.Message = "the Job does not exist, and its manifest is no longer in Git"
	case its != nil && !state.Suspended && !now.Before(began.Add(its.Deadline()+time.Minute)):
		run.Message = "it has not ended in time"
	default:
		return run, false
	}
	return run, true
}

func ended(
	in Input, i int, run rollout.HookRun, d Decision, isIts bool, r *rollout.Render, release rollout.Release,
) Decision {
	run.Since, run.Message = rollout.Second(in.Now), rollout.Printable(run.Message)
	run.Log = rollout.Tail(run.Log, rollout.MaxHookLog)
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
