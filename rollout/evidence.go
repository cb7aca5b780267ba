package rollout

import (
	"fmt"
	"strings"
	"time"
)

// evidenceValues is the number of newest values that Evidence shows for each metric.
const evidenceValues = 5

// Evidence returns one line about each metric of the runs, so that a user can decide about the release:
//
//	web/step-2 error-rate: Failed, 1 ok, 3 failed; successCondition: result < 0.01; 0.002, 0.2, 0.19, 0.21 from …
func Evidence(runs []AnalysisRun) (lines []string) {
	for _, r := range runs {
		lines = append(lines, Mapped(r.Metrics, func(p MetricProgress) string { return r.Name + " " + p.evidence() })...)
	}
	return lines
}

func (p MetricProgress) evidence() string {
	name := p.Metric
	if p.DryRun {
		name += " (dry run)"
	}
	counts := []string{string(p.Phase)}
	for _, c := range []struct {
		n    int
		what string
	}{{p.Successful, "ok"}, {p.Failed, "failed"}, {p.Inconclusive, "inconclusive"}, {p.Errors, "errors"}} {
		if c.n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	parts := []string{name + ": " + strings.Join(counts, ", ")}
	if p.Condition != "" {
		parts = append(parts, p.Condition)
	}
	if p.Phase.Done() && p.Phase != AnalysisSuccessful && p.Message != "" {
		parts = append(parts, p.Message)
	}
	var values []string
	last := p.Measurements[max(0, len(p.Measurements)-evidenceValues):]
	for _, m := range last {
		if m.Value != "" {
			values = append(values, m.Value)
		}
	}
	if len(values) > 0 {
		parts = append(parts, fmt.Sprintf("%s from %s to %s UTC", strings.Join(values, ", "),
			last[0].At.UTC().Format(time.TimeOnly), last[len(last)-1].At.UTC().Format(time.TimeOnly)))
	}
	return strings.Join(parts, "; ")
}
