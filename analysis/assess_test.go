package analysis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/analysis"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// phases maps letters to phases: s is successful, f failed, i inconclusive, e error, p no data.
var phases = map[rune]analysis.Phase{'s': analysis.Successful, 'f': analysis.Failed, 'i': analysis.Inconclusive, 'e': analysis.Errored,
	'p': analysis.Pending}

func begin(metrics ...analysis.Metric) analysis.Run {
	return analysis.Start("web/step-1", "h1-x", metrics, noon)
}

// measured records measurements of the metric m, one per minute from noon on. Each letter of the last argument is one measurement's phase.
func measured(r analysis.Run, m analysis.Metric, took string) analysis.Run {
	for i, c := range took {
		r = analysis.Record(r, m, analysis.Measurement{At: noon.Add(time.Duration(i) * time.Minute), Phase: phases[c], Value: "1"}, nil)
	}
	return r
}

// TestAssess checks phases against the rules of Argo Rollouts v1.10 (analysis/analysis.go, assessMetricStatus and
// assessMetricFailureInconclusiveOrError).
func TestAssess(t *testing.T) {
	usual := func(m analysis.Metric) analysis.Metric {
		m.ConsecutiveErrorLimit = 4
		return m
	}
	for _, tc := range []struct {
		name   string
		metric analysis.Metric
		took   string
		want   analysis.Phase
	}{
		{"nothing measured is nothing decided", usual(analysis.Metric{}), "", analysis.Running},
		{"without a count it runs on", usual(analysis.Metric{}), "ssssssss", analysis.Running},
		{"so many measurements without a failure pass", usual(analysis.Metric{Count: 3}), "sss", analysis.Successful},
		{"by default one failure is one too many", usual(analysis.Metric{Count: 3}), "sf", analysis.Failed},
		{"as many failures as the limit pass", usual(analysis.Metric{Count: 3, FailureLimit: 1}), "sfs", analysis.Successful},
		{"one failure more than the limit fails", usual(analysis.Metric{FailureLimit: 1}), "sfsf", analysis.Failed},
		{"the limit -1 never fails", usual(analysis.Metric{FailureLimit: -1, ConsecutiveSuccessLimit: 3}), "fffff", analysis.Running},
		{"one inconclusive measurement is one too many", usual(analysis.Metric{}), "si", analysis.Inconclusive},
		{"unless some may be inconclusive", usual(analysis.Metric{InconclusiveLimit: 1}), "sis", analysis.Running},
		{"four errors in a row are bad luck", usual(analysis.Metric{}), "eeee", analysis.Running},
		{"five errors in a row are not", usual(analysis.Metric{}), "eeeee", analysis.Errored},
		{"a measurement between errors starts their count anew", usual(analysis.Metric{}), "eeeeseeee", analysis.Running},
		{"errors do not count as measurements", usual(analysis.Metric{Count: 2}), "ses", analysis.Successful},
		{"an inconclusive one breaks the row", usual(analysis.Metric{ConsecutiveSuccessLimit: 3, InconclusiveLimit: 9}), "ssis",
			analysis.Running},
		{"one success in a row is enough", usual(analysis.Metric{ConsecutiveSuccessLimit: 1, FailureLimit: 9}), "s", analysis.Successful},
		{"count is reached, and no failure is allowed",
			usual(analysis.Metric{Count: 2, ConsecutiveSuccessLimit: 2, InconclusiveLimit: 2}), "si", analysis.Inconclusive},
		{"successes in a row pass at once", usual(analysis.Metric{ConsecutiveSuccessLimit: 3, FailureLimit: 9}), "sfsss", analysis.Successful},
		{"three successes are not in a row", usual(analysis.Metric{ConsecutiveSuccessLimit: 3, FailureLimit: 9}), "ssfss", analysis.Running},
		{"count is reached without enough in a row, and failures never fail",
			usual(analysis.Metric{Count: 4, ConsecutiveSuccessLimit: 3, FailureLimit: -1}), "sfsf", analysis.Failed},
		{"count is reached with neither", usual(analysis.Metric{Count: 5, ConsecutiveSuccessLimit: 3, FailureLimit: 2}), "sfsfs",
			analysis.Inconclusive},
		{"errors are said last, so they win over failures", analysis.Metric{FailureLimit: 5}, "ffe", analysis.Errored},
		{"a pending measurement does not count", usual(analysis.Metric{Count: 2}), "pppspps", analysis.Successful},
		{"measurements after a verdict change nothing", usual(analysis.Metric{}), "fsss", analysis.Failed},
		{"an inconclusive measurement counts towards count", usual(analysis.Metric{Count: 2, InconclusiveLimit: 1}), "si", analysis.Successful},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.metric.Name, tc.metric.Interval = "errors", time.Minute
			r := measured(begin(tc.metric), tc.metric, tc.took)
			if r.Phase != tc.want {
				t.Errorf("%s is %s (%s), want %s", tc.took, r.Phase, r.Message, tc.want)
			}
		})
	}
}

