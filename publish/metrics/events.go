package metrics

import (
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Outcome tells how a release ended, or why it is being rolled back.
type Outcome string

const (
	Promoted   Outcome = "promoted"   // the version is stable now
	Rejected   Outcome = "rejected"   // aborted by a user, by measurements or by its deadline
	Reverted   Outcome = "reverted"   // Git requested the stable version again
	Superseded Outcome = "superseded" // Git requested another version
)

// Outcomes lists all outcomes.
func Outcomes() []Outcome { return []Outcome{Promoted, Rejected, Reverted, Superseded} }

// On is a user's action for which an app waits.
type On string

const (
	OnPromotion On = "promotion" // open a step's gate
	OnRevert    On = "revert"    // revert Git to the stable version after a rejection
)

// Wait has the user's action for which an app waits, and the start of the wait. If the app waits for no user, Wait is
// zero.
type Wait struct {
	On    On
	Since time.Time
}

// WaitOf returns an app's Wait.
func WaitOf(in strategies.Input) Wait {
	s := in.State
	if strategies.Key(in) != nil {
		since := s.Release.Since
		for _, p := range s.Progress {
			since = rollout.Later(since, p.Entered)
		}
		return Wait{OnPromotion, since}
	}
	if s.Phase == rollout.Degraded && len(s.Rejected) > 0 {
		return Wait{OnRevert, s.Rejected[0].At}
	}
	return Wait{}
}

// Change has the effects of a transition. A duration is set only if the transition ends the measured period.
type Change struct {
	Phase    rollout.Phase // "" if no transition was recorded
	Started  bool
	Outcome  Outcome // set if a release ended or its rollback began
	Lead     *time.Duration
	Until    *time.Duration // from the release's start to its rejection
	Retreat  *time.Duration // from the rollback's start until all pods are stable
	Verdicts []rollout.AnalysisPhase
}

// Between returns the effects of a transition, given the hash of the newest version in Git.
func Between(before, after rollout.State, asked rollout.Hash, now time.Time) (c Change) {
	if after.Serial != before.Serial {
		c.Phase = after.Phase
	}
	c.Started = after.Release != nil && !before.Release.Same(after.Release)
	if was := before.Release; was != nil && before.Phase != rollout.Aborting {
		c.Outcome = outcome(before, after, asked)
		switch c.Outcome {
		case Promoted:
			c.Lead = span(was.Since, after.Stable.Since)
		case Rejected:
			if r, ok := after.IsRejected(was.Hash); ok {
				c.Until = span(was.Since, r.At)
			}
		}
	}
	if before.Watch != nil && after.Phase == rollout.Aborting { // the version was stable
		c.Started, c.Outcome, c.Until = false, Rejected, span(before.Watch.Began, now)
	}
	if before.Phase == rollout.Aborting && after.Phase != rollout.Aborting && before.Rollback != nil {
		c.Retreat = span(before.Rollback.Routed, now)
	}
	for _, run := range after.Analyses {
		wasDone := func(r rollout.AnalysisRun) bool { return r.Same(run) && r.Phase.Done() }
		if run.Phase.Done() && run.Phase != rollout.AnalysisStopped && !slices.ContainsFunc(before.Analyses, wasDone) {
			c.Verdicts = append(c.Verdicts, run.Phase)
		}
	}
	return c
}

func outcome(before, after rollout.State, asked rollout.Hash) Outcome {
	was := before.Release
	ended := !was.Same(after.Release)
	switch {
	case !ended && after.Phase != rollout.Aborting:
		return ""
	case ended && after.Stable != nil && after.Stable.Hash == was.Hash:
		return Promoted
	}
	// The release's start removed earlier rejections of its version, so this rejection is new.
	if _, ok := after.IsRejected(was.Hash); ok {
		return Rejected
	}
	if before.Stable != nil && asked == before.Stable.Hash {
		return Reverted
	}
	return Superseded
}

// span returns 0 for a negative duration, because times may be from different clocks.
func span(from, to time.Time) *time.Duration {
	d := max(to.Sub(from), 0)
	return &d
}
