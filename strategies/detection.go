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

// Detection says which difference a compared metric finds at one rate of requests. Shares are 0..1.
type Detection struct {
	Workload  rollout.Workload `json:"workload"`
	Metric    string           `json:"metric"`
	Step      int              `json:"step"`                // counted from 1
	Fix       string           `json:"fix,omitempty"`       // why there are no figures
	By        string           `json:"by,omitempty"`        // a label; its distinct values count in place of requests
	Histogram bool             `json:"histogram,omitempty"` // requests above approximately stable's p99 latency are bad
	Weight    float64          `json:"weight"`              // the new version's share of the requests to both versions
	Looks     int              `json:"looks,omitempty"`     // number of measurements
	Over      string           `json:"over,omitempty"`      // the duration of all measurements, such as 5m
	Rate      float64          `json:"rate,omitempty"`      // requests per second to both versions
	Stable    float64          `json:"stable,omitempty"`    // stable's share of bad requests
	Found     float64          `json:"found,omitempty"`     // see analysis.Detection
	After     string           `json:"after,omitempty"`     // median time to reject a version with the share Found
	Blind     float64          `json:"blind,omitempty"`
	Run       string           `json:"-"` // suffix of the run's name, such as /step-2
	setting   analysis.Setting
}

const (
	noWindow = "the query has no {{elapsed}}, so the sequential test is off; write [{{elapsed}}s] as the window"
	noLimit  = "there are no figures with failureLimit -1"
	noSplit  = "there are no figures: the experiment does not say how requests are split between the compared versions"
)

// Detections returns a Detection for each compared metric of a release. Known.Fill adds the figures. The parameter
// specs has all specs of the app.
func Detections(specs []rollout.Spec, in Planned, runs []rollout.AnalysisRun) (all []Detection) {
	isCompared := func(m rollout.Metric) bool { return m.Compare != nil }
	if in.Fast || in.First || !slices.ContainsFunc(in.Spec.ReleaseMetrics(), isCompared) {
		return nil
	}
	p, f := plan.Compile(in.Spec), Predict(in)
	family := slices.Concat(rollout.Mapped(specs, rollout.Spec.ReleaseMetrics)...)
	add := func(one Detection, metrics []rollout.Metric, length time.Duration) {
		for _, m := range metrics {
			if one.Metric = m.Name; isCompared(m) && (one.Fix != "" || one.Weight > 0 && one.Weight < 1) {
				all = append(all, one.at(m, familyOf(family, m), length, runs)...)
			}
		}
	}
	var least Detection // the background analysis at the step with the smallest weight
	for i, stage := range p.Stages[:p.Passed] {
		at := f.Stages[i]
		one := Detection{Workload: in.Spec.Workload, Step: i + 1, Weight: f.share(i)}
		if a := p.Background; a != nil && i >= a.StartingStep && at.Wait != "" && at.Wait != WaitPods && one.Weight > 0 &&
			(least.Step == 0 || one.Weight < least.Weight) {
			least = one
		}
		one.Run = runName(workloads.Staged{Compiled: p, Progress: rollout.Progress{Step: i}})
		switch w := stage.Wait.(type) {
		case plan.AnalysisWait:
			add(one, w.Metrics, 0)
		case plan.ExperimentWait:
			one.Weight, one.Fix = split(w.Experiment)
			for _, a := range w.Analyses {
				of, length := one, time.Duration(0)
				if of.Run += "/" + a.Name; w.Duration != nil && !a.Required {
					length = *w.Duration
				}
				add(of, a.Metrics, length)
			}
		}
	}
	if least.Step > 0 {
		least.Run = backgroundRun
		add(least, p.Background.Metrics, f.Stages[least.Step-1].AtLeast)
	}
	return all
}

func split(e *rollout.Experiment) (share float64, unknown string) {
	canary, _ := e.RunsOn(rollout.SpecCanary)
	stable, _ := e.RunsOn(rollout.SpecStable)
	c, s := canary.Weight, stable.Weight
	if c+s == 0 { // without weights, all pods get equally many requests
		c, s = canary.Replicas, stable.Replicas
	}
	if c == 0 || s == 0 {
		return 0, noSplit
	}
	return float64(c) / float64(c+s), ""
}

