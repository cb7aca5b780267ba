package strategies

import (
	"cmp"
	"slices"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// rivals returns the metrics that share the significance level (alpha): all metrics of the release, or of the watch.
func rivals(in Input, w runOf, wanted []runOf) (metrics []rollout.Metric) {
	for _, m := range stagedIn(in) {
		if w.before.IsZero() {
			metrics = append(metrics, m.Spec.ReleaseMetrics()...)
		}
	}
	for _, o := range wanted {
		if !w.before.IsZero() && !o.before.IsZero() {
			metrics = append(metrics, o.analysis.Metrics...)
		}
	}
	return metrics
}

func relatives(in Input, runs []rollout.AnalysisRun, w runOf) []rollout.AnalysisRun {
	release := cmp.Or(in.State.Release, in.State.Stable)
	return slices.DeleteFunc(slices.Clone(runs), func(r rollout.AnalysisRun) bool {
		isOther := w.before.IsZero() && r.Started.Before(release.Since) && !release.Since.After(in.Now)
		return isOther || r.Release != release.Hash || r.IsWatch() == w.before.IsZero()
	})
}

func familyOf(all []rollout.Metric, m rollout.Metric) analysis.Family {
	f := analysis.FamilyOf(all)
	if m.Compare == nil || m.DryRun || f.Compared == 0 || f.Sequential == 0 && analysis.IsSequential(m) {
		return analysis.Alone(m) // not compared, a dry run, or not in the release's documents
	}
	return f
}

// weighed adds a measurement to the evidence. It fails the metric if the evidence of all runs reaches the limit.
func weighed(
	f analysis.Family, runs []rollout.AnalysisRun, m rollout.Metric, got Measured,
) (rollout.Measurement, *rollout.Sequential) {
	f.Others = float64(f.Sequential - 1) // metrics without a measurement have the evidence 1
	var before *rollout.Sequential
	for _, r := range runs {
		for _, p := range r.Metrics {
			switch {
			case r.Name == got.Run && p.Metric == got.Metric:
				before = p.Evidence
			case p.Evidence != nil && !p.DryRun && !m.DryRun:
				f.Others += p.Evidence.Value() - 1
			}
		}
	}
	return analysis.Weigh(m, before, got.Look, got.Since, got.Measurement, f)
}

func isSteady(m workloads.Staged) bool {
	switch m.Stage().Wait.(type) {
	case plan.NoWait, plan.PodsWait:
		return false
	default:
		return true
	}
}
