package status_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/status"
)

// tested returns the record of a sequential test with the given evidence, after 1240 canary and 4960 stable requests.
func tested(value float64, metrics int, tests ...rollout.Test) *rollout.Sequential {
	for i := range tests {
		for r := range tests[i].Logs {
			tests[i].Logs[r] = math.Log(value)
		}
	}
	return &rollout.Sequential{Canary: 1240, Stable: 4960, Tests: tests, Limit: 1999.9999999999982, Metrics: metrics}
}

// TestEvidence checks a metric's evidence as JSON: the number, its share of the limit, the differences and the note. It
// also checks that any record becomes JSON and is equal after it was read again.
func TestEvidence(t *testing.T) {
	const window = "sum(increase(errors[{{elapsed}}s]))"
	compared := func(query string) rollout.Metric {
		return rollout.Metric{Name: "errors", Compare: &rollout.Compare{}, Config: map[string]any{"query": query}}
	}
	pending := func(why string) []rollout.Measurement {
		return []rollout.Measurement{{Phase: rollout.AnalysisPending, Message: why}}
	}
	successful := []rollout.Measurement{{Phase: rollout.AnalysisSuccessful, Value: "0 of 9 (0%), stable 0 of 9 (0%)"}}
	const requests = `"requests":{"canary":1240,"stable":4960}`
	const same = `"differences":[{"difference":0,"low":-0.0007739,"high":0.003088}]`
	for name, c := range map[string]struct {
		of   rollout.MetricProgress
		spec rollout.Metric
		want string
	}{
		"a test": {rollout.MetricProgress{Evidence: tested(41, 1, rollout.Test{Canary: 8, Stable: 17}), Measurements: successful},
			compared(window), `{"value":41,"release":41,"limit":2000,"share":0.4886,` + requests +
				`,"differences":[{"difference":0.003024,"low":-0.0007611,"high":0.009383}]}`},
		"no failed request": {rollout.MetricProgress{Evidence: tested(0.9, 1, rollout.Test{}), Measurements: successful}, compared(window),
			`{"value":0.9,"release":0.9,"limit":2000,` + requests + `,` + same + `}`},
		"the limit is reached": {rollout.MetricProgress{Evidence: tested(2000, 1, rollout.Test{}), Measurements: successful}, compared(window),
			`{"value":2000,"release":2000,"limit":2000,"share":1,` + requests + `,` + same + `}`},
		"infinite": {rollout.MetricProgress{Evidence: tested(math.Inf(1), 1, rollout.Test{}), Measurements: successful}, compared(window),
			`{"value":1e+99,"release":1e+99,"limit":2000,"share":1,` + requests + `,` + same + `}`},
		"none": {rollout.MetricProgress{Evidence: tested(0, 1, rollout.Test{}), Measurements: successful}, compared(window),
			`{"value":1e-99,"release":1e-99,"limit":2000,` + requests + `,` + same + `}`},
		"bounds of a histogram": {rollout.MetricProgress{Evidence: tested(1, 1, rollout.Test{Bound: 0.1}, rollout.Test{Bound: 0.25}),
			Measurements: successful}, compared(window), `{"value":1,"release":1,"limit":2000,` + requests +
			`,"differences":[{"bound":0.1,"difference":0,"low":-0.0007739,"high":0.003088},` +
			`{"bound":0.25,"difference":0,"low":-0.0007739,"high":0.003088}]}`},
		"metrics that share the limit": {rollout.MetricProgress{Evidence: tested(41, 3, rollout.Test{}), Measurements: successful},
			compared(window), `{"value":41,"release":14.33,"limit":2000,"share":0.3503,` + requests + `,` + same + `}`},
		"a dry run": {rollout.MetricProgress{Evidence: tested(41, 3, rollout.Test{}), Measurements: successful, DryRun: true},
			compared(window), `{"value":41,"release":41,"limit":2000,"share":0.4886,` + requests + `,` + same + `}`},
		"few requests": {rollout.MetricProgress{Evidence: tested(41, 1, rollout.Test{}), Measurements: pending("fewer than 50 requests")},
			compared(window), `{"value":41,"release":41,"limit":2000,"share":0.4886,` + requests + `,` + same +
				`,"note":"not enough data: fewer than 50 requests"}`},
		"no requests": {rollout.MetricProgress{Evidence: &rollout.Sequential{Limit: 1, Tests: make([]rollout.Test, 1)},
			Measurements: pending("no data")}, compared(window), `{"value":1,"release":1,"limit":1,` +
			`"differences":[{"difference":0,"low":-1,"high":1}],"note":"not enough data: no data"}`},
		"no measurement": {rollout.MetricProgress{}, compared(window),
			`{"value":1,"release":1,"limit":2000,"note":"not enough data: no measurement at a steady weight"}`},
		"a moving weight": {rollout.MetricProgress{Measurements: successful}, compared(window),
			`{"value":1,"release":1,"limit":2000,"note":"not enough data: no measurement at a steady weight"}`},
		"a fixed window": {rollout.MetricProgress{Measurements: successful}, compared("sum(increase(errors[1m]))"), `null`},
		"a fixed window without data": {rollout.MetricProgress{Measurements: pending("no data")}, compared("sum(increase(errors[1m]))"),
			`{"note":"not enough data: no data"}`},
		"no comparison": {rollout.MetricProgress{Measurements: pending("no data")}, rollout.Metric{Name: "errors"}, `null`},
		"a metric that is no longer in Git": {rollout.MetricProgress{Evidence: tested(1, 1, rollout.Test{}), Measurements: successful},
			rollout.Metric{}, `{"value":1,"release":1,"limit":2000,` + requests + `,` + same + `}`},
	} {
		c.of.Metric = "errors"
		runs := []rollout.AnalysisRun{{Name: "web/step-2", Release: "h1-2", Metrics: []rollout.MetricProgress{c.of}}}
		all := status.Analyses(runs, []rollout.Metric{{Name: "errors"}, c.spec})
		data, err := json.Marshal(all[0].Metrics[0].Evidence)
		compare.CheckNamed(t, name, nil, err)
		compare.CheckNamed(t, name, c.want, string(data))
		data, err = json.Marshal(all)
		compare.CheckNamed(t, name, nil, err)
		var again []status.Analysis
		compare.CheckNamed(t, name, nil, json.Unmarshal(data, &again))
		compare.CheckNamed(t, name+", read again", all, again)
	}
}

