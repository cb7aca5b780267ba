package strategies

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// Detection is the difference that a compared metric finds at one rate of requests. Shares are 0..1.
type Detection struct {
	Workload rollout.Workload `json:"workload"`
	Metric   string           `json:"metric"`
	Step     int              `json:"step"`             // from 1 on
	Fix      string           `json:"fix,omitempty"`    // set for a metric without a sequential test, which has no figures
	Weight   float64          `json:"weight"`           // the new version's share of all requests
	Looks    int              `json:"looks,omitempty"`  // number of measurements
	Over     string           `json:"over,omitempty"`   // the duration of all measurements, such as 5m
	Rate     float64          `json:"rate,omitempty"`   // requests per second to both versions
	Stable   float64          `json:"stable,omitempty"` // stable's share of bad requests
	Found    float64          `json:"found,omitempty"`  // see analysis.Detection
	After    string           `json:"after,omitempty"`  // a duration, such as 4m12s
	Blind    float64          `json:"blind,omitempty"`
	Run      string           `json:"-"` // suffix of the run's name, such as /step-2
	setting  analysis.Setting
}

const noWindow = "the query has no {{elapsed}}, so the sequential test is off; write [{{elapsed}}s] as the window"

// Detections returns a release's compared metrics, without figures. specs has all specs of the app, and runs the
// recorded analyses. Metrics of experiments, histograms and metrics with "by" are not listed.
func Detections(specs []rollout.Spec, in Planned, runs []rollout.AnalysisRun) (all []Detection) {
	if in.Fast || in.First || len(slices.DeleteFunc(in.Spec.ReleaseMetrics(), isUndetected)) == 0 {
		return nil
	}
	p, f := plan.Compile(in.Spec), Predict(in)
	metrics := slices.Concat(rollout.Mapped(specs, rollout.Spec.ReleaseMetrics)...)
	add := func(a *rollout.Analysis, step int, run string) {
		for _, m := range slices.DeleteFunc(slices.Clone(a.Metrics), isUndetected) {
			one := Detection{Workload: in.Spec.Workload, Metric: m.Name, Step: step + 1, Weight: f.share(step), Run: run}
			if one.Weight > 0 && one.Weight < 1 {
				all = append(all, one.at(m, familyOf(metrics, m), f.Stages[step].AtLeast, runs)...)
			}
		}
	}
	least := -1 // the background analysis' first step with the smallest weight
	for i, stage := range p.Stages[:p.Passed] {
		if w, is := stage.Wait.(plan.AnalysisWait); is {
			add(w.Analysis, i, runName(workloads.Staged{Compiled: p, Progress: rollout.Progress{Step: i}}))
		}
		isSteady := f.Stages[i].Wait != "" && f.Stages[i].Wait != WaitPods
		if a := p.Background; a != nil && i >= a.StartingStep && isSteady && f.share(i) > 0 &&
			(least < 0 || f.share(i) < f.share(least)) {
			least = i
		}
	}
	if least >= 0 {
		add(p.Background, least, backgroundRun)
	}
	return all
}

func isUndetected(m rollout.Metric) bool {
	return m.Compare == nil || m.Compare.Histogram || m.Compare.By != "" || m.FailureLimit < 0
}

func (f Forecast) share(stage int) float64 {
	s := f.Stages[stage]
	if n := s.Canary + s.Stable; !f.Routed && f.Strategy == plan.StrategyCanary && n > 0 {
		return float64(s.Canary) / float64(n)
	}
	return float64(s.Weight) / float64(f.Full)
}

