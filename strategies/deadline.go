package strategies

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// deadline is a workload of the release that makes no progress.
type deadline struct {
	at     time.Time // when it is, or was, too late
	reason string
	aborts bool // the release goes back then
	m      moving
	peak   rollout.Peak
	late   bool // it is to be recorded
}

func (d deadline) isOver(now time.Time) bool { return !d.at.IsZero() && !now.Before(d.at) }

// earlier returns the earlier one of two deadlines; the zero value is none.
func (d deadline) earlier(other deadline) deadline {
	if d.at.IsZero() || other.at.Before(d.at) {
		return other
	}
	return d
}

// deadlineOf is when there has been no progress for so many seconds at a step.
func deadlineOf(since time.Time, seconds int, step, missing, problem string) deadline {
	d := deadline{at: since.Add(time.Duration(seconds) * time.Second)}
	d.reason = fmt.Sprintf("no progress for %ds at %s", seconds, step)
	for _, more := range []string{missing, problem} {
		if more != "" {
			d.reason += ": " + more
		}
	}
	return d
}

// lastReady is when the newest ready pod became so, or since, whichever is later.
func lastReady(since time.Time, r rollout.Revision) time.Time {
	if n := r.Ready(); n > 0 && r.ReadySince[n-1].After(since) {
		return r.ReadySince[n-1]
	}
	return since
}

// peakOf returns the most pods of the new version that were ready since a time, and when the last of them became so. A
// pod that crashed and is ready again adds nothing to what is on record.
func peakOf(m moving, since time.Time) rollout.Peak {
	now := rollout.Peak{Ready: m.fresh.Ready(), At: lastReady(since, m.fresh)}
	if was := m.Peak; was != nil && now.Ready <= was.Ready && was.Ready <= m.fresh.Desired && !was.At.Before(since) {
		return *was
	}
	return now
}

// withPeaks returns the progress of the release with the most ready pods. They are recorded only where the last one
// became ready later than half of the deadline after what is on record: most steps are over by then.
func withPeaks(in Input) []rollout.Progress {
	all := in.State.Progress
	if in.State.Release == nil || in.State.Phase == rollout.Aborting {
		return all
	}
	for _, d := range deadlines(in) {
		if i := d.m.index(in.State); i >= 0 && d.late {
			all = slices.Clone(all)
			all[i].Peak = &d.peak
		}
	}
	return all
}

// comesBack reports whether a workload is to have pods, has none of any version, and nothing is known to be in
// their way.
func comesBack(m moving) bool {
	isThere := func(r rollout.Revision) bool { return r.Pods > 0 }
	return m.problem() == "" && !slices.ContainsFunc(m.live.Revisions, isThere)
}

// firstMade is when the oldest pod of a version was made, or since, whichever is later: those of a workload that had
// none for a while are all younger than its step.
func firstMade(since time.Time, r rollout.Revision) time.Time {
	var first time.Time
	for _, p := range r.Members {
		if !p.Terminating {
			first = rollout.Soonest(first, p.Created)
		}
	}
	return rollout.Later(first, since)
}

// overdue finds a workload whose pods have made no progress for longer than its
// deadline. It returns the earliest deadline either way.
func overdue(in Input) (first deadline, is bool) {
	for _, d := range deadlines(in) {
		first = first.earlier(d)
	}
	return first, first.isOver(in.Now)
}

// lateToAbort is the same of the workloads whose deadline takes the release back. One that only tells may be over
// for long when it comes.
func lateToAbort(in Input) (first deadline, is bool) {
	for _, d := range deadlines(in) {
		if d.aborts {
			first = first.earlier(d)
		}
	}
	return first, first.isOver(in.Now)
}