// TestDifferencesInWords checks that a narrow interval has more decimal places than a wide interval.
func TestDifferencesInWords(t *testing.T) {
	for want, d := range map[string]status.Difference{
		"+31 points (−5 to +71)":                          {Difference: 0.31, Low: -0.05, High: 0.71},
		"+0.31 points (−0.05 to +0.71)":                   {Difference: 0.0031, Low: -0.0005, High: 0.0071},
		"above 0.25: +0.0031 points (−0.0005 to +0.0071)": {Bound: 0.25, Difference: 3.1e-5, Low: -5e-6, High: 7.1e-5},
		"+0.0000 points (+0.0000 to +0.0000)":             {},
	} {
		compare.Check(t, want, d.String())
	}
}

// TestSeen checks the texts about the differences that a release's comparisons can find. The request rate is from the run itself or from
// another run. If no run has counted requests, three rates are assumed. Equal rates are simulated once. After the release, its runs have no
// such texts.
func TestSeen(t *testing.T) {
	metric := rollout.Metric{Name: "errors", Interval: time.Minute, Count: 5, Compare: &rollout.Compare{},
		Config: map[string]any{"query": "sum(increase(errors[{{elapsed}}s]))"}}
	fixed := metric
	fixed.Config = map[string]any{"query": "sum(increase(errors[1m]))"}
	run := func(name string, requests int) rollout.AnalysisRun {
		p := rollout.MetricProgress{Metric: "errors", Measurements: []rollout.Measurement{{At: minute(5)}}}
		if requests > 0 {
			p.Evidence = &rollout.Sequential{Since: minute(1), Canary: requests / 5, Stable: requests / 5 * 4, Tests: []rollout.Test{{Stable: 48}}}
		}
		return rollout.AnalysisRun{Name: name, Metrics: []rollout.MetricProgress{p, {Metric: "other"}}}
	}
	const slow, own, assumed = " at 10 req/s; ", " at 20 req/s; ", " at 1 req/s; | at 10 req/s; | at 100 req/s; "
	ended := func(in *strategies.Input) { in.State = in.State.AtRest(rollout.Healthy, "") }
	for name, c := range map[string]struct {
		runs   []rollout.AnalysisRun
		change func(*strategies.Input)
		want   []string // of each run
	}{
		"own requests":         {[]rollout.AnalysisRun{run("web/step-2", 4800)}, nil, []string{own}},
		"another namespace":    {[]rollout.AnalysisRun{run("web@shop/step-2", 4800)}, nil, []string{own}},
		"each run":             {[]rollout.AnalysisRun{run("web/background", 2400), run("web/step-2", 4800)}, nil, []string{slow, own}},
		"requests on record":   {[]rollout.AnalysisRun{run("web/step-2", 4800), run("web/background", 0)}, nil, []string{own, own}},
		"no requests":          {[]rollout.AnalysisRun{run("web/step-2", 0)}, nil, []string{assumed}},
		"another workload":     {[]rollout.AnalysisRun{run("webhook/step-2", 4800)}, nil, []string{""}},
		"a step without a run": {[]rollout.AnalysisRun{run("web/step-4", 4800)}, nil, []string{""}},
		"after the release":    {[]rollout.AnalysisRun{run("web/step-2", 4800)}, ended, []string{""}},
		"a fixed window": {[]rollout.AnalysisRun{run("web/step-2", 4800)}, func(in *strategies.Input) {
			in.Head.Render.Specs[0].Canary.Steps[1].Analysis.Metrics[0] = fixed
		}, []string{"no {{elapsed}}"}},
	} {
		in := paused()
		canary := in.Head.Render.Specs[0].Canary
		canary.Steps[1] = rollout.Step{Analysis: &rollout.Analysis{Metrics: []rollout.Metric{metric}}}
		canary.Analysis = &rollout.Analysis{Metrics: []rollout.Metric{metric}}
		in.State.Analyses = c.runs
		if c.change != nil {
			c.change(&in)
		}
		known, of := strategies.Known{}, status.Of(in, "prod", nil)
		seen := of.Seen(known)
		n := len(known)
		compare.CheckNamed(t, name+", again", seen, of.Seen(known))
		compare.CheckNamed(t, name+", settings", n, len(known))
		for i, want := range c.want {
			sees := seen.Analyses[i].Metrics[0].Sees
			for _, part := range strings.Split(want, "|") {
				compare.Contains(t, name+": "+strings.Join(sees, "\n"), part)
			}
			if lines := strings.Count(want, "|") + 1; want != "" && len(sees) != lines || want == "" && len(sees) > 0 {
				t.Errorf("%s: %q", name, sees)
			}
			compare.CheckNamed(t, name+", a metric without a comparison", 0, len(seen.Analyses[i].Metrics[1].Sees))
		}
	}
}
