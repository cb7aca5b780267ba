package analysis_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
)

// randomMetric returns a random metric that check accepts.
func randomMetric(rng *rand.Rand) analysis.Metric {
	for {
		m := analysis.Metric{
			Name: "m", Interval: time.Duration(rng.IntN(20)) * time.Second, Count: rng.IntN(8), FailureLimit: rng.IntN(4) - 1,
			InconclusiveLimit:     rng.IntN(3),
			ConsecutiveErrorLimit: rng.IntN(4), Retention: 1 + rng.IntN(5), DryRun: rng.IntN(5) == 0,
		}
		if rng.IntN(3) == 0 {
			m.ConsecutiveSuccessLimit = 1 + rng.IntN(3)
		}
		if analysis.Check(&m) == nil {
			return m
		}
	}
}

var every = []analysis.Phase{analysis.Successful, analysis.Failed, analysis.Inconclusive, analysis.Errored, analysis.Pending}

// FuzzRecord checks that counters add up and never shrink. Record must change neither the given run nor a phase that is a verdict.
func FuzzRecord(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		metrics := []analysis.Metric{randomMetric(rng), randomMetric(rng)}
		metrics[1].Name = "n"
		r := begin(metrics...)
		for i := range 30 {
			m := metrics[rng.IntN(2)]
			got := analysis.Measurement{At: noon.Add(time.Duration(i) * time.Second), Phase: every[rng.IntN(len(every))], Value: "1"}
			before := dumped(t, r)
			next := analysis.Record(r, m, got, nil)
			if dumped(t, r) != before {
				t.Fatalf("the run that was given is changed: %s to %s", before, dumped(t, r))
			}
			if r.Phase.Done() && dumped(t, next) != before {
				t.Fatalf("%s after a verdict makes %s of %s", got.Phase, dumped(t, next), before)
			}
			for j, p := range next.Metrics {
				checkCounters(t, metrics[j], r.Metrics[j], p)
			}
			if at, due := analysis.Due(next, m, got.At); due && (next.Phase.Done() || at.Before(next.Started)) {
				t.Fatalf("due at %v in %s", at, dumped(t, next))
			}
			r = next
		}
	})
}

