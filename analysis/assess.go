package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// errorRetry is the delay after an error (Argo Rollouts' DefaultErrorRetryInterval).
const errorRetry = 10 * time.Second

// Start returns a new run with the given metrics.
func Start(name string, release rollout.Hash, metrics []Metric, now time.Time) Run {
	return Run{Name: name, Release: release, Started: now.UTC().Truncate(time.Second), Phase: Running,
		Metrics: rollout.Mapped(metrics, func(m Metric) Progress {
			return Progress{Metric: m.Name, Phase: Pending, DryRun: m.DryRun}
		})}
}

// Due returns when a metric is measured next, or false if the metric or the run has finished.
func Due(r Run, m Metric, now time.Time) (time.Time, bool) {
	p, ok := progressOf(r, m.Name)
	if !ok || r.Phase.Done() || p.Phase.Done() {
		return time.Time{}, false
	}
	last, measured := p.Last()
	switch {
	case last.At.After(now): // the clock was ahead
		return now, true
	case !measured:
		return r.Started.Add(m.InitialDelay), true
	case last.Phase == Errored:
		return last.At.Add(errorRetry), true
	case last.Phase == Pending: // no data yet, or startWhen is false
		return last.At.Add(cmp.Or(m.Interval, errorRetry)), true
	default:
		return last.At.Add(m.Interval), true
	}
}

func progressOf(r Run, metric string) (Progress, bool) {
	return rollout.Find(r.Metrics, func(p Progress) bool { return p.Metric == metric })
}

// Record returns a copy of r with another measurement and new evidence. If r has finished, it returns r unchanged.
func Record(r Run, m Metric, got Measurement, evidence *Sequential) Run {
	if r.Phase.Done() {
		return r
	}
	r.Metrics = slices.Clone(r.Metrics)
	for i, p := range r.Metrics {
		if p.Metric == m.Name && !p.Phase.Done() {
			p.Evidence = evidence
			r.Metrics[i] = assess(m, count(m, p, got))
		}
	}
	r.Phase, r.Message = assessRun(r)
	return r
}

func count(m Metric, p Progress, got Measurement) Progress {
	p.Measurements = append(slices.Clone(p.Measurements), got)
	p.Measurements = p.Measurements[max(0, len(p.Measurements)-cmp.Or(m.Retention, 10)):]
	if !got.Phase.Done() {
		return p // the counters exclude Pending and Running measurements
	}
	if got.Phase == Errored {
		p.Errors++
		p.ConsecutiveErrors++
		return p
	}
	p.Count++
	p.ConsecutiveErrors = 0
	switch got.Phase {
	case Successful:
		p.Successful++
		p.ConsecutiveSuccess++
		return p
	case Failed:
		p.Failed++
	case Inconclusive:
		p.Inconclusive++
	}
	p.ConsecutiveSuccess = 0
	return p
}

// assess decides a metric's phase. As in Argo Rollouts, later checks override earlier checks.
func assess(m Metric, p Progress) Progress {
	last, _ := p.Last()
	p.Phase, p.Message = Running, ""
	if m.FailureLimit >= 0 && p.Failed > m.FailureLimit {
		p.Phase, p.Message = Failed, fmt.Sprintf("%d of %d measurements failed, more than %d", p.Failed, p.Count,
			m.FailureLimit)
	}
	if p.Inconclusive > m.InconclusiveLimit {
		p.Phase, p.Message = Inconclusive, fmt.Sprintf("%d of %d measurements are inconclusive, more than %d",
			p.Inconclusive, p.Count, m.InconclusiveLimit)
	}
	if p.ConsecutiveErrors > m.ConsecutiveErrorLimit {
		p.Phase, p.Message = Errored, fmt.Sprintf("%d measurements in a row could not be made: %s", p.ConsecutiveErrors,
			last.Message)
	}
	switch inRow, isLast := m.ConsecutiveSuccessLimit, m.Count > 0 && p.Count >= m.Count; {
	case p.Phase.Done():
		p.Condition = conditionOf(m)
	case inRow > 0 && p.ConsecutiveSuccess >= inRow, isLast && inRow == 0:
		p.Phase = Successful
	case isLast && m.FailureLimit < 0:
		p.Phase, p.Message = Failed, fmt.Sprintf("not successful %d times in a row within %d measurements", inRow, m.Count)
	case isLast:
		p.Phase, p.Message = Inconclusive, fmt.Sprintf(
			"neither successful %d times in a row nor failed more than %d times within %d measurements",
			inRow, m.FailureLimit, m.Count)
	}
	return p
}

func conditionOf(m Metric) string {
	switch {
	case m.Compare != nil:
		return "compare: " + other(m)
	case m.FailureCondition != "":
		return "failureCondition: " + m.FailureCondition
	case m.SuccessCondition != "":
		return "successCondition: " + m.SuccessCondition
	}
	return ""
}

var severity = []Phase{Successful, Running, Pending, Inconclusive, Errored, Failed}

// assessRun decides a run's phase. As in Argo Rollouts, the run waits for metrics with dryRun and ignores their
// results.
func assessRun(r Run) (Phase, string) {
	worst, message := Successful, ""
	for _, p := range r.Metrics {
		if p.DryRun && p.Phase.Done() {
			continue
		}
		if slices.Index(severity, p.Phase) > slices.Index(severity, worst) {
			worst, message = p.Phase, fmt.Sprintf("metric %s: %s", p.Metric, p.Message)
		}
	}
	if worst == Pending || worst == Running {
		return Running, ""
	}
	return worst, message
}

// Stop returns r with the phase Stopped, unless r has finished.
func Stop(r Run) Run {
	if r.Phase.Done() {
		return r
	}
	r.Phase, r.Metrics = Stopped, slices.Clone(r.Metrics)
	for i := range r.Metrics {
		if !r.Metrics[i].Phase.Done() {
			r.Metrics[i].Phase = Stopped
		}
	}
	return r
}

// Follow replaces a run's metrics after a change in Git.
func Follow(r Run, metrics []Progress) Run {
	same := func(a, b Progress) bool { return a.Metric == b.Metric && a.DryRun == b.DryRun }
	if r.Phase == Failed || r.Phase == Errored || r.Phase == Stopped || slices.EqualFunc(r.Metrics, metrics, same) {
		return r
	}
	has := r
	r.Metrics = nil
	for _, m := range metrics {
		p, ok := progressOf(has, m.Metric)
		if !ok {
			p = Progress{Metric: m.Metric, Phase: Pending}
		}
		p.DryRun = m.DryRun
		r.Metrics = append(r.Metrics, p)
	}
	r.Phase, r.Message = assessRun(r)
	return r
}
