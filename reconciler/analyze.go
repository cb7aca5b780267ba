package reconciler

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// takeMeasurements adds to what is known of an app's analyses what has been
// measured since the last pass. Only what a restart must not forget becomes part
// of the state, with the decision that follows.
func (r *Reconciler) takeMeasurements(s *step) {
	if r.Analyzer == nil {
		return
	}
	s.input.Runs = s.app.runs
	for _, got := range r.Analyzer.Measured(s.app.Name) {
		s.input.Runs = strategies.Record(s.input, got)
	}
	s.app.runs = s.input.Runs
}

// measure begins what is due of the analyses that Git has on record. A run that
// is not recorded yet may start another time.
func (r *Reconciler) measure(s *step) {
	if r.Analyzer == nil || s.app.state.Phase == rollout.Aborting {
		return
	}
	due := slices.DeleteFunc(slices.Clone(s.decision.Measure), func(m strategies.Measure) bool {
		return !slices.ContainsFunc(s.app.state.Analyses, func(run rollout.AnalysisRun) bool {
			return run.Same(rollout.AnalysisRun{Name: m.Run, Release: m.Release, Started: m.Started})
		})
	})
	if len(due) > 0 {
		r.Analyzer.Measure(s.app.App, due)
	}
}