// TestAssessRun checks that a run has the phase of its worst metric. A metric with dryRun can delay the end of a run, but not change the
// run's phase.
func TestAssessRun(t *testing.T) {
	good, bad := analysis.Metric{Name: "good", Count: 1}, analysis.Metric{Name: "bad", Count: 1}
	half := measured(begin(good, bad), good, "s")
	if half.Phase != analysis.Running {
		t.Errorf("one metric of two has ended, and the run is %s", half.Phase)
	}
	if r := measured(half, bad, "f"); r.Phase != analysis.Failed || half.Phase != analysis.Running || half.Metrics[1].Count != 0 {
		t.Errorf("the run is %s, and the one before is %s with %d", r.Phase, half.Phase, half.Metrics[1].Count)
	}
	bad.DryRun = true
	half = measured(begin(good, bad), good, "s")
	if half.Phase != analysis.Running {
		t.Errorf("a dry run is to be measured to its end, and the run is %s before", half.Phase)
	}
	if r := measured(half, bad, "f"); r.Phase != analysis.Successful || r.Metrics[1].Phase != analysis.Failed {
		t.Errorf("a dry run makes the run %s, itself %s", r.Phase, r.Metrics[1].Phase)
	}
	if s := analysis.Stop(begin(good)); s.Phase != analysis.Stopped || s.Metrics[0].Phase != analysis.Stopped {
		t.Errorf("a run that is stopped is %s, its metric %s", s.Phase, s.Metrics[0].Phase)
	}
	if s := analysis.Stop(measured(begin(good), good, "f")); s.Phase != analysis.Failed {
		t.Errorf("one that had failed is %s", s.Phase)
	}
}

func TestDue(t *testing.T) {
	m := analysis.Metric{Name: "errors", Interval: time.Minute, InitialDelay: 30 * time.Second, ConsecutiveErrorLimit: 4}
	r := begin(m)
	next := func(want time.Duration, then analysis.Phase) {
		t.Helper()
		at, ok := analysis.Due(r, m, noon.Add(want))
		if !ok || !at.Equal(noon.Add(want)) {
			t.Errorf("due at %v (%t), want %v", at.Sub(noon), ok, want)
		}
		r = analysis.Record(r, m, analysis.Measurement{At: noon.Add(want), Phase: then}, nil)
	}
	next(30*time.Second, analysis.Successful)
	next(90*time.Second, analysis.Errored)
	next(100*time.Second, analysis.Pending) // errors are retried after 10s
	next(160*time.Second, analysis.Failed)
	if _, ok := analysis.Due(r, m, noon.Add(time.Hour)); ok {
		t.Error("a failed metric is measured again")
	}
}

// TestDueWithoutInterval checks that a metric without data is measured again after its interval, or after errorRetry if no interval is set.
func TestDueWithoutInterval(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Second: time.Second, time.Hour: time.Hour} {
		m := analysis.Metric{Name: "errors", Interval: interval}
		if at, ok := analysis.Due(measured(begin(m), m, "p"), m, noon); !ok || !at.Equal(noon.Add(want)) {
			t.Errorf("every %s it is due %s later, %t", interval, at.Sub(noon), ok)
		}
	}
	if at, ok := analysis.Due(begin(), analysis.Metric{Name: "errors"}, noon); ok || !at.IsZero() {
		t.Errorf("a metric that is not of the run is due at %s", at)
	}
}

