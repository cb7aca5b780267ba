package strategies

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
)

// Measure is one measurement that is due.
type Measure struct {
	Run      string // the run's name
	Release  rollout.Hash
	Started  time.Time
	Metric   rollout.Metric
	Workload rollout.Workload
	Latest   string // pod-template-hash of the new version
	Stable   string
	Number   int // the metric's measurements so far without errors; identifies this one

	// For an experiment: templates.NAME.podTemplateHash and the like.
	Texts map[string]string
}

// Result is a provider's response.
type Result struct {
	At      time.Time
	Value   any                   // nil: no data
	Stable  any                   // the same of the stable version, where the metric compares
	Samples int                   // the samples behind Value; less than 0 if unknown
	Phase   rollout.AnalysisPhase // the verdict of a provider that judges itself, or Error
	Message string
}

// Measured is the result of a measurement.
type Measured struct {
	Run     string
	Release rollout.Hash
	Started time.Time
	Metric  string
	rollout.Measurement
}

// Judge evaluates a result against its metric. It runs with the measurement, as users' conditions may take a while.
func (m Measure) Judge(r Result) Measured {
	out := Measured{Run: m.Run, Release: m.Release, Started: m.Started, Metric: m.Metric.Name}
	before := rollout.MetricProgress{Count: m.Number}
	switch {
	case r.Phase != "":
		out.Measurement = rollout.Measurement{At: r.At, Phase: r.Phase}
	case m.Metric.Compare != nil:
		out.Measurement = analysis.JudgeComparison(m.Metric, before, m.Started, r.Value, r.Stable, r.At)
	default:
		out.Measurement = analysis.Judge(m.Metric, before, r.Value, r.Samples, r.At)
	}
	out.Message, out.Value = rollout.Printable(cmp.Or(r.Message, out.Message)), rollout.Printable(out.Value)
	out.At = rollout.Second(r.At)
	return out
}

// measureDue lists the due measurements, and requeues for the next one.
func measureDue(in Input, d Decision, wanted []runOf, runs []rollout.AnalysisRun) Decision {
	for _, w := range wanted {
		if w.exists && w.n == 0 && w.experiment == nil {
			continue // no pod serves: a measurement would show neither version
		}
		r := runs[slices.IndexFunc(runs, w.isRun)]
		for _, metric := range w.analysis.Metrics {
			at, ok := analysis.Due(r, metric)
			if !ok {
				continue
			}
			if at.After(in.Now) {
				d.Requeue = rollout.Soonest(d.Requeue, at)
				continue
			}
			so, _ := rollout.Find(r.Metrics, func(p rollout.MetricProgress) bool { return p.Metric == metric.Name })
			due := Measure{
				Run: w.name, Release: r.Release, Started: r.Started, Metric: metric, Number: so.Count,
				Workload: w.Workload, Latest: w.fresh.Pin.Value, Stable: w.stable.Pin.Value,
			}
			if w.experiment != nil && !due.about(in, w) || due.lacksPods() {
				continue // its ReplicaSets do not exist yet, or any more
			}
			d.Measure = append(d.Measure, due)
		}
	}
	return d
}

// Due returns the due measurements of the recorded analyses, whatever is decided.
func Due(in Input) []Measure {
	in = in.prepared()
	in.State = reopened(in.State)
	return withAnalyses(in, Decision{State: in.State}).Measure
}

// lacksPods reports whether a measurement needs pods of a version that has none.
func (m Measure) lacksPods() bool {
	return asksAbout(m.Metric, "Latest") && m.Latest == "" ||
		asksAbout(m.Metric, "Stable") && m.Stable == ""
}

// asksAbout reports whether a metric compares versions or has one's pod-template-hash (Latest, Stable) as argument.
func asksAbout(m rollout.Metric, version string) bool {
	return m.Compare != nil || slices.Contains(slices.Collect(maps.Values(m.Pods)), version)
}

// Record adds a measurement to an app's live runs, except of a finished run or of another release.
func Record(in Input, got Measured) []rollout.AnalysisRun {
	in = in.prepared()
	runs := Runs(in)
	if in.State.Release == nil {
		return runs
	}
	wanted := wantedRuns(in.State, workloads(in))
	for i, r := range runs {
		if r.Name != got.Run || r.Release != got.Release || !r.Started.Equal(got.Started) {
			continue
		}
		for _, w := range wanted {
			at := slices.IndexFunc(w.analysis.Metrics, func(m rollout.Metric) bool { return m.Name == got.Metric })
			if !w.isRun(r) || at < 0 {
				continue
			}
			runs[i] = analysis.Record(r, w.analysis.Metrics[at], got.Measurement)
		}
	}
	return runs
}
