package strategies

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

type deadline struct {
	at     time.Time
	reason string
	aborts bool // at the deadline, the release is rolled back
	m      workloads.Staged
	peak   rollout.Peak
	late   bool // the peak must be recorded
}

func (d deadline) isOver(now time.Time) bool { return !d.at.IsZero() && !now.Before(d.at) }

func (d deadline) earlier(other deadline) deadline {
	if d.at.IsZero() || other.at.Before(d.at) {
		return other
	}
	return d
}

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

func lastReady(since time.Time, r rollout.Revision) time.Time {
	if n := r.Ready(); n > 0 && r.ReadySince[n-1].After(since) {
		return r.ReadySince[n-1]
	}
	return since
}

// peakOf returns the largest number of new pods that were ready together, and since when. A pod that becomes ready
// again makes no new peak.
func peakOf(m workloads.Staged, since time.Time) rollout.Peak {
	now := rollout.Peak{Ready: m.Fresh.Ready(), At: lastReady(since, m.Fresh)}
	if was := m.Peak; was != nil && now.Ready <= was.Ready && was.Ready <= m.Fresh.Desired && !was.At.Before(since) {
		return *was
	}
	return now
}

// withPeaks records a new peak only half a deadline or more after the recorded peak, because each record is a commit.
func withPeaks(in Input) []rollout.Progress {
	all := in.State.Progress
	if in.State.Release == nil || in.State.Phase == rollout.Aborting {
		return all
	}
	for _, d := range deadlines(in) {
		if i := indexOf(d.m, in.State); i >= 0 && d.late {
			all = slices.Clone(all)
			all[i].Peak = &d.peak
		}
	}
	return all
}

func firstMade(since time.Time, r rollout.Revision) time.Time {
	var first time.Time
	for _, p := range r.Members {
		if !p.Terminating {
			first = rollout.Soonest(first, p.Created)
		}
	}
	return rollout.Later(first, since)
}

func overdue(in Input) (first deadline, is bool) {
	for _, d := range deadlines(in) {
		first = first.earlier(d)
	}
	return first, first.isOver(in.Now)
}

func lateToAbort(in Input) (first deadline, is bool) {
	for _, d := range deadlines(in) {
		if d.aborts {
			first = first.earlier(d)
		}
	}
	return first, first.isOver(in.Now)
}

// deadlines returns the deadline of each workload that waits for pods, except held and paused workloads. Each step and
// each new peak start the deadline again.
func deadlines(in Input) (all []deadline) {
	s := in.State
	if s.Draining != nil {
		return nil
	}
	if isContent(s.Release) {
		if why, since := unready(in, s.Release.Since); why != "" {
			all = append(all, deadlineOf(since, contentSeconds, "promote", why, ""))
		}
		return all
	}
	for _, spec := range releaseSpecs(in) {
		hash := s.Release.Templates[spec.Workload]
		if hash == s.StableHash(spec.Workload) {
			continue
		}
		if !workloads.IsPromoting(s) && holder(in, s.Release.Hash, spec.Paused) != "" {
			continue // a held workload has no deadline, like a Deployment with spec.paused
		}
		pr, ok := s.ProgressOf(spec.Workload)
		if !ok {
			pr = rollout.Progress{Workload: spec.Workload, Entered: s.Release.Since}
		}
		m := workloads.New(s, in.plans.Of(spec), pr, in.Observed)
		if whole := !ok || workloads.IsPromoting(s); whole && serves(in, spec, hash) || !whole && !waitsForPods(in, m) {
			continue
		}
		since, atGate := pr.Entered, false
		isThere := func(r rollout.Revision) bool { return r.Pods > 0 }
		switch over, lacks := lacksPods(m, in.Now); {
		case ok && workloads.IsPromoting(s) && m.Problem() == "" && !slices.ContainsFunc(m.Live.Revisions, isThere):
			continue // the controller has yet to create pods
		case ok && workloads.IsPromoting(s):
			since = firstMade(promotedAt(s), m.Fresh)
		case ok && lacks:
			since = over
		case ok && !isPodsStage(m): // the step began with ready pods, so only newer pods have a deadline
			atGate = true
			for _, p := range m.Fresh.Members {
				since = rollout.Later(since, p.Created)
			}
		}
		if down := m.Fresh; workloads.WaitsInTurn(m) { // a stable pod may have delayed new pods
			down.Members = slices.DeleteFunc(slices.Clone(down.Members), func(p rollout.Pod) bool { return p.Ready })
			since = firstMade(since, down)
		}
		peak, begun := peakOf(m, since), since
		if m.Peak != nil {
			begun = rollout.Later(begun, m.Peak.At)
		}
		d := deadlineOf(peak.At, spec.ProgressDeadlineSeconds, cmp.Or(pr.Name, "first deployment"), "", m.Problem())
		d.m, d.peak = m, peak
		d.late = peak.At.Sub(begun) > time.Duration(spec.ProgressDeadlineSeconds)*time.Second/2
		_, isBlocked := workloads.Blocker(m)
		d.aborts = spec.ProgressDeadlineAbort && s.Stable != nil && !atGate && !isBlocked &&
			!isMoving(in) // a release that gets all requests is not rolled back
		all = append(all, d)
	}
	return all
}

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

// lateExperiment returns the earliest deadline of the present experiments. Each pod that becomes ready restarts the
// deadline. After all pods were available, an experiment has no deadline, because analyses notice lost pods.
func lateExperiment(in Input) (first deadline, is bool) {
	for _, m := range stagedIn(in) {
		e, is := experimentAt(in.State, m)
		if !is || m.Available != nil || holder(in, in.State.Release.Hash, m.Spec.Paused) != "" {
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

func waitsForPods(in Input, m workloads.Staged) bool {
	_, ok := m.At(m.Step)
	_, waits := lacksPods(m, in.Now)
	waits = waits || (isPodsStage(m) || m.NeedsRouting()) && !waitForPods(in, m).done
	return (waits || !ok) && !m.Suspended && !isSuspended(m) && !m.IsThrough()
}

func isPodsStage(m workloads.Staged) bool {
	_, is := m.Stage().Wait.(plan.PodsWait)
	return is
}

func promotedAt(s rollout.State) time.Time {
	at := s.Release.Since
	for _, p := range s.Progress {
		at = rollout.Later(at, p.Entered)
	}
	return at
}
