package strategies

import (
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
)

// Trial is an analysis outside a release, such as a replay.
type Trial struct {
	Metrics []rollout.Metric
	Run     rollout.AnalysisRun
	Of      Measure // versions and times of the next measurements
}

// NewTrial returns a trial that begins now.
func NewTrial(name string, metrics []rollout.Metric, of Measure, now time.Time) *Trial {
	run := analysis.Start(name, of.Release, metrics, now)
	of.Run, of.Started = run.Name, run.Started
	return &Trial{Metrics: metrics, Run: run, Of: of}
}

// Due returns the due measurements, and the time of the next one, or zero.
func (t *Trial) Due(now time.Time) (due []Measure, next time.Time) {
	for i, metric := range t.Metrics {
		at, ok := analysis.Due(t.Run, metric, now)
		switch {
		case !ok:
		case at.After(now):
			next = rollout.Soonest(next, at)
		default:
			due = append(due, t.Of.of(t.Run.Metrics[i], metric, familyOf(t.Metrics, metric), now))
		}
	}
	return due, next
}

// Take records a measurement.
func (t *Trial) Take(got Measured) {
	i := slices.IndexFunc(t.Metrics, func(m rollout.Metric) bool { return m.Name == got.Metric })
	m := t.Metrics[i]
	measurement, evidence := weighed(familyOf(t.Metrics, m), []rollout.AnalysisRun{t.Run}, m, got)
	t.Run = analysis.Record(t.Run, m, measurement, evidence)
}

// Stop ends the trial.
func (t *Trial) Stop() { t.Run = analysis.Stop(t.Run) }

// LacksPods reports whether a metric needs a version whose pods are unknown.
func (t *Trial) LacksPods() bool {
	return slices.ContainsFunc(t.Metrics, func(m rollout.Metric) bool {
		return t.Of.of(rollout.MetricProgress{}, m, analysis.Family{}, time.Time{}).lacksPods()
	})
}

func (m Measure) lacksPods() bool {
	return asksAbout(m.Metric, "Latest") && m.Latest == "" ||
		asksAbout(m.Metric, "Stable") && m.Stable == ""
}

func asksAbout(m rollout.Metric, version string) bool {
	return m.Compare != nil || slices.Contains(slices.Collect(maps.Values(m.Pods)), version)
}
