package status

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Analysis is an analysis run with the evidence of its comparisons.
type Analysis struct {
	rollout.AnalysisRun
	Metrics   []Progress             `json:"metrics"`
	detection []strategies.Detection // without the numbers
}

// Progress is a metric's progress, with evidence in place of the sequential test.
type Progress struct {
	rollout.MetricProgress
	Evidence *Evidence `json:"evidence,omitempty"`
	Sees     []string  `json:"sees,omitempty"` // the differences that a comparison detects; see Seeing
}

// Evidence tells how strongly the requests speak against the new version. Without a sequential test, only Note is set.
type Evidence struct {
	Value    float64 `json:"value,omitzero"`   // 1 before the first comparison
	Release  float64 `json:"release,omitzero"` // mean Value of the metrics that share Limit
	Limit    float64 `json:"limit,omitzero"`   // if Release reaches Limit, the release fails
	Share    float64 `json:"share,omitzero"`   // log(Release) / log(Limit), within 0..1
	Requests struct {
		Canary int `json:"canary"`
		Stable int `json:"stable"`
	} `json:"requests,omitzero"` // at the present weight
	Differences []Difference `json:"differences,omitempty"` // one difference or, for a histogram, one for each bound
	Note        string       `json:"note,omitempty"`        // why the data is not enough
}

// Difference is the new version's share of bad requests minus stable's, with the 95 % interval Low to High.
type Difference struct {
	Bound      float64 `json:"bound,omitzero"` // in a histogram, requests slower than Bound are bad
	Difference float64 `json:"difference"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
}

// String returns "+0.31 points (−0.05 to +0.71)" or similar. The interval's width decides the number of decimals.
func (d Difference) String() (text string) {
	places := int(min(max(1-math.Floor(math.Log10(50*(d.High-d.Low))), 0), 4))
	if d.Bound != 0 {
		text = fmt.Sprintf("above %g: ", d.Bound)
	}
	text += fmt.Sprintf("%+.*f points (%+.*f to %+.*f)", places, 100*d.Difference, places, 100*d.Low, places, 100*d.High)
	return strings.ReplaceAll(text, "-", "−")
}

// Analyses returns runs with evidence, which needs the metrics' definitions.
func Analyses(runs []rollout.AnalysisRun, metrics []rollout.Metric) (all []Analysis) {
	for _, r := range runs {
		a := Analysis{AnalysisRun: r}
		for _, p := range r.Metrics {
			m, _ := rollout.Find(metrics, func(m rollout.Metric) bool { return m.Name == p.Metric && m.Compare != nil })
			e := evidenceOf(p, m, rollout.MeanEvidence(runs, r, p))
			p.Evidence = nil
			a.Metrics = append(a.Metrics, Progress{MetricProgress: p, Evidence: e})
		}
		a.AnalysisRun.Metrics = nil
		all = append(all, a)
	}
	return all
}

// analysesOf returns a release's runs, with the differences that comparisons detect. The differences depend on the
// traffic in the run or, if the run measured none, in the release's other runs.
func analysesOf(in strategies.Input, specs []rollout.Spec, workloads []Workload) []Analysis {
	runs := strategies.Runs(in)
	all := Analyses(runs, slices.Concat(rollout.Mapped(specs, rollout.Spec.Metrics)...))
	if in.State.Release == nil {
		return all
	}
	for _, spec := range specs {
		of := spec.Workload
		w, _ := rollout.Find(workloads, func(w Workload) bool { return w.Workload == of.String() })
		p := strategies.Planned{Spec: spec, Replicas: w.Replicas}
		p.Fast, p.First = in.State.Release.Fast, in.State.Stable == nil
		for i, r := range runs {
			for _, s := range strategies.Detections(specs, p, append(slices.Clip(runs), r)) {
				if r.Name == of.Name+s.Run || r.Name == of.Name+"@"+of.Namespace+s.Run {
					all[i].detection = append(all[i].detection, s)
				}
			}
		}
	}
	return all
}

// Seeing returns a function that sets Progress.Sees in the runs of a release in flight. The first call for a comparison
// takes about 0.1 s.
func Seeing() func(App) App {
	known := strategies.Known{}
	return func(a App) App { return a.seen(known) }
}

func (a App) seen(known strategies.Known) App {
	if len(known) > 1000 { // about 1 MB
		clear(known)
	}
	a.Analyses = slices.Clone(a.Analyses)
	for i, r := range a.Analyses {
		all := slices.Clone(r.detection)
		known.Fill(all)
		a.Analyses[i].Metrics = rollout.Mapped(r.Metrics, func(m Progress) Progress {
			for _, s := range all {
				if s.Metric == m.Metric {
					m.Sees = append(m.Sees, s.Text())
				}
			}
			return m
		})
	}
	return a
}

func evidenceOf(p rollout.MetricProgress, m rollout.Metric, mean float64) *Evidence {
	e, s := &Evidence{}, p.Evidence
	if last, _ := p.Last(); last.Phase == rollout.AnalysisPending {
		e.Note = "not enough data: " + last.Message
	}
	switch {
	case s == nil && analysis.IsSequential(m):
		s = &rollout.Sequential{Limit: analysis.Limit(m)}
		e.Note = cmp.Or(e.Note, "not enough data: no measurement at a steady weight")
	case s == nil && (m.Compare == nil || e.Note == ""):
		return nil
	case s == nil:
		return e
	}
	e.Value, e.Release, e.Limit = rounded(max(s.Value(), 1e-99)), rounded(max(mean, 1e-99)), rounded(s.Limit)
	e.Share = rounded(min(math.Log(max(e.Release, 1))/math.Log(max(e.Limit, 2)), 1))
	e.Requests.Canary, e.Requests.Stable = s.Canary, s.Stable
	for _, t := range s.Tests {
		estimate, low, high := analysis.Difference(t.Canary, s.Canary, t.Stable, s.Stable)
		e.Differences = append(e.Differences, Difference{t.Bound, rounded(estimate), rounded(low), rounded(high)})
	}
	return e
}

// rounded keeps four digits, so that an app's data changes rarely. It also limits infinite evidence, which JSON cannot
// represent.
func rounded(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(min(v, 1e99), 'g', 4, 64), 64)
	return v
}