func dumped(t *testing.T, r analysis.Run) string {
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func checkCounters(t *testing.T, m analysis.Metric, was, is analysis.Progress) {
	t.Helper()
	if is.Count != is.Successful+is.Failed+is.Inconclusive || is.ConsecutiveErrors > is.Errors || is.ConsecutiveSuccess > is.Successful ||
		len(is.Measurements) > m.Retention {
		t.Fatalf("the counters do not add up: %+v", is)
	}
	for name, n := range map[string][2]int{"count": {was.Count, is.Count}, "failed": {was.Failed, is.Failed},
		"errors": {was.Errors, is.Errors}, "row": {0, is.ConsecutiveErrors}} {
		if n[1] < n[0] || n[1] < 0 {
			t.Fatalf("%s goes from %d to %d", name, n[0], n[1])
		}
	}
	if was.Phase.Done() && !reflect.DeepEqual(was, is) {
		t.Fatalf("a verdict changes from %+v to %+v", was, is)
	}
}

// FuzzJudge checks that any result and condition give a valid phase and a short text, without a panic.
func FuzzJudge(f *testing.F) {
	for _, raw := range []string{`null`, `1`, `"NaN"`, `[]`, `[null]`, `[1,2]`, `[[1],{"a":"b"}]`, `{"a":{"b":[1e308,-0]}}`,
		`"` + string(make([]byte, 0)) + `"`, `true`, `[1e400]`} {
		for _, condition := range []string{"result[0] < 0.05", "asFloat(result) > 1", "isNaN(result)", "result.a.b[0] > 1",
			"default(result, 1) == 1", "len(result) > 0", "result",
			`len(reduce(1..60, #acc + #acc, "a")) > 0`, "let r = 1..90; all(r, {all(r, {true})})", `toJSON(result) + "a" != ""`,
			`len(split("a,b", ",")) > 1`} {
			f.Add(raw, condition, 3)
		}
	}
	f.Fuzz(func(t *testing.T, raw, condition string, samples int) {
		var result any
		if json.Unmarshal([]byte(raw), &result) != nil || analysis.CheckCondition(condition) != nil {
			return
		}
		for _, onNoData := range []analysis.NoData{rollout.NoDataError, rollout.NoDataWait, rollout.NoDataPass, rollout.NoDataFail} {
			for _, m := range []analysis.Metric{{SuccessCondition: condition}, {FailureCondition: condition}, {StartWhen: condition},
				{Compare: &analysis.Compare{}}} {
				m.OnNoData = onNoData
				got := analysis.Judge(m, analysis.Progress{}, result, samples, noon)
				if m.Compare != nil {
					got = analysis.Judged(m, analysis.Progress{}, noon, result, []any{1.0, 100.0}, noon)
				}
				// Messages omit expr's excerpt of the condition, which would contain "......^".
				if !slices.Contains(every, got.Phase) || len(got.Value) > 4*120 || strings.Contains(got.Message, "......^") {
					t.Fatalf("%s of %s is %+v", condition, raw, got)
				}
			}
		}
	})
}

// TestErrorsDoNotStart checks that a metric still waits for startWhen if its first measurement was an error.
func TestErrorsDoNotStart(t *testing.T) {
	m := analysis.Metric{Name: "m", StartWhen: "result[0] > 100", SuccessCondition: "result[0] < 500"}
	r := measured(begin(m), m, "e")
	if got := analysis.Judge(m, r.Metrics[0], []any{5.0}, -1, noon); got.Phase != analysis.Pending {
		t.Errorf("after an error, startWhen is not asked: %+v", got)
	}
}

// TestComparisonWithoutData checks that onNoData decides a comparison in which one version has no data.
func TestComparisonWithoutData(t *testing.T) {
	for onNoData, want := range map[analysis.NoData]analysis.Phase{rollout.NoDataError: analysis.Pending, rollout.NoDataWait: analysis.Pending,
		rollout.NoDataPass: analysis.Successful, rollout.NoDataFail: analysis.Failed} {
		for name, pair := range map[string][2]any{"new": {[]any{}, []any{1.0, 100.0}}, "stable": {[]any{1.0, 100.0}, nil}} {
			m := analysis.Metric{Compare: &analysis.Compare{}, OnNoData: onNoData}
			if got := analysis.Judged(m, analysis.Progress{}, noon, pair[0], pair[1], noon); got.Phase != want {
				t.Errorf("onNoData %q, no data of the %s version: %+v, want %s", onNoData, name, got, want)
			}
		}
	}
}

// TestLooksAreCountedByTime checks that a measurement's alpha depends on how many measurements were possible since the run began. A crash
// that loses earlier measurements must not change alpha.
func TestLooksAreCountedByTime(t *testing.T) {
	m := analysis.Metric{Compare: &analysis.Compare{}, Interval: 10 * time.Second, InitialDelay: time.Minute}
	began := noon.Add(-time.Minute - 9*m.Interval) // the tenth measurement, whose alpha is 0.001/110, or 9.1e-6
	c, s := []any{9.0, 200.0}, []any{8.0, 2000.0}  // p is 4.5e-6, less than 9.1e-6
	if got := analysis.Judged(m, analysis.Progress{}, began, c, s, noon); got.Phase != analysis.Failed {
		t.Errorf("the tenth look: %+v", got)
	}
	c = []any{8.0, 200.0} // p is 2.8e-5: worse in the first measurement, but not in the tenth
	if got := analysis.Judged(m, analysis.Progress{}, began, c, s, noon); got.Phase != analysis.Successful {
		t.Errorf("the tenth look, after a crash, is taken for the first: %+v", got)
	}
	if got := analysis.Judged(m, analysis.Progress{Count: 9}, noon.Add(-time.Minute), c, s, noon); got.Phase != analysis.Successful {
		t.Errorf("nine looks were counted: %+v", got)
	}
	if got := analysis.Judged(m, analysis.Progress{}, noon.Add(-time.Minute), c, s, noon); got.Phase != analysis.Failed {
		t.Errorf("the first look: %+v", got)
	}
}
