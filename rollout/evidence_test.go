package rollout_test

import (
	"math"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestEvidence checks the line about each metric: its verdict, condition, newest values, and the evidence of a comparison. With several
// metrics, the line also has the release's mean evidence. A watch has its own mean.
func TestEvidence(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 1, 2, 8, 1, s, 0, time.UTC) }
	runs := []rollout.AnalysisRun{{Name: "web/step-2", Phase: rollout.AnalysisFailed, Metrics: []rollout.MetricProgress{
		{Metric: "error-rate", Phase: rollout.AnalysisFailed, Condition: "successCondition: result < 0.01", Message: "3 failed, at most 2 may",
			Successful: 1, Failed: 3,
			Measurements: []rollout.Measurement{{At: at(5), Value: "0.002"}, {At: at(15), Value: "0.2"}, {At: at(25), Value: "0.19"},
				{At: at(35), Value: "0.21"}}},
		{Metric: "latency", Phase: rollout.AnalysisRunning, DryRun: true, Errors: 2,
			Measurements: []rollout.Measurement{{At: at(5), Message: "no answer"}}},
		{Metric: "load", Phase: rollout.AnalysisPending},
	}}, {Name: "web/background",
		Metrics: []rollout.MetricProgress{{Metric: "errors", Phase: rollout.AnalysisSuccessful, Successful: 7, Message: "is not needed"}}},
		{Name: "alone", Release: "h1-1", Metrics: []rollout.MetricProgress{{Metric: "errors", Evidence: tested(41, 1)}}},
		{Name: "shared", Release: "h1-2", Metrics: []rollout.MetricProgress{{Metric: "errors", Evidence: tested(41, 3)},
			{Metric: "latency", Evidence: tested(0.001, 3)}, {Metric: "dry", DryRun: true, Evidence: tested(2e30, 1)}}},
		{Name: "web/watch", Release: "h1-2", Metrics: []rollout.MetricProgress{{Metric: "errors", Evidence: tested(2.5, 3)}}}}
	want := []string{
		"web/step-2 error-rate: Failed, 1 ok, 3 failed; successCondition: result < 0.01; 3 failed, at most 2 may; 0.002, 0.2, 0.19, " +
			"0.21 from 08:01:05 to 08:01:35 UTC",
		"web/step-2 latency (dry run): Running, 2 errors",
		"web/step-2 load: Pending",
		"web/background errors: Successful, 7 ok",
		"alone errors: ; evidence 41 of 2,000",
		"shared errors: ; evidence 41, release 14 of 2,000",
		"shared latency: ; evidence <0.01, release 14 of 2,000",
		"shared dry (dry run): ; evidence >1e12 of 2,000",
		"web/watch errors: ; evidence 2.5, release 1.5 of 2,000",
	}
	compare.Check(t, want, rollout.Evidence(runs))
}

// tested returns the record of a sequential test with the given evidence.
func tested(value float64, metrics int) *rollout.Sequential {
	var test rollout.Test
	for i := range test.Logs {
		test.Logs[i] = math.Log(value)
	}
	return &rollout.Sequential{Tests: []rollout.Test{test}, Limit: 1999.9999999999982, Metrics: metrics}
}

// TestNumberText checks the texts of numbers near the bounds between their formats.
func TestNumberText(t *testing.T) {
	for want, v := range map[string]float64{"0": 0, "<0.01": 0.0099, "0.01": 0.01, "0.34": 0.344, "1": 1, "9.9": 9.94, "10": 9.96,
		"999": 999.4, "1,000": 999.6, "12,345": 12345, "1,234,567": 1234567, "1,000,000,000,000": 1e12, ">1e12": math.Inf(1)} {
		compare.Check(t, want, rollout.NumberText(v))
	}
}
