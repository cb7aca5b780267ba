package terminal

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

var verdicts = map[rollout.AnalysisPhase]span{
	rollout.AnalysisSuccessful: {"✔", green}, rollout.AnalysisFailed: {"✖", red}, rollout.AnalysisErrored: {"✖", red},
	rollout.AnalysisInconclusive: {"?", yellow}, rollout.AnalysisRunning: {"●", cyan},
}

func verdictMark(p rollout.AnalysisPhase) span { return cmp.Or(verdicts[p], span{"○", dim}) }

func drawAnalyses(a status.App, k Look) (out string) {
	for _, r := range a.Analyses {
		out += "\n" + k.line(span{"  Analysis ", dim}, span{r.Name, bold},
			span{"  " + string(r.Phase), verdictMark(r.Phase).color}, span{", since " + age(k.Now.Sub(r.Started)), dim})
		names, lasts := min(widest(r.Metrics, metricName), 28), min(widest(r.Metrics, lastValue), 12)
		for _, m := range r.Metrics {
			out += drawMetric(m, names, lasts, k)
		}
	}
	return out
}

func drawMetric(m status.Progress, names, lasts int, k Look) string {
	mark := verdictMark(m.Phase)
	bars := sparkline(m.Measurements)
	spans := append([]span{{"    " + mark.text + " ", mark.color},
		{Pad(Truncate(metricName(m), names), names) + "  ", plain}}, bars...)
	spans = append(spans, span{strings.Repeat(" ", max(0, sparkBars-len(bars))+2) +
		Pad(Truncate(lastValue(m), lasts), lasts) + "  ", plain},
		span{strings.Join(metricCounts(m.MetricProgress), ", "), plain})
	out := k.line(spans...) + drawEvidence(m.Evidence, k)
	detail := m.Condition
	if m.Message != "" && m.Phase != rollout.AnalysisSuccessful {
		detail = strings.TrimPrefix(detail+"; "+m.Message, "; ")
	}
	return out + k.below(6, detail, dim)
}

func drawEvidence(e *status.Evidence, k Look) (out string) {
	const cells = 8
	if e == nil {
		return ""
	}
	if e.Limit > 0 {
		full := int(e.Share * cells)
		text := fmt.Sprintf("%s (log), %s and %s requests", rollout.EvidenceText(e.Value, e.Release, e.Limit),
			rollout.NumberText(float64(e.Requests.Canary)), rollout.NumberText(float64(e.Requests.Stable)))
		out = k.beside(text, k.columns(), plain, span{"      evidence ▕", dim}, span{strings.Repeat("█", full), cyan},
			span{strings.Repeat("░", cells-full) + "▏ ", dim})
	}
	for _, d := range e.Differences {
		out += k.below(15, d.String(), plain)
	}
	return out + k.below(6, e.Note, dim)
}

func metricName(m status.Progress) string {
	if m.DryRun {
		return m.Metric + " (dry run)"
	}
	return m.Metric
}

func lastValue(m status.Progress) string {
	last, _ := m.Last()
	value := Clean(last.Value)
	if inner := strings.TrimSuffix(strings.TrimPrefix(value, "["), "]"); len(inner) == len(value)-2 &&
		!strings.Contains(inner, " ") {
		return inner // a vector with one element
	}
	return value
}

func metricCounts(m rollout.MetricProgress) (counts []string) {
	for _, c := range []struct {
		n    int
		what string
	}{{m.Successful, "ok"}, {m.Failed, "failed"}, {m.Inconclusive, "inconclusive"},
		{m.Count - m.Successful - m.Failed - m.Inconclusive, "without a verdict"}} {
		if c.n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if m.Errors > 0 {
		counts = append(counts, rollout.Count(m.Errors, "error"))
	}
	if len(counts) == 0 {
		return []string{"not recorded yet"}
	}
	return counts
}

const sparkBars = 12

var firstNumber = regexp.MustCompile(`[-+]?\d+(\.\d+)?([eE][-+]?\d+)?`)

// sparkline draws scaled, coloured bars. × marks an error, and · a measurement without a number.
func sparkline(all []rollout.Measurement) []span {
	all = all[max(0, len(all)-sparkBars):]
	values := make([]float64, len(all))
	low, high := math.Inf(1), math.Inf(-1)
	for i, m := range all {
		v, err := strconv.ParseFloat(firstNumber.FindString(m.Value), 64)
		if err != nil || math.IsInf(v, 0) {
			v = math.NaN()
		}
		values[i] = v
		if !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	levels := []rune("▁▂▃▄▅▆▇█")
	bars := make([]span, len(all))
	for i, m := range all {
		bars[i].color = verdictMark(m.Phase).color
		switch v := values[i]; {
		case math.IsNaN(v) && m.Phase == rollout.AnalysisErrored:
			bars[i].text = "×"
		case math.IsNaN(v):
			bars[i].text = "·"
		case high == low:
			bars[i].text = "▄"
		default:
			// Each term is halved, because high - low can overflow.
			share := (v/2 - low/2) / (high/2 - low/2)
			bars[i].text = string(levels[int(math.Round(share*float64(len(levels)-1)))])
		}
	}
	return bars
}

var hookMarks = map[rollout.HookPhase]span{
	rollout.HookSucceeded: {"✔", green}, rollout.HookFailed: {"✖", red},
}

func drawHooks(a status.App, k Look) (out string) {
	names := widest(a.Hooks, func(h rollout.HookRun) string { return h.Name })
	for i, h := range a.Hooks {
		if i == 0 {
			out += "\n" + k.line(span{"  Hooks of ", dim}, span{string(h.Release), bold})
		}
		mark := cmp.Or(hookMarks[h.Phase], span{"●", cyan})
		out += k.line(span{"    " + mark.text + " ", mark.color}, span{Pad(h.Name, names), plain},
			span{"  " + Pad(string(h.When), 6), dim}, span{"  " + string(h.Phase), mark.color},
			span{", since " + age(k.Now.Sub(h.Since)) + "  " + h.Job, dim})
		if h.Message != "" {
			out += k.line(span{"      " + h.Message, mark.color})
		}
		if h.Phase == rollout.HookFailed && h.Log != "" {
			for line := range strings.SplitSeq(h.Log, "\n") {
				out += k.line(span{"      │ " + line, dim})
			}
		}
	}
	return out
}
