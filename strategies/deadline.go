package strategies

import (
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// deadline is a workload of the release that makes no progress.
type deadline struct {
	spec     rollout.Spec
	at       time.Time // when it is, or was, too late
	problem  string
	progress rollout.Progress
}

func (d deadline) reason() string {
	text := fmt.Sprintf("no progress for %ds at %s", d.spec.ProgressDeadlineSeconds, orElse(d.progress.Name, "first deployment"))
	if d.problem != "" {
		text += ": " + d.problem
	}
	return text
}

// overdue finds a workload whose pods have made no progress for longer than its
// deadline. Progress is entering a step and each new pod that becomes ready;
// pauses do not count, and neither does the time in which a workload waits for
// the others of its release. It returns the earliest deadline either way.
func overdue(in Input) (deadline, bool) {
	var first deadline
	for _, spec := range releaseSpecs(in) {
		pr, ok := in.State.ProgressOf(spec.Workload)
		if !ok && in.State.Stable != nil {
			continue // its template does not change: there is no progress to make
		}
		if !ok {
			pr = rollout.Progress{Workload: spec.Workload, Entered: in.State.Release.Since}
		}
		m := movingOf(in.State, in.plans.of(spec), pr, in.Observed)
		if in.State.Stable != nil && !waitsForPods(in, m) {
			continue
		}
		since := pr.Entered
		if in.State.Phase == rollout.Promoting {
			since = promotedAt(in.State)
		}
		if n := m.fresh.Ready(); n > 0 && m.fresh.ReadySince[n-1].After(since) {
			since = m.fresh.ReadySince[n-1]
		}
		at := since.Add(time.Duration(spec.ProgressDeadlineSeconds) * time.Second)
		if first.at.IsZero() || at.Before(first.at) {
			first = deadline{spec: spec, at: at, problem: m.fresh.Problem, progress: pr}
		}
	}
	return first, !first.at.IsZero() && !in.Now.Before(first.at)
}

// waitsForPods is false for a workload that waits for people or the clock, be it a
// window or somebody's hold, or for the others of its release.
func waitsForPods(in Input, m moving) bool {
	s, ok := m.at(m.Step)
	w, pods := s.wait.(podsWait)
	switch {
	case ok && (!pods || w.verdict(in, m).done):
		return false
	case in.State.Phase == rollout.Promoting:
		return !m.live.Complete
	default:
		return !m.isThrough()
	}
}

// promotedAt is when the last workload of a release was through its steps.
func promotedAt(s rollout.State) time.Time {
	var at time.Time
	for _, p := range s.Progress {
		if p.Entered.After(at) {
			at = p.Entered
		}
	}
	if len(s.Progress) == 0 { // it overtook the way back from another one
		return s.Release.Since
	}
	return at
}
