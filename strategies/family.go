package strategies

import (
	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// familyOf returns the family of a metric: all metrics of a release that compare versions and can fail the release.
func familyOf(all []workloads.Staged, m rollout.Metric) (f analysis.Family) {
	if m.Compare == nil || m.DryRun {
		return analysis.Alone(m)
	}
	for _, w := range all {
		for _, o := range w.Spec.Metrics() {
			if o.Compare != nil && !o.DryRun {
				f.Compared++
				if analysis.IsSequential(o) {
					f.Sequential++
				}
			}
		}
	}
	if f.Compared == 0 || f.Sequential == 0 && analysis.IsSequential(m) {
		return analysis.Alone(m) // the metric is not in the documents of the release
	}
	return f
}

// weighed adds a measurement to the evidence of a metric. It fails the measurement if the release's evidence suffices.
func weighed(in Input, runs []rollout.AnalysisRun, m rollout.Metric, got Measured) (rollout.Measurement, *rollout.Sequential) {
	f := familyOf(stagedIn(in), m)
	f.Others = float64(f.Sequential - 1) // metrics without a measurement have the evidence 1
	var before *rollout.Sequential
	for _, r := range runs {
		if r.Release != in.State.Release.Hash || r.Started.Before(in.State.Release.Since) {
			continue
		}
		for _, p := range r.Metrics {
			switch {
			case r.Name == got.Run && p.Metric == got.Metric:
				before = p.Evidence
			case p.Evidence != nil && !p.DryRun && !m.DryRun:
				f.Others += analysis.EvidenceOf(p.Evidence) - 1
			}
		}
	}
	return analysis.Weigh(m, before, got.Look, got.Since, got.Measurement, f)
}

// isSteady reports whether a workload is at a step that does not change the weight.
func isSteady(m workloads.Staged) bool {
	switch m.Stage().Wait.(type) {
	case plan.NoWait, plan.PodsWait:
		return false
	default:
		return true
	}
}
