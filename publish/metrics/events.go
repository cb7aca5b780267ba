package metrics

import (
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Outcome is a release's end, or why it began to roll back.
type Outcome string

// The outcomes.
const (
	Promoted   Outcome = "promoted"   // it is the stable version now
	Rejected   Outcome = "rejected"   // aborted by users, by measurements or by its deadline
	Reverted   Outcome = "reverted"   // Git returned to the stable version during the release
	Superseded Outcome = "superseded" // Git requests another version
)

// Outcomes lists all outcomes.
func Outcomes() []Outcome { return []Outcome{Promoted, Rejected, Reverted, Superseded} }

// On is the user action that an app waits for.
type On string

// The user actions.
const (
	OnPromotion On = "promotion" // to open the gate of a step
	OnRevert    On = "revert"    // to make Git agree with the serving version, after a rejection
)

// Wait is an app's wait for a user action, since its start; zero: none.
type Wait struct {
	On    On
	Since time.Time
}

// WaitOf returns an app's wait, with its start by the state.
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

// Change is a transition's effect on the metrics. A duration is nil if nothing ended.
type Change struct {
	Phase    rollout.Phase // afterwards; "" if no transition was recorded
	Started  bool          // a release began
	Outcome  Outcome       // of a release that ended or began to roll back; "" if none did
	Lead     *time.Duration
	Until    *time.Duration // from the start of a rejected release to its rejection
	Retreat  *time.Duration // from the rollback of traffic until all pods were stable again
	Verdicts []rollout.AnalysisPhase
}

// Between returns the effect of a transition between two recorded states; asked is Git's version.
func Between(before, after rollout.State, asked rollout.Hash, now time.Time) Change {
	var c Change
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

// outcome returns the outcome of before's release, "" in flight.
func outcome(before, after rollout.State, asked rollout.Hash) Outcome {
	was := before.Release
	ended := !was.Same(after.Release)
	switch {
	case !ended && after.Phase != rollout.Aborting:
		return ""
	case ended && after.Stable != nil && after.Stable.Hash == was.Hash:
		return Promoted
	}
	// A retried hash is no rejection while in flight.
	if _, ok := after.IsRejected(was.Hash); ok {
		return Rejected
	}
	if before.Stable != nil && asked == before.Stable.Hash {
		return Reverted
	}
	return Superseded
}

// span returns a duration of at least 0: another machine's clock may have been ahead.
func span(from, to time.Time) *time.Duration {
	d := max(to.Sub(from), 0)
	return &d
}
