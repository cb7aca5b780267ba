package strategies_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// The texts for metrics without detection figures.
const (
	noWindow = "the query has no {{elapsed}}, so the sequential test is off; write [{{elapsed}}s] as the window"
	noLimit  = "there are no figures with failureLimit -1"
	noSplit  = "there are no figures: the experiment does not say how requests are split between the compared versions"
)

// TestDetections checks which analyses of a release have detections. The text of a detection has the step, the new version's share of the
// requests to both versions, the number of measurements, the request rate, and stable's share of bad requests.
func TestDetections(t *testing.T) {
	of := func(metrics ...rollout.Metric) *rollout.Analysis { return &rollout.Analysis{Metrics: metrics} }
	endless := comparedMetric("errors")
	endless.Count = 0
	changed := func(change func(*rollout.Metric)) rollout.Metric {
		m := comparedMetric("errors")
		m.Compare = &rollout.Compare{}
		change(&m)
		return m
	}
	step := func(a *rollout.Analysis) rollout.Step { return rollout.Step{Analysis: a} }
	soak := rollout.Step{Pause: &rollout.Pause{Duration: new(10 * time.Minute)}}
	evidence := &rollout.Sequential{Since: noon, Canary: 1190, Stable: 4761, Tests: []rollout.Test{{Canary: 90, Stable: 95}}}
	record := func(run string) []rollout.AnalysisRun {
		return []rollout.AnalysisRun{{Name: run, Metrics: []rollout.MetricProgress{{Metric: "errors",
			Evidence: evidence, Measurements: []rollout.Measurement{{At: noon.Add(500 * time.Second)}}}}}}
	}
	latencies := record("web/step-2")
	latencies[0].Metrics[0].Evidence = &rollout.Sequential{Since: noon, Canary: 1190, Stable: 4761,
		Tests: []rollout.Test{{Bound: 0.1, Stable: 2000}, {Bound: 0.5, Stable: 400}, {Bound: 1, Stable: 38}}}
	tries := func(canary, stable int, change func(*rollout.Experiment), m rollout.Metric) func(*rollout.Spec, *strategies.Planned) {
		return func(s *rollout.Spec, _ *strategies.Planned) {
			e := &rollout.Experiment{Duration: new(30 * time.Minute),
				Templates: []rollout.ExperimentTemplate{{SpecRef: rollout.SpecStable, Weight: stable, Replicas: 3},
					{SpecRef: rollout.SpecCanary, Weight: canary, Replicas: 1}},
				Analyses: []rollout.ExperimentAnalysis{{Name: "errors", Analysis: of(m)}}}
			if change != nil {
				change(e)
			}
			s.Canary.Steps[1] = rollout.Step{Experiment: e}
		}
	}
	at := func(text string) []string {
		return []string{text + " 1/s 0.01", text + " 10/s 0.01", text + " 100/s 0.01"}
	}
	for name, c := range map[string]struct {
		change func(*rollout.Spec, *strategies.Planned)
		record []rollout.AnalysisRun
		want   []string
	}{
		"a step": {func(s *rollout.Spec, _ *strategies.Planned) { s.Canary.Steps[1] = step(of(comparedMetric("errors"))) }, nil,
			at("step 2 20% 60 in 10m")},
		"two steps": {func(s *rollout.Spec, _ *strategies.Planned) {
			s.Canary.Steps = []rollout.Step{weight(20), step(of(comparedMetric("errors"))), weight(50), step(of(comparedMetric("errors")))}
		}, record("web/step-2"), []string{"step 2 20% 60 in 10m 12/s 0.02", "step 4 50% 60 in 10m 12/s 0.02"}},
		"consecutive successes": {func(s *rollout.Spec, _ *strategies.Planned) {
			s.Canary.Steps[1] = step(of(changed(func(m *rollout.Metric) { m.ConsecutiveSuccessLimit = 6 })))
		}, record("web@shop/background"), []string{"step 2 20% 6 in 1m 12/s 0.02"}},
		"a single look after a delay": {func(s *rollout.Spec, _ *strategies.Planned) {
			s.Canary.Steps[1] = step(of(changed(func(m *rollout.Metric) { m.Count, m.Interval, m.InitialDelay = 1, 0, 5*time.Minute })))
		}, nil, at("step 2 20% 1 in 5m")},
		"the record of another workload": {func(s *rollout.Spec, _ *strategies.Planned) {
			s.Canary.Steps[1] = step(of(comparedMetric("errors")))
		}, record("webhook/step-2"), at("step 2 20% 60 in 10m")},
		"a window of the release": {func(s *rollout.Spec, _ *strategies.Planned) {
			s.Canary.Steps[1] = step(of(changed(func(m *rollout.Metric) { m.Config = map[string]any{"query": "{{release.elapsed}}"} })))
		}, record("web/step-2"), at("step 2 20% 60 in 10m")},
		"the background, at the smallest weight that stays": {func(s *rollout.Spec, _ *strategies.Planned) {
			s.Canary.Steps = []rollout.Step{weight(0), aPause, weight(20), soak, weight(50), aPause}
			s.Canary.Analysis = of(endless)
		}, nil, at("step 4 20% 60 in 10m")},
		"the background from a later step, whose length is unknown": {func(s *rollout.Spec, _ *strategies.Planned) {
			s.Canary.Steps = []rollout.Step{weight(20), soak, weight(50), aPause}
			s.Canary.Analysis = of(endless)
			s.Canary.Analysis.StartingStep = 2
		}, nil, at("step 4 50% 360 in 1h")},
		"a router": {func(s *rollout.Spec, _ *strategies.Planned) {
			s.Scaling, s.Canary.Traffic = rollout.Surge, &rollout.Traffic{MaxWeight: 1000, Routers: []rollout.Router{httpRoute("web")}}
			s.Canary.StableService, s.Canary.CanaryService = "web", "web-canary"
			s.Canary.Steps[1] = step(of(comparedMetric("errors")))
		}, nil, at("step 2 2% 60 in 10m")},
		"a fixed window": {func(s *rollout.Spec, _ *strategies.Planned) {
			s.Canary.Steps[1] = step(of(changed(func(m *rollout.Metric) { m.Config = nil })))
		}, nil, []string{"step 2 20% " + noWindow}},
		"latencies and users": {func(s *rollout.Spec, _ *strategies.Planned) {
			s.Canary.Steps[1] = step(of(changed(func(m *rollout.Metric) { m.Compare.Histogram = true }),
				changed(func(m *rollout.Metric) { m.Compare.By = "user" })))
		}, nil, slices.Concat(at("step 2 20% latency 60 in 10m"), at("step 2 20% by user 60 in 10m"))},
		"recorded latencies": {func(s *rollout.Spec, _ *strategies.Planned) {
			s.Canary.Steps[1] = step(of(changed(func(m *rollout.Metric) { m.Compare.Histogram = true })))
		}, latencies, []string{"step 2 20% latency 60 in 10m 12/s 0.0081"}},
		"no comparison that can fail": {func(s *rollout.Spec, _ *strategies.Planned) {
			s.Canary.Steps[1] = step(of(changed(func(m *rollout.Metric) { m.FailureLimit = -1 }),
				changed(func(m *rollout.Metric) { m.Compare = nil })))
		}, nil, []string{"step 2 20% " + noLimit}},
		"an experiment with weights": {tries(5, 10, nil, endless), record("web/step-2"), at("step 2 33% /step-2/errors 180 in 30m")},
		"an experiment with weights and its record": {tries(5, 5, nil, endless), record("web/step-2/errors"),
			[]string{"step 2 50% /step-2/errors 180 in 30m 12/s 0.02"}},
		"an experiment with a load generator": {tries(0, 0, nil, comparedMetric("errors")), nil,
			at("step 2 25% /step-2/errors 60 in 10m")},
		"an experiment of users and a load generator": {tries(5, 0, nil, endless), nil, []string{"step 2 0% /step-2/errors " + noSplit}},
		"an experiment without stable": {tries(5, 5, func(e *rollout.Experiment) { e.Templates = e.Templates[1:] }, endless), nil,
			[]string{"step 2 0% /step-2/errors " + noSplit}},
		"an experiment that its analyses end": {tries(5, 5, func(e *rollout.Experiment) {
			e.Duration, e.Analyses[0].Required = new(time.Minute), true
		}, comparedMetric("errors")), nil, at("step 2 50% /step-2/errors 60 in 10m")},
		"a verified version": {func(s *rollout.Spec, p *strategies.Planned) { s.Canary.Analysis, p.Fast = of(endless), true }, nil, nil},
		"a first version":    {func(s *rollout.Spec, p *strategies.Planned) { s.Canary.Analysis, p.First = of(endless), true }, nil, nil},
		"no weight that stays": {func(s *rollout.Spec, _ *strategies.Planned) {
			s.Canary.Steps, s.Canary.Analysis = s.Canary.Steps[:1], of(endless)
		}, nil, nil},
		"a blue-green switch": {func(s *rollout.Spec, _ *strategies.Planned) {
			s.Canary, s.Scaling = nil, rollout.Surge
			s.BlueGreen = &rollout.BlueGreen{ActiveService: "web", PrePromotion: of(comparedMetric("a")),
				PostPromotion: of(comparedMetric("b"))}
		}, nil, nil},
	} {
		spec := oneWeb(nil).head().workloads[0].spec
		p := strategies.Planned{Replicas: 10, Now: noon}
		c.change(&spec, &p)
		p.Spec = spec
		var got []string
		for _, s := range strategies.Detections([]rollout.Spec{spec}, p, c.record) {
			if window := analysis.WindowOf(append(s.Setting().Metrics, rollout.Metric{})[0]); s.Fix == "" &&
				(window == analysis.WindowRelease) != (name == "a window of the release") {
				t.Errorf("%s: the window is %d", name, window)
			}
			text := fmt.Sprintf("step %d %.2g%% ", s.Step, 100*s.Weight)
			switch {
			case strings.Count(s.Run, "/") > 1:
				text += s.Run + " "
			case s.Histogram:
				text += "latency "
			case s.By != "":
				text += "by " + s.By + " "
			}
			if s.Fix != "" {
				text += s.Fix
			} else {
				text += fmt.Sprintf("%d in %s %g/s %g", s.Looks, s.Over, s.Rate, s.Stable)
			}
			got = append(got, text)
		}
		compare.CheckNamed(t, name, c.want, got)
	}
}

