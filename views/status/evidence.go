package status

import (
	"cmp"
	"math"
	"strconv"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Analysis is an analysis run with the evidence of its comparisons.
type Analysis struct {
	rollout.AnalysisRun
	Metrics []Progress `json:"metrics"`
}

// Progress is a metric's progress, with its evidence in place of the record of the sequential test.
type Progress struct {
	rollout.MetricProgress
	Evidence *Evidence `json:"evidence,omitempty"`
}

// Evidence says how likely the new version is worse than stable. Without a sequential test, it has only the Note.
type Evidence struct {
	Value   float64 `json:"value,omitzero"`   // of the metric; 1 before the first look
	Release float64 `json:"release,omitzero"` // the mean of all metrics that share the limit, if there are several
	Limit   float64 `json:"limit,omitzero"`   // the release fails when Release, or else Value, reaches this limit
	Share   float64 `json:"share,omitzero"`   // the logarithm of Release or Value by the logarithm of Limit, within 0..1

	Requests    Requests     `json:"requests,omitzero"`
	Differences []Difference `json:"differences,omitempty"` // one, or one for each bound of a histogram
	Note        string       `json:"note,omitempty"`        // why the data is not enough
}

// Requests has the numbers of requests to both versions at the present weight.
type Requests struct {
	Canary int `json:"canary"`
	Stable int `json:"stable"`
}

// Difference is the new version's share of bad requests minus stable's share, with the 95 % interval Low to High.
type Difference struct {
	Bound      float64 `json:"bound,omitzero"` // in a histogram, slower requests are bad
	Difference float64 `json:"difference"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
}

// String returns, for example, "+0.31 points (−0.05 to +0.71)". The interval's width decides the decimal places.
func (d Difference) String() string {
	places := int(min(max(1-math.Floor(math.Log10(100*(d.High-d.Low))), 0), 4))
	points := func(v float64) string {
		text := strconv.FormatFloat(math.Abs(100*v), 'f', places, 64)
		return map[bool]string{true: "−", false: "+"}[v < 0] + text
	}
	text := points(d.Difference) + " points (" + points(d.Low) + " to " + points(d.High) + ")"
	if d.Bound != 0 {
		text = "above " + strconv.FormatFloat(d.Bound, 'g', -1, 64) + ": " + text
	}
	return text
}

// Text returns, for example, "41 of 2,000".
func (e Evidence) Text() string {
	mean := e.Value
	if e.Release != 0 {
		mean = e.Release
	}
	return rollout.EvidenceText(e.Value, mean, e.Limit)
}

// Analyses returns runs with their evidence. The parameter metrics has the known definitions of their metrics.
func Analyses(runs []rollout.AnalysisRun, metrics []rollout.Metric) (all []Analysis) {
	for _, r := range runs {
		a := Analysis{AnalysisRun: r}
		for _, p := range r.Metrics {
			m, _ := rollout.Find(metrics, func(m rollout.Metric) bool { return m.Name == p.Metric && m.Compare != nil })
			e := evidenceOf(p, m)
			if e != nil && p.Evidence != nil && p.Evidence.Metrics > 1 && !p.DryRun {
				e.Release = rounded(rollout.MeanEvidence(runs, r.Release, p))
				e.Share = shareOf(e.Release, e.Limit)
			}
			p.Evidence = nil
			a.Metrics = append(a.Metrics, Progress{p, e})
		}
		a.AnalysisRun.Metrics = nil
		all = append(all, a)
	}
	return all
}

// definedIn returns the metrics of all analyses in an app's documents.
func definedIn(in strategies.Input) (all []rollout.Metric) {
	if source := cmp.Or(in.Source, in.Head.Render); source != nil {
		for _, spec := range source.Specs {
			all = append(all, spec.Metrics()...)
		}
	}
	return all
}

// evidenceOf returns a metric's evidence, or nil for a metric that compares no versions.
func evidenceOf(p rollout.MetricProgress, m rollout.Metric) *Evidence {
	s, note := p.Evidence, ""
	switch last, measured := p.Last(); {
	case !measured:
		note = "no measurement"
	case last.Phase == rollout.AnalysisPending:
		note = cmp.Or(last.Message, "no data")
	case s == nil && analysis.IsSequential(m):
		note = "no measurement at a steady weight"
	}
	if s == nil && analysis.IsSequential(m) {
		s = &rollout.Sequential{Limit: analysis.Limit(m)}
	}
	if s == nil && (m.Compare == nil || note == "") {
		return nil
	}
	e := &Evidence{}
	if note != "" {
		e.Note = "not enough data: " + note
	}
	if s == nil {
		return e
	}
	e.Value, e.Limit, e.Requests = max(rounded(s.Value()), 1e-99), rounded(s.Limit), Requests{s.Canary, s.Stable}
	e.Share = shareOf(e.Value, e.Limit)
	for _, t := range s.Tests {
		if s.Canary > 0 && s.Stable > 0 {
			estimate, low, high := analysis.Difference(t.Canary, s.Canary, t.Stable, s.Stable)
			e.Differences = append(e.Differences, Difference{t.Bound, rounded(estimate), rounded(low), rounded(high)})
		}
	}
	return e
}

// shareOf returns the logarithm of a value by the logarithm of its limit, within 0..1. It is 1 only from the limit on.
func shareOf(value, limit float64) float64 {
	switch {
	case value >= limit:
		return 1
	case value <= 1:
		return 0
	}
	return math.Floor(1000*math.Log(value)/math.Log(limit)) / 1000
}

// rounded keeps four digits, so that JSON can hold the number and an app changes seldom. Evidence grows without a bound.
func rounded(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(min(v, 1e99), 'g', 4, 64), 64)
	return v
}