// deadlines are those of the workloads of a release that wait for pods. Progress is entering a step and each new
// maximum of ready pods; pauses do not count, and neither does the time in which a workload waits for the others of its
// release, or somebody keeps it where it is.
func deadlines(in Input) (all []deadline) {
	s := in.State
	if s.Former != nil {
		return nil
	}
	if isContent(s.Release) {
		return contentDeadlines(in)
	}
	for _, spec := range releaseSpecs(in) {
		hash := s.Release.Templates[spec.Workload]
		if hash == s.StableHash(spec.Workload) {
			continue // there is no progress to make
		}
		if !isPromoting(s) && holder(in, s.Release.Hash, spec.Paused) != "" {
			continue // as for a Deployment with spec.paused: who keeps it there wants to look at it
		}
		pr, ok := s.ProgressOf(spec.Workload)
		if !ok { // it is new, or not moved in stages
			pr = rollout.Progress{Workload: spec.Workload, Entered: s.Release.Since}
		}
		m := movingOf(s, in.plans.of(spec), pr, in.Observed)
		if whole := !ok || isPromoting(s); whole && serves(in, spec, hash) || !whole && !waitsForPods(in, m) {
			continue
		}
		since, atGate := pr.Entered, false
		switch over, lacks := lacksPods(m, in.Now); {
		case ok && isPromoting(s) && comesBack(m):
			continue
		case ok && isPromoting(s):
			since = firstMade(promotedAt(s), m.fresh)
		case ok && lacks:
			since = over
		case ok && !isPodsStage(m): // its pods were there once, and a route has none: what came since counts
			atGate = true
			for _, p := range m.fresh.Members {
				since = rollout.Later(since, p.Created)
			}
		}
		step := cmp.Or(pr.Name, "first deployment")
		peak, begun := peakOf(m, since), since
		if m.Peak != nil {
			begun = rollout.Later(begun, m.Peak.At)
		}
		d := deadlineOf(peak.At, spec.ProgressDeadlineSeconds, step, "", m.problem())
		d.m, d.peak = m, peak
		d.late = peak.At.Sub(begun) > time.Duration(spec.ProgressDeadlineSeconds)*time.Second/2
		aborts := spec.ProgressDeadlineAbort && s.Stable != nil && !atGate
		d.aborts = aborts && !isMoving(in) // whom all users are on is not taken back
		all = append(all, d)
	}
	return all
}

// refused is when the cluster has not taken objects of a release for longer than
// its deadline, while all users are on it.
func refused(in Input) (first deadline) {
	const missing = "the cluster refuses objects"
	if isContent(in.State.Release) {
		return deadlineOf(promotedAt(in.State), contentSeconds, "promote", missing, "")
	}
	for _, spec := range releaseSpecs(in) {
		first = first.earlier(deadlineOf(promotedAt(in.State), spec.ProgressDeadlineSeconds, "promote", missing, ""))
	}
	return first
}

// lateExperiment returns the earliest deadline of the experiments, and whether it is over: an experiment makes
// progress when its step begins, and with each pod that becomes ready. Pods that are lost once all were available do
// not count: the analyses see their effect.
func lateExperiment(in Input) (first deadline, is bool) {
	for _, m := range movers(in) {
		e, is := experimentAt(in.State, m)
		if !is || m.Available != nil || holder(in, in.State.Release.Hash, m.spec.Paused) != "" {
			continue
		}
		since, missing, problem := m.Entered, "", ""
		for _, t := range podsOf(in, m, e) {
			since = lastReady(since, t.live)
			if !t.available() && missing == "" {
				missing = fmt.Sprintf("%d of %d pods of the experiment's %s are available", t.serving, t.Replicas, t.Name)
				problem = t.live.Problem
			}
		}
		if missing != "" {
			first = first.earlier(deadlineOf(since, e.ProgressDeadlineSeconds, m.Name, missing, problem))
		}
	}
	return first, first.isOver(in.Now)
}

// waitsForPods is false for a workload that waits for people or the clock, be it a
// window or somebody's hold, or for the others of its release.
func waitsForPods(in Input, m moving) bool {
	_, ok := m.at(m.Step)
	_, waits := lacksPods(m, in.Now)
	waits = waits || (isPodsStage(m) || m.needsRouting()) && !podsWait{}.verdict(in, m).done
	switch {
	case ok && !waits || m.Suspended || m.isSuspended():
		return false
	default:
		return !m.isThrough()
	}
}

// isPodsStage reports whether a workload is at a step that waits for pods and for nothing else.
func isPodsStage(m moving) bool {
	_, is := m.stage().wait.(podsWait)
	return is
}

// promotedAt is when the last workload of a release was through its steps.
func promotedAt(s rollout.State) time.Time {
	at := s.Release.Since
	for _, p := range s.Progress {
		at = rollout.Later(at, p.Entered)
	}
	return at
}
