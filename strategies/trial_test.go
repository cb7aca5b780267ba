package strategies_test

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// TestTrial checks that a trial measures and judges as the analysis of a release does.
func TestTrial(t *testing.T) {
	began := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	query := map[string]any{"query": "errors[{{elapsed}}s]"}
	t.Run("verdicts", func(t *testing.T) {
		trial := strategies.NewTrial("errors", []rollout.Metric{
			{Name: "once", Count: 1, Retention: 10, SuccessCondition: "result < 0.3"},
			{Name: "thrice", Interval: 10 * time.Second, InitialDelay: 5 * time.Second, Count: 3, Retention: 10, SuccessCondition: "result < 0.3"},
		}, strategies.Measure{}, began)
		var seen []string
		for now := began; !trial.Run.Phase.Done() && now.Before(began.Add(time.Hour)); {
			due, next := trial.Due(now)
			for _, m := range due {
				seen = append(seen, now.Sub(began).String()+" "+m.Metric.Name)
				trial.Take(m.Judge(strategies.Result{At: now, Value: 0.1, Samples: -1}))
			}
			if len(due) == 0 {
				now = next
			}
		}
		compare.Check(t, []string{"0s once", "5s thrice", "15s thrice", "25s thrice"}, seen)
		compare.Check(t, rollout.AnalysisSuccessful, trial.Run.Phase)
	})
	t.Run("evidence", func(t *testing.T) {
		m := rollout.Metric{Name: "a", Interval: 10 * time.Second, Config: query, Compare: &rollout.Compare{}, Retention: 10}
		of := strategies.Measure{Latest: "new", Stable: "old", Since: began, IsSteady: true}
		trial := strategies.NewTrial("errors", []rollout.Metric{m}, of, began)
		due, _ := trial.Due(began)
		trial.Take(due[0].Judge(strategies.Result{At: began.Add(time.Second), Value: []any{30.0, 100.0}, Stable: []any{0.0, 400.0}}))
		if p := trial.Run.Metrics[0]; p.Evidence == nil || p.Phase != rollout.AnalysisFailed {
			t.Errorf("30 of 100 failures against 0 of 400 are %+v", p)
		}
	})
	t.Run("missing requests", func(t *testing.T) {
		m := rollout.Metric{Name: "a", Interval: 10 * time.Second, Config: query, Compare: &rollout.Compare{}, Retention: 10}
		trial := strategies.NewTrial("errors", []rollout.Metric{m},
			strategies.Measure{Latest: "new", Stable: "old", Since: began, IsSteady: true}, began)
		var since []time.Duration
		for i, requests := range []float64{100, 40, 100} {
			due, _ := trial.Due(began.Add(time.Duration(i) * m.Interval))
			since = append(since, due[0].Since.Sub(began))
			trial.Take(due[0].Judge(strategies.Result{At: began.Add(time.Duration(i) * m.Interval), Value: []any{0.0, requests},
				Stable: []any{0.0, 400.0}}))
		}
		compare.Check(t, []time.Duration{0, 0, 10 * time.Second}, since)
	})
	t.Run("pods", func(t *testing.T) {
		lacks := func(of strategies.Measure, m rollout.Metric) bool {
			return strategies.NewTrial("x", []rollout.Metric{m}, of, began).LacksPods()
		}
		latest := rollout.Metric{Pods: map[string]string{"hash": "Latest"}}
		compare.Check(t, []bool{false, true, false, true, false}, []bool{
			lacks(strategies.Measure{}, rollout.Metric{}), lacks(strategies.Measure{}, latest), lacks(strategies.Measure{Latest: "a"}, latest),
			lacks(strategies.Measure{Latest: "a"}, rollout.Metric{Compare: &rollout.Compare{}}),
			lacks(strategies.Measure{Latest: "a", Stable: "b"}, rollout.Metric{Compare: &rollout.Compare{}}),
		})
	})
	t.Run("stopped", func(t *testing.T) {
		trial := strategies.NewTrial("errors", []rollout.Metric{{Name: "once", Count: 1}}, strategies.Measure{}, began)
		trial.Stop()
		due, next := trial.Due(began)
		if trial.Run.Phase != rollout.AnalysisStopped || len(due) > 0 || !next.IsZero() {
			t.Errorf("after its stop a trial is %s, and measures %d at %s", trial.Run.Phase, len(due), next)
		}
	})
}
