package rollout

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Evidence returns lines for a user's decision:
//
//	web/step-2 error-rate: Failed, 1 ok, 3 failed; successCondition: result < 0.01; 0.002, 0.2, 0.19, 0.21 from …
func Evidence(runs []AnalysisRun) (lines []string) {
	for _, r := range runs {
		lines = append(lines, Mapped(r.Metrics, func(p MetricProgress) string {
			return r.Name + " " + p.evidence(MeanEvidence(runs, r, p))
		})...)
	}
	return lines
}

func (p MetricProgress) evidence(mean float64) string {
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
	last := p.Measurements[max(0, len(p.Measurements)-5):]
	for _, m := range last {
		if m.Value != "" {
			values = append(values, m.Value)
		}
	}
	if len(values) > 0 {
		parts = append(parts, fmt.Sprintf("%s from %s to %s UTC", strings.Join(values, ", "),
			last[0].At.UTC().Format(time.TimeOnly), last[len(last)-1].At.UTC().Format(time.TimeOnly)))
	}
	if e := p.Evidence; e != nil {
		parts = append(parts, "evidence "+EvidenceText(e.Value(), mean, e.Limit))
	}
	return strings.Join(parts, "; ")
}

// MeanEvidence returns the mean evidence of the metrics that share p's limit. A metric without Evidence counts as 1.
func MeanEvidence(runs []AnalysisRun, of AnalysisRun, p MetricProgress) float64 {
	if p.Evidence == nil || p.Evidence.Metrics < 2 || p.DryRun {
		return p.Evidence.Value()
	}
	sum := float64(p.Evidence.Metrics)
	for _, r := range runs {
		for _, o := range r.Metrics {
			if r.Release == of.Release && r.IsWatch() == of.IsWatch() && o.Evidence != nil && !o.DryRun {
				sum += o.Evidence.Value() - 1
			}
		}
	}
	return sum / float64(p.Evidence.Metrics)
}

// EvidenceText returns "41 of 2,000" or, if the release's mean differs, "41, release 14 of 2,000".
func EvidenceText(value, mean, limit float64) string {
	own := map[bool]string{false: NumberText(value) + ", release "}[value == mean]
	return own + NumberText(mean) + " of " + NumberText(limit)
}

// NumberText formats a non-negative number: <0.01, 0.34, 2,000, >1e12.
func NumberText(v float64) string {
	switch {
	case v > 0 && v < 0.01:
		return "<0.01"
	case v < 10:
		return strconv.FormatFloat(v, 'g', 2, 64)
	case v > 1e12:
		return ">1e12"
	}
	text := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
