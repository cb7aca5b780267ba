package analysis

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// phases maps letters to phases: s is successful, f failed, i inconclusive, e error, p no data.
var phases = map[rune]Phase{'s': Successful, 'f': Failed, 'i': Inconclusive, 'e': Errored, 'p': Pending}

// begin starts a run at noon.
func begin(metrics ...Metric) Run { return Start("web/step-1", "h1-x", metrics, noon) }

// measured records one measurement of the metric m per minute from noon on. Each letter of the parameter took is one phase.
func measured(r Run, m Metric, took string) Run {
	for i, c := range took {
		r = Record(r, m, Measurement{At: noon.Add(time.Duration(i) * time.Minute), Phase: phases[c], Value: "1"}, nil)
	}
	return r
}

// TestAssess checks phases against the rules of Argo Rollouts v1.10 (analysis/analysis.go, assessMetricStatus and
// assessMetricFailureInconclusiveOrError).
func TestAssess(t *testing.T) {
	usual := func(m Metric) Metric {
		m.ConsecutiveErrorLimit = 4
		return m
	}
	for _, tc := range []struct {
		name   string
		metric Metric
		took   string
		want   Phase
	}{
		{"nothing measured is nothing decided", usual(Metric{}), "", Running},
		{"without a count it runs on", usual(Metric{}), "ssssssss", Running},
		{"so many measurements without a failure pass", usual(Metric{Count: 3}), "sss", Successful},
		{"by default one failure is one too many", usual(Metric{Count: 3}), "sf", Failed},
		{"as many failures as the limit pass", usual(Metric{Count: 3, FailureLimit: 1}), "sfs", Successful},
		{"one failure more than the limit fails", usual(Metric{FailureLimit: 1}), "sfsf", Failed},
		{"the limit -1 never fails", usual(Metric{FailureLimit: -1, ConsecutiveSuccessLimit: 3}), "fffff", Running},
		{"one inconclusive measurement is one too many", usual(Metric{}), "si", Inconclusive},
		{"unless some may be inconclusive", usual(Metric{InconclusiveLimit: 1}), "sis", Running},
		{"four errors in a row are bad luck", usual(Metric{}), "eeee", Running},
		{"five errors in a row are not", usual(Metric{}), "eeeee", Errored},
		{"a measurement between errors starts their count anew", usual(Metric{}), "eeeeseeee", Running},
		{"errors do not count as measurements", usual(Metric{Count: 2}), "ses", Successful},
		{"an inconclusive one breaks the row", usual(Metric{ConsecutiveSuccessLimit: 3, InconclusiveLimit: 9}), "ssis", Running},
		{"one success in a row is enough", usual(Metric{ConsecutiveSuccessLimit: 1, FailureLimit: 9}), "s", Successful},
		{"count is reached, and no failure is allowed",
			usual(Metric{Count: 2, ConsecutiveSuccessLimit: 2, InconclusiveLimit: 2}), "si", Inconclusive},
		{"successes in a row pass at once", usual(Metric{ConsecutiveSuccessLimit: 3, FailureLimit: 9}), "sfsss", Successful},
		{"three successes are not in a row", usual(Metric{ConsecutiveSuccessLimit: 3, FailureLimit: 9}), "ssfss", Running},
		{"count is reached without enough in a row, and failures never fail",
			usual(Metric{Count: 4, ConsecutiveSuccessLimit: 3, FailureLimit: -1}), "sfsf", Failed},
		{"count is reached with neither", usual(Metric{Count: 5, ConsecutiveSuccessLimit: 3, FailureLimit: 2}), "sfsfs", Inconclusive},
		{"errors are said last, so they win over failures", Metric{FailureLimit: 5}, "ffe", Errored},
		{"a pending measurement does not count", usual(Metric{Count: 2}), "pppspps", Successful},
		{"measurements after a verdict change nothing", usual(Metric{}), "fsss", Failed},
		{"an inconclusive measurement counts towards count", usual(Metric{Count: 2, InconclusiveLimit: 1}), "si", Successful},
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
	good, bad := Metric{Name: "good", Count: 1}, Metric{Name: "bad", Count: 1}
	half := measured(begin(good, bad), good, "s")
	if half.Phase != Running {
		t.Errorf("one metric of two has ended, and the run is %s", half.Phase)
	}
	if r := measured(half, bad, "f"); r.Phase != Failed || half.Phase != Running || half.Metrics[1].Count != 0 {
		t.Errorf("the run is %s, and the one before is %s with %d", r.Phase, half.Phase, half.Metrics[1].Count)
	}
	bad.DryRun = true
	half = measured(begin(good, bad), good, "s")
	if half.Phase != Running {
		t.Errorf("a dry run is to be measured to its end, and the run is %s before", half.Phase)
	}
	if r := measured(half, bad, "f"); r.Phase != Successful || r.Metrics[1].Phase != Failed {
		t.Errorf("a dry run makes the run %s, itself %s", r.Phase, r.Metrics[1].Phase)
	}
	if s := Stop(begin(good)); s.Phase != Stopped || s.Metrics[0].Phase != Stopped {
		t.Errorf("a run that is stopped is %s, its metric %s", s.Phase, s.Metrics[0].Phase)
	}
	if s := Stop(measured(begin(good), good, "f")); s.Phase != Failed {
		t.Errorf("one that had failed is %s", s.Phase)
	}
}

func TestDue(t *testing.T) {
	m := Metric{Name: "errors", Interval: time.Minute, InitialDelay: 30 * time.Second, ConsecutiveErrorLimit: 4}
	r := begin(m)
	next := func(want time.Duration, then Phase) {
		t.Helper()
		at, ok := Due(r, m, noon.Add(want))
		if !ok || !at.Equal(noon.Add(want)) {
			t.Errorf("due at %v (%t), want %v", at.Sub(noon), ok, want)
		}
		r = Record(r, m, Measurement{At: noon.Add(want), Phase: then}, nil)
	}
	next(30*time.Second, Successful)
	next(90*time.Second, Errored)
	next(100*time.Second, Pending) // errors are retried after 10s
	next(160*time.Second, Failed)
	if _, ok := Due(r, m, noon.Add(time.Hour)); ok {
		t.Error("a failed metric is measured again")
	}
}

// TestDueWithoutInterval checks that a metric without data is measured again after its interval, or after errorRetry if no interval is set.
func TestDueWithoutInterval(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{0: errorRetry, time.Second: time.Second, time.Hour: time.Hour} {
		m := Metric{Name: "errors", Interval: interval}
		if at, ok := Due(measured(begin(m), m, "p"), m, noon); !ok || !at.Equal(noon.Add(want)) {
			t.Errorf("every %s it is due %s later, %t", interval, at.Sub(noon), ok)
		}
	}
	if at, ok := Due(begin(), Metric{Name: "errors"}, noon); ok || !at.IsZero() {
		t.Errorf("a metric that is not of the run is due at %s", at)
	}
}

// TestConditionOf checks that a failed metric records the condition that failed it, and that the run's message contains the metric's
// message.
func TestConditionOf(t *testing.T) {
	for want, m := range map[string]Metric{
		"": {}, "successCondition: result > 1": {SuccessCondition: "result > 1"},
		"failureCondition: result > 2": {SuccessCondition: "result > 1", FailureCondition: "result > 2"},
		"compare: stable":              {Compare: &Compare{}},
	} {
		m.Name = "errors"
		r := measured(begin(m), m, "f")
		if p := r.Metrics[0]; p.Condition != want || p.Message != "1 of 1 measurements failed, more than 0" ||
			r.Message != "metric errors: "+p.Message {
			t.Errorf("%q, %q, %q; want %q", p.Condition, p.Message, r.Message, want)
		}
	}
}

// TestFirstOfTheWorst checks that, if several metrics have the worst phase, the run's message names the first of these.
func TestFirstOfTheWorst(t *testing.T) {
	run := Run{Metrics: []Progress{
		{Metric: "good", Phase: Successful}, {Metric: "one", Phase: Failed, Message: "1"}, {Metric: "two", Phase: Failed, Message: "2"},
		{Metric: "three", Phase: Errored},
	}}
	if phase, message := assessRun(run); phase != Failed || message != "metric one: 1" {
		t.Errorf("%s, %q", phase, message)
	}
}

// TestFollow checks that a run gets the metrics of a changed document in Git. Metrics that remain in the document keep their measurements.
func TestFollow(t *testing.T) {
	was := Run{Phase: Running, Metrics: []Progress{{Metric: "a", Phase: Running, Count: 3}, {Metric: "b", Phase: Failed, DryRun: true}}}
	for name, c := range map[string]struct {
		phase   Phase
		metrics []Progress
		want    string
	}{
		"Same":    {Running, []Progress{{Metric: "a"}, {Metric: "b", DryRun: true}}, "Running: a Running 3 false, b Failed 0 true"},
		"New":     {Running, []Progress{{Metric: "a"}, {Metric: "c", DryRun: true}}, "Running: a Running 3 false, c Pending 0 true"},
		"Gone":    {Running, []Progress{{Metric: "b", DryRun: true}}, "Successful: b Failed 0 true"},
		"Counts":  {Running, []Progress{{Metric: "a"}, {Metric: "b"}}, "Failed: a Running 3 false, b Failed 0 false"},
		"Failed":  {Failed, []Progress{{Metric: "a"}}, "Failed: a Running 3 false, b Failed 0 true"},
		"Errored": {Errored, []Progress{{Metric: "a"}}, "Error: a Running 3 false, b Failed 0 true"},
		"Stopped": {Stopped, []Progress{{Metric: "a"}}, "Stopped: a Running 3 false, b Failed 0 true"},
		"Passed":  {Successful, []Progress{{Metric: "a"}}, "Running: a Running 3 false"},
	} {
		r := was
		r.Phase = c.phase
		got := Follow(r, c.metrics)
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
	stopped := Stop(Run{Phase: Running, Metrics: []Progress{{Metric: "a", Phase: Successful}, {Metric: "b", Phase: Running}}})
	if stopped.Metrics[0].Phase != Successful || stopped.Metrics[1].Phase != Stopped {
		t.Errorf("a run that is stopped: %+v", stopped.Metrics)
	}
}

func TestRetention(t *testing.T) {
	for retention, want := range map[int]int{0: 10, 2: 2} {
		m := Metric{Name: "errors", Retention: retention}
		if got := measured(begin(m), m, strings.Repeat("s", 15)).Metrics[0]; len(got.Measurements) != want || got.Count != 15 {
			t.Errorf("with %d, %d measurements are kept of %d, want %d", retention, len(got.Measurements), got.Count, want)
		}
	}
}