// TestConditionOf checks that a failed metric records the condition that made it fail, and that the run's message contains the metric's
// message.
func TestConditionOf(t *testing.T) {
	for want, m := range map[string]analysis.Metric{
		"": {}, "successCondition: result > 1": {SuccessCondition: "result > 1"},
		"failureCondition: result > 2": {SuccessCondition: "result > 1", FailureCondition: "result > 2"},
		"compare: stable":              {Compare: &analysis.Compare{}},
	} {
		m.Name = "errors"
		r := measured(begin(m), m, "f")
		if p := r.Metrics[0]; p.Condition != want || p.Message != "1 of 1 measurements failed, more than 0" ||
			r.Message != "metric errors: "+p.Message {
			t.Errorf("%q, %q, %q; want %q", p.Condition, p.Message, r.Message, want)
		}
	}
}

// TestFirstOfTheWorst checks that, if several metrics have the worst phase, the run's message names the first.
func TestFirstOfTheWorst(t *testing.T) {
	run := analysis.Run{Metrics: []analysis.Progress{
		{Metric: "good", Phase: analysis.Successful}, {Metric: "one", Phase: analysis.Failed, Message: "1"},
		{Metric: "two", Phase: analysis.Failed, Message: "2"},
		{Metric: "three", Phase: analysis.Errored},
	}}
	if phase, message := analysis.AssessRun(run); phase != analysis.Failed || message != "metric one: 1" {
		t.Errorf("%s, %q", phase, message)
	}
}

// TestFollow checks that a run gets the metrics of a changed document in Git. Metrics that remain in the document keep their measurements.
func TestFollow(t *testing.T) {
	was := analysis.Run{Phase: analysis.Running,
		Metrics: []analysis.Progress{{Metric: "a", Phase: analysis.Running, Count: 3}, {Metric: "b", Phase: analysis.Failed, DryRun: true}}}
	for name, c := range map[string]struct {
		phase   analysis.Phase
		metrics []analysis.Progress
		want    string
	}{
		"Same": {analysis.Running, []analysis.Progress{{Metric: "a"}, {Metric: "b", DryRun: true}},
			"Running: a Running 3 false, b Failed 0 true"},
		"New": {analysis.Running, []analysis.Progress{{Metric: "a"}, {Metric: "c", DryRun: true}},
			"Running: a Running 3 false, c Pending 0 true"},
		"Gone":    {analysis.Running, []analysis.Progress{{Metric: "b", DryRun: true}}, "Successful: b Failed 0 true"},
		"Counts":  {analysis.Running, []analysis.Progress{{Metric: "a"}, {Metric: "b"}}, "Failed: a Running 3 false, b Failed 0 false"},
		"Failed":  {analysis.Failed, []analysis.Progress{{Metric: "a"}}, "Failed: a Running 3 false, b Failed 0 true"},
		"Errored": {analysis.Errored, []analysis.Progress{{Metric: "a"}}, "Error: a Running 3 false, b Failed 0 true"},
		"Stopped": {analysis.Stopped, []analysis.Progress{{Metric: "a"}}, "Stopped: a Running 3 false, b Failed 0 true"},
		"Passed":  {analysis.Successful, []analysis.Progress{{Metric: "a"}}, "Running: a Running 3 false"},
	} {
		r := was
		r.Phase = c.phase
		got := analysis.Follow(r, c.metrics)
		var all []string
		for _, p := range got.Metrics {
			all = append(all, fmt.Sprintf("%s %s %d %t", p.Metric, p.Phase, p.Count, p.DryRun))
		}
		if text := fmt.Sprintf("%s: %s", got.Phase, strings.Join(all, ", ")); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
	if len(was.Metrics) != 2 || was.Metrics[1].Metric != "b" {
		t.Errorf("the run that was given is %+v", was)
	}
	stopped := analysis.Stop(analysis.Run{Phase: analysis.Running,
		Metrics: []analysis.Progress{{Metric: "a", Phase: analysis.Successful}, {Metric: "b", Phase: analysis.Running}}})
	if stopped.Metrics[0].Phase != analysis.Successful || stopped.Metrics[1].Phase != analysis.Stopped {
		t.Errorf("a run that is stopped: %+v", stopped.Metrics)
	}
}

func TestRetention(t *testing.T) {
	for retention, want := range map[int]int{0: 10, 2: 2} {
		m := analysis.Metric{Name: "errors", Retention: retention}
		if got := measured(begin(m), m, strings.Repeat("s", 15)).Metrics[0]; len(got.Measurements) != want || got.Count != 15 {
			t.Errorf("with %d, %d measurements are kept of %d, want %d", retention, len(got.Measurements), got.Count, want)
		}
	}
}
