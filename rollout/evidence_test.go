package rollout

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
)

func TestEvidence(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 1, 2, 8, 1, s, 0, time.UTC) }
	runs := []AnalysisRun{{Name: "web/step-2", Phase: AnalysisFailed, Metrics: []MetricProgress{
		{Metric: "error-rate", Phase: AnalysisFailed, Condition: "successCondition: result < 0.01", Message: "3 failed, at most 2 may",
			Successful: 1, Failed: 3,
			Measurements: []Measurement{{At: at(5), Value: "0.002"}, {At: at(15), Value: "0.2"}, {At: at(25), Value: "0.19"},
				{At: at(35), Value: "0.21"}}},
		{Metric: "latency", Phase: AnalysisRunning, DryRun: true, Errors: 2, Measurements: []Measurement{{At: at(5), Message: "no answer"}}},
		{Metric: "load", Phase: AnalysisPending},
	}}, {Name: "web/background",
		Metrics: []MetricProgress{{Metric: "errors", Phase: AnalysisSuccessful, Successful: 7, Message: "is not needed"}}}}
	want := []string{
		"web/step-2 error-rate: Failed, 1 ok, 3 failed; successCondition: result < 0.01; 3 failed, at most 2 may; 0.002, 0.2, 0.19, " +
			"0.21 from 08:01:05 to 08:01:35 UTC",
		"web/step-2 latency (dry run): Running, 2 errors",
		"web/step-2 load: Pending",
		"web/background errors: Successful, 7 ok",
	}
	compare.Check(t, want, Evidence(runs))
}