func (f Forecast) share(stage int) float64 {
	s := f.Stages[stage]
	if n := s.Canary + s.Stable; !f.Routed && f.Strategy == plan.StrategyCanary && n > 0 {
		return float64(s.Canary) / float64(n)
	}
	return float64(s.Weight) / float64(f.Full)
}

func (s Detection) at(
	m rollout.Metric, f analysis.Family, length time.Duration, runs []rollout.AnalysisRun,
) (all []Detection) {
	s.Fix = cmp.Or(s.Fix, map[bool]string{true: noLimit}[m.FailureLimit < 0],
		map[bool]string{false: noWindow}[analysis.IsSequential(m)])
	if s.Fix != "" {
		return []Detection{s}
	}
	s.setting = analysis.SettingOf(m, f, length)
	plain := s.setting.Metrics[0]
	s.Looks = plain.Count
	s.Over = rollout.ShortSpan(plain.InitialDelay + time.Duration(plain.Count)*plain.Interval)
	s.By, s.Histogram = m.Compare.By, m.Compare.Histogram
	rates, stable := s.traffic(runs, m)
	for _, rate := range rates {
		s.Rate, s.Stable = rate, stable
		s.setting.Stable, s.setting.Weight, s.setting.Rate = stable, s.Weight, rate*s.Weight
		all = append(all, s)
	}
	return all
}

// traffic returns rates of requests and stable's share of bad requests. Without evidence, both are assumptions.
// Measured values have two digits, so that growing evidence rarely causes new simulations.
func (s Detection) traffic(runs []rollout.AnalysisRun, m rollout.Metric) (rates []float64, stable float64) {
	rates, stable = []float64{1, 10, 100}, 0.01
	for _, r := range runs {
		name, _, _ := strings.Cut(r.Name, "/")
		p, measured := rollout.Find(r.Metrics, func(p rollout.MetricProgress) bool { return p.Metric == m.Name })
		e, isTried := p.Evidence, max(strings.Count(r.Name, "/"), strings.Count(s.Run, "/")) > 1 // an experiment's run
		if name != s.Workload.Name && name != s.Workload.Name+"@"+s.Workload.Namespace || !measured || e == nil ||
			len(e.Tests) == 0 || isTried && !strings.HasSuffix(r.Name, s.Run) ||
			analysis.WindowOf(m) != analysis.WindowWeight {
			continue
		}
		last, _ := p.Last()
		rate, bad := float64(e.Canary+e.Stable)/last.At.Sub(e.Since).Seconds(), e.Tests[len(e.Tests)-1].Stable
		if rate > 0 && !math.IsInf(rate, 0) {
			rates = []float64{rounded(rate, 2)}
			stable = rounded((float64(bad)+0.5)/float64(e.Stable+1), 2) // 0.5 keeps the share above 0
		}
	}
	return rates, stable
}

func rounded(v float64, digits int) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	return v
}

// Known caches figures by setting.
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

// Text returns a sentence about s. Call Fill first.
func (s Detection) Text() string {
	text := fmt.Sprintf("%s of %s at step %d", s.Metric, s.Workload.Name, s.Step)
	if s.Fix != "" {
		return text + ": " + s.Fix
	}
	unit, per := "requests", "req"
	if s.By != "" {
		unit, per = "distinct values of "+s.By, "new values"
	}
	above := map[bool]string{true: " above the bound near stable's 99th percentile"}[s.Histogram]
	seen := fmt.Sprintf("%.3g%% → %.3g%%%s in 9 of 10 releases after %s", 100*s.Stable, 100*s.Found, above, s.After)
	if s.Found == 0 {
		seen = fmt.Sprintf("no difference from %.3g%%%s in 9 of 10 releases", 100*s.Stable, above)
	}
	return fmt.Sprintf("%s (%.3g%% of %s, %s in %s): sees %s at %g %s/s; nothing below +%.2g points", text, 100*s.Weight,
		unit, rollout.Count(s.Looks, "look"), s.Over, seen, s.Rate, per, 100*(s.Blind-s.Stable))
}
