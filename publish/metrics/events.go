package metrics

import (
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Outcome says how a release ended, or that it has begun to go back.
type Outcome string

// The outcomes.
const (
	Promoted   Outcome = "promoted"   // it serves: it is the stable version now
	Rejected   Outcome = "rejected"   // aborted by people, by measurements or by its deadline
	Reverted   Outcome = "reverted"   // Git went back to what was stable while it was in flight
	Superseded Outcome = "superseded" // Git asks for yet another version
)

// Outcomes lists all outcomes.
func Outcomes() []Outcome { return []Outcome{Promoted, Rejected, Reverted, Superseded} }

// On says what people are waited for.
type On string

// What people are waited for.
const (
	OnPromotion On = "promotion" // to open the gate of a step
	OnRevert    On = "revert"    // to make Git agree with what serves, after a rejection
)

// Wait is that somebody is waited for, since when; the zero value if nobody is.
type Wait struct {
	On    On
	Since time.Time
}

// WaitOf says whom an app waits for. The moment is the record's own.
func WaitOf(in strategies.Input) Wait {
	s := in.State
	if _, shut := strategies.Gate(in); shut {
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

// Change is what one transition means for the numbers. A duration is nil where nothing ended.
type Change struct {
	Phase    rollout.Phase // entered, or gone on in; "" if no transition of a release was recorded
	Started  bool          // a release began
	Outcome  Outcome       // of a release that ended or began to go back; "" if none did
	Lead     *time.Duration
	Until    *time.Duration // from the start of a rejected release to the decision to go back
	Retreat  *time.Duration // from that decision until all pods were stable again
	Verdicts []rollout.AnalysisPhase
}

// Between says what happened from one record of an app to the next. Asked is the version that Git asks for now.
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
	if before.Phase == rollout.Aborting && after.Phase != rollout.Aborting && before.Retreat != nil {
		c.Retreat = span(before.Retreat.Routed, now)
	}
	for _, run := range after.Analyses {
		if run.Phase.Done() && run.Phase != rollout.AnalysisStopped && !wasDone(before, run) {
			c.Verdicts = append(c.Verdicts, run.Phase)
		}
	}
	return c
}

// outcome is of the release that was in flight before, "" while it still is.
func outcome(before, after rollout.State, asked rollout.Hash) Outcome {
	was := before.Release
	ended := !was.Same(after.Release)
	switch {
	case !ended && after.Phase != rollout.Aborting:
		return ""
	case ended && after.Stable != nil && after.Stable.Hash == was.Hash:
		return Promoted
	}
	// A hash that was rejected before and is tried again is on the list no more while it is in flight.
	if _, ok := after.IsRejected(was.Hash); ok {
		return Rejected
	}
	if before.Stable != nil && asked == before.Stable.Hash {
		return Reverted
	}
	return Superseded
}

func wasDone(s rollout.State, run rollout.AnalysisRun) bool {
	return slices.ContainsFunc(s.Analyses, func(r rollout.AnalysisRun) bool { return r.Same(run) && r.Phase.Done() })
}

// span is never negative: the clock of another machine may have been ahead.
func span(from, to time.Time) *time.Duration {
	d := max(to.Sub(from), 0)
	return &d
}
