package strategies_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// comparedMetric returns a comparison whose query covers the time since the present weight was reached.
func comparedMetric(name string) rollout.Metric {
	return rollout.Metric{Name: name, Interval: 10 * time.Second, Count: 60, MinSamples: 50, OnNoData: rollout.NoDataWait,
		Compare: &rollout.Compare{}, ConsecutiveErrorLimit: 4, Retention: 10,
		Config: map[string]any{"query": "increase(x[{{elapsed}}s])"}}
}

// TestKilledAtEveryLook runs releases with a process that is killed at each measurement, so that only the record survives. A release that
// is rejected without kills must be rejected with kills.
func TestKilledAtEveryLook(t *testing.T) {
	releases := uint64(60)
	if testing.Short() {
		releases = 6
	}
	start := newLab(t, comparedMetric("errors"))
	rejected := 0
	for i := range releases {
		kind := kindOf{20, [2]float64{0.03 + 0.0005*float64(i%20), 0.02}}
		phases := map[bool]rollout.AnalysisPhase{}
		for _, kill := range []bool{false, true} {
			w := &requests{rng: rand.New(rand.NewPCG(5, i)), kindOf: kind}
			l := *start
			phases[kill] = l.live(t, start.Now.Add(time.Hour), func(_ strategies.Measure, now time.Time) strategies.Result {
				if kill {
					l.crash(t)
				}
				w.ask(now)
				return w.compared()
			})
		}
		if phases[false] == rollout.AnalysisFailed {
			rejected++
			if phases[true] != rollout.AnalysisFailed {
				t.Errorf("release %d is %s with kills", i, phases[true])
			}
		}
	}
	if rejected < int(releases)/3 {
		t.Errorf("only %d of %d releases are rejected: the test shows little", rejected, releases)
	}
}

// TestMetricsShareTheLimit checks that the evidence of a release is the mean over all metrics that compare versions: a second metric
// without bad requests delays a rejection, but a metric with dryRun or without a comparison does not.
func TestMetricsShareTheLimit(t *testing.T) {
	dry := comparedMetric("dry")
	dry.DryRun = true
	when := func(others ...rollout.Metric) time.Duration {
		start := newLab(t, append([]rollout.Metric{comparedMetric("errors")}, others...)...)
		l, n := *start, 0
		phase := l.live(t, start.Now.Add(time.Hour), func(m strategies.Measure, now time.Time) strategies.Result {
			if m.Metric.Name != "errors" {
				return strategies.Result{Value: []any{0.0, 100.0 * float64(n)}, Stable: []any{0.0, 400.0 * float64(n)}, Samples: -1}
			}
			n++
			return strategies.Result{Value: []any{3.0 * float64(n), 100.0 * float64(n)}, Stable: []any{4.0 * float64(n), 400.0 * float64(n)},
				Samples: -1}
		})
		if phase != rollout.AnalysisFailed {
			t.Fatalf("the release is %s", phase)
		}
		return l.Now.Sub(start.Now)
	}
	alone, plain := when(), rollout.Metric{Name: "plain", Interval: 10 * time.Second, ConsecutiveErrorLimit: 4, Retention: 10}
	if got := when(comparedMetric("second"), comparedMetric("third")); got <= alone {
		t.Errorf("with three compared metrics the rejection comes after %s, with one after %s", got, alone)
	}
	for _, other := range []rollout.Metric{dry, plain} {
		if got := when(other); got != alone {
			t.Errorf("with the metric %s the rejection comes after %s, without it after %s", other.Name, got, alone)
		}
	}
}