// at returns s for each assumed rate, or for the recorded rate. The length is the step's least duration; 0: unknown.
func (s Detection) at(
	m rollout.Metric, f analysis.Family, length time.Duration, runs []rollout.AnalysisRun,
) (all []Detection) {
	if !analysis.IsSequential(m) {
		s.Fix = noWindow
		return []Detection{s}
	}
	window := map[bool]string{true: "{{release.elapsed}}", false: "{{elapsed}}"}
	// Without other fields, equal settings of different metrics are equal.
	plain := rollout.Metric{Interval: m.Interval, InitialDelay: m.InitialDelay, Count: measurements(m),
		MinSamples: m.MinSamples, FailureLimit: m.FailureLimit, Compare: m.Compare,
		Config: map[string]any{"query": window[analysis.WindowOf(m) == analysis.WindowRelease]}}
	if plain.Interval == 0 {
		plain.Interval, plain.InitialDelay = cmp.Or(m.InitialDelay, time.Second), 0
	}
	if plain.Count == 0 {
		plain.Count = max(1, int(cmp.Or(length, time.Hour)/plain.Interval))
	}
	s.Looks = plain.Count
	s.Over = rollout.ShortSpan(plain.InitialDelay + time.Duration(plain.Count)*plain.Interval)
	rates, stable := trafficOf(runs, s.Workload, m)
	for _, rate := range rates {
		s.Rate, s.Stable = rate, stable
		s.setting = analysis.Setting{Metrics: []rollout.Metric{plain}, Family: f, Stable: stable, Weight: s.Weight,
			Rate: rate * s.Weight}
		all = append(all, s)
	}
	return all
}

func measurements(m rollout.Metric) int {
	if k := m.ConsecutiveSuccessLimit; k > 0 && (m.Count == 0 || k < m.Count) {
		return k
	}
	return m.Count
}

// trafficOf returns the rate of requests and stable's share of bad requests in a metric's newest evidence, or assumed
// numbers. Both have two digits, so that a Known helps while the evidence grows.
func trafficOf(runs []rollout.AnalysisRun, w rollout.Workload, m rollout.Metric) (rates []float64, stable float64) {
	rates, stable = []float64{1, 10, 100}, 0.01
	if analysis.WindowOf(m) != analysis.WindowWeight {
		return rates, stable
	}
	for _, r := range runs {
		name, _, _ := strings.Cut(r.Name, "/")
		p, measured := rollout.Find(r.Metrics, func(p rollout.MetricProgress) bool { return p.Metric == m.Name })
		last, _ := p.Last()
		isOwn := name == w.Name || name == w.Name+"@"+w.Namespace
		if e := p.Evidence; measured && isOwn && e != nil && len(e.Tests) == 1 {
			rate := float64(e.Canary+e.Stable) / last.At.Sub(e.Since).Seconds()
			if bad := float64(e.Tests[0].Stable) + 0.5; rate > 0 && !math.IsInf(rate, 0) { // 0.5: none is not never
				rates, stable = []float64{rounded(rate, 2)}, rounded(bad/float64(e.Stable+1), 2)
			}
		}
	}
	return rates, stable
}

func rounded(v float64, digits int) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	return v
}

// Known has the figures of settings, so that equal settings are simulated once.
type Known map[string]analysis.Detection

// Fill sets the detections' figures, in about 0.1 s per new setting.
func (k Known) Fill(all []Detection) {
	for i := range all {
		if s := &all[i]; s.Fix == "" {
			key, _ := json.Marshal(s.setting) // finite numbers always encode
			if _, is := k[string(key)]; !is {
				k[string(key)] = analysis.DetectionOf(s.setting)
			}
			got := k[string(key)]
			s.Found, s.Blind = rounded(got.Found, 3), rounded(got.Blind, 3)
			s.After = rollout.ShortSpan(got.After.Round(time.Second))
		}
	}
}

// Text returns a sentence about s. Fill must precede it.
func (s Detection) Text() string {
	text := fmt.Sprintf("%s of %s at step %d", s.Metric, s.Workload.Name, s.Step)
	if s.Fix != "" {
		return text + ": " + s.Fix
	}
	seen := fmt.Sprintf("%.3g%% → %.3g%% in 9 of 10 releases after %s", 100*s.Stable, 100*s.Found, s.After)
	if s.Found == 0 {
		seen = fmt.Sprintf("no difference from %.3g%% in 9 of 10 releases", 100*s.Stable)
	}
	return fmt.Sprintf("%s (%.3g%% of requests, %s in %s): sees %s at %g req/s; nothing below +%.2g points",
		text, 100*s.Weight, rollout.Count(s.Looks, "look"), s.Over, seen, s.Rate, 100*(s.Blind-s.Stable))
}