// TestDetectionsWithoutTheWatch checks that the metrics of a watch, which has its own alpha, change no detection of the release.
func TestDetectionsWithoutTheWatch(t *testing.T) {
	families := func(watch *rollout.Analysis) (all []analysis.Family) {
		spec := oneWeb(func(s *rollout.Spec) {
			s.Canary.Steps[1] = rollout.Step{Analysis: &rollout.Analysis{Metrics: []rollout.Metric{comparedMetric("errors")}}}
			s.Canary.Watch = watch
		}).head().workloads[0].spec
		for _, d := range strategies.Detections([]rollout.Spec{spec}, strategies.Planned{Spec: spec, Replicas: 10, Now: noon}, nil) {
			all = append(all, d.Setting().Family)
		}
		return all
	}
	watched := comparedMetric("after")
	watched.Compare = &rollout.Compare{Before: true}
	compare.Check(t, families(nil), families(&rollout.Analysis{Metrics: []rollout.Metric{watched}, For: time.Hour}))
}

// TestDetectionText checks the sentence about a metric, and that equal settings of two metrics are simulated once.
func TestDetectionText(t *testing.T) {
	compared := &rollout.Analysis{Metrics: []rollout.Metric{comparedMetric("errors"), comparedMetric("other")}}
	spec := oneWeb(func(s *rollout.Spec) { s.Canary.Steps[1] = rollout.Step{Analysis: compared} }).head().workloads[0].spec
	all := strategies.Detections([]rollout.Spec{spec}, strategies.Planned{Spec: spec, Replicas: 10}, nil)
	known := strategies.Known{}
	known.Fill(all)
	if len(all) != 6 || len(known) != 3 {
		t.Fatalf("%d detections of %d settings", len(all), len(known))
	}
	for i, s := range all[:3] {
		if o := all[i+3]; s.Found != o.Found || s.After != o.After || s.Blind != o.Blind {
			t.Errorf("equal settings have the figures %+v and %+v", s, o)
		}
		if s.Found <= s.Blind || s.Blind <= s.Stable || i > 0 && s.Found >= all[i-1].Found {
			t.Errorf("%+v: more requests show smaller differences", s)
		}
	}
	shown := strategies.Detection{
		Workload: web, Metric: "errors", Step: 2, Weight: 0.2, Looks: 10, Over: "5m", Rate: 100, Stable: 0.02, Found: 0.024,
		After: "4m12s", Blind: 0.022,
	}
	compare.CheckNamed(t, "a difference", "errors of web at step 2 (20% of requests, 10 looks in 5m): "+
		"sees 2% → 2.4% in 9 of 10 releases after 4m12s at 100 req/s; nothing below +0.2 points", shown.Text())
	shown.Found, shown.Looks, shown.Blind = 0, 1, 0.42
	compare.CheckNamed(t, "no difference", "errors of web at step 2 (20% of requests, 1 look in 5m): "+
		"sees no difference from 2% in 9 of 10 releases at 100 req/s; nothing below +40 points", shown.Text())
	shown.Found, shown.Looks, shown.Blind, shown.By = 0.024, 10, 0.022, "user"
	compare.CheckNamed(t, "of users", "errors of web at step 2 (20% of distinct values of user, 10 looks in 5m): "+
		"sees 2% → 2.4% in 9 of 10 releases after 4m12s at 100 new values/s; nothing below +0.2 points", shown.Text())
	shown.By, shown.Histogram = "", true
	compare.CheckNamed(t, "of latencies", "errors of web at step 2 (20% of requests, 10 looks in 5m): sees 2% → 2.4% above the bound near "+
		"stable's 99th percentile in 9 of 10 releases after 4m12s at 100 req/s; nothing below +0.2 points", shown.Text())
	shown.Fix = noWindow
	compare.CheckNamed(t, "a fixed window", "errors of web at step 2: "+noWindow, shown.Text())
}