// TestEvidenceNeedsASteadyWeight checks a background analysis. The evidence grows during each pause. A measurement while the weight changes
// adds no evidence.
func TestEvidenceNeedsASteadyWeight(t *testing.T) {
	background := &rollout.Analysis{Metrics: []rollout.Metric{comparedMetric("errors")}}
	m := newMeasuring(t, measuredWeb("default", background, weight(25), rollout.Step{Pause: &rollout.Pause{Duration: new(time.Minute)}},
		weight(50), rollout.Step{Pause: &rollout.Pause{}}))
	evidence, looks := map[int]float64{}, map[int]int{}
	for range 40 {
		m.rest()
		for _, due := range m.due() {
			in, step := m.input(m.state, m.settled), m.state.Progress[0].Step
			got := due.Judge(strategies.Result{At: m.kube.Now, Value: []any{2.0, 100.0}, Stable: []any{1.0, 300.0}, Samples: -1})
			before := strategies.Runs(in)[0].Metrics[0].Evidence.Value()
			moving := got
			moving.Since = time.Time{}
			if now := strategies.Record(in, moving)[0].Metrics[0].Evidence.Value(); now != before {
				t.Errorf("at step %d a look while the weight changes moves the evidence from %g to %g", step, before, now)
			}
			m.runs = strategies.Record(in, got)
			evidence[step], looks[step] = strategies.Runs(m.input(m.state, m.settled))[0].Metrics[0].Evidence.Value(), looks[step]+1
			if steady := due.IsSteady; steady != (step%2 == 1) {
				t.Errorf("at step %d the weight is steady: %t", step, steady)
			}
		}
		if next := m.nextDue(); next.After(m.kube.Now) {
			m.kube.Now = next
		}
	}
	if looks[1] < 2 || looks[3] < 2 || evidence[1] <= 1 || evidence[3] <= evidence[1] {
		t.Errorf("looks by step: %v, evidence: %v", looks, evidence)
	}
}

// TestMissingRequestsMoveTheWindow checks a server that lacks most requests in one answer: the next queries cover only the time since this
// answer, also after a kill. The release ends as successful.
func TestMissingRequestsMoveTheWindow(t *testing.T) {
	start := newLab(t, comparedMetric("errors"))
	l, looks := *start, 0
	var lost time.Time
	phase := l.live(t, start.Now.Add(time.Hour), func(m strategies.Measure, now time.Time) strategies.Result {
		if looks++; looks == 8 {
			l.crash(t)
		}
		if looks > 6 && !m.Since.Equal(lost) {
			t.Errorf("look %d begins at %s, want %s", looks, m.Since, lost)
		}
		n := now.Sub(m.Since).Seconds()
		got := strategies.Result{Value: []any{math.Floor(n / 5), 20 * n}, Stable: []any{math.Floor(4 * n / 5), 80 * n}, Samples: -1}
		if looks == 6 {
			lost, got.Value = now, []any{math.Floor(n / 5), 7 * n}
		}
		return got
	})
	if phase != rollout.AnalysisSuccessful || looks < 60 {
		t.Errorf("after %d looks the release is %s", looks, phase)
	}
}

// TestEvidenceIsSmall checks that the evidence of a compared metric takes at most 300 bytes of the record after any number of measurements.
func TestEvidenceIsSmall(t *testing.T) {
	m := comparedMetric("errors")
	m.Compare.MaxIncrease = 0.01
	run := analysis.Start("web/step-2", "h1-1", []rollout.Metric{m}, noon)
	var before *rollout.Sequential
	size := func() int {
		p := run.Metrics[0]
		p.Evidence = before
		text, err := yaml.Marshal(rollout.State{Analyses: []rollout.AnalysisRun{{Metrics: []rollout.MetricProgress{p}}}})
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	none := size()
	for i := range 2000 {
		n := float64(i + 1)
		got, look := analysis.JudgeComparison(m, analysis.Alone(m), rollout.MetricProgress{}, noon, []any{3 * n, 12345 * n},
			[]any{4 * n, 49381 * n}, noon.Add(time.Duration(i)*time.Second))
		_, before = analysis.Weigh(m, before, look, noon.Add(time.Duration(i/1000)*time.Hour), got, analysis.Alone(m))
		if grows := size() - none; grows > 300 {
			t.Fatalf("after %d looks the record is %d bytes larger", i+1, grows)
		}
	}
}
