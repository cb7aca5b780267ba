package forge

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// TestPullRequestsHaveTheEvidence: what was measured is in the text that somebody
// decides by, quoted, whatever a metrics server has said.
func TestPullRequestsHaveTheEvidence(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := rollout.State{
		App: "shop", Release: &rollout.Release{Hash: "h1-2", Commit: "c2"}, Stable: &rollout.Release{Hash: "h1-1", Commit: "c1"},
		Rejected: []rollout.Rejection{{Hash: "h1-2", Commit: "c2", Reason: "too many errors", At: at}},
		Analyses: []rollout.AnalysisRun{{Name: "web/step-2", Phase: rollout.AnalysisFailed, Metrics: []rollout.MetricProgress{{
			Metric: "errors", Phase: rollout.AnalysisFailed, Failed: 2, Condition: "successCondition: result < 0.01", Message: "`@everyone` <b>failed</b>",
			Measurements: []rollout.Measurement{{At: at, Value: "0.2"}, {At: at.Add(time.Minute), Value: "0.3"}},
		}}}},
	}
	for _, kind := range []rollout.ProposalKind{rollout.ProposePromotion, rollout.ProposeRevert} {
		body := describe(rollout.Transition{Cluster: "prod", After: s}, rollout.Proposal{Kind: kind}).body
		want := "- measured: `web/step-2 errors: Failed, 2 failed; successCondition: result < 0.01; '@everyone' <b>failed</b>; 0.2, 0.3 from 12:00:00 to 12:01:00 UTC`\n"
		if !strings.Contains(body, want) {
			t.Errorf("%s: the text has no %q:\n%s", kind, want, body)
		}
	}
}

// TestRetryIsAdvisedWhereItWorks: a version whose Rollout document is gone cannot be tried again.
func TestRetryIsAdvisedWhereItWorks(t *testing.T) {
	s := rollout.State{App: "shop", Rejected: []rollout.Rejection{{Hash: "h1-2", Commit: "c2", Reason: "too many errors"}}}
	for _, can := range []bool{true, false} {
		p := rollout.Proposal{Kind: rollout.ProposeRevert, Retries: can}
		body := describe(rollout.Transition{Cluster: "prod", After: s}, p).body
		if strings.Contains(body, "`gitrollout retry shop`") != can {
			t.Errorf("it can be tried again: %t, and the text is\n%s", can, body)
		}
	}
}
