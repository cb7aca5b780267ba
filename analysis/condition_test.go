package analysis_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
)

func TestJudge(t *testing.T) {
	for _, tc := range []struct {
		name    string
		metric  analysis.Metric
		result  any
		samples int
		want    analysis.Phase
	}{
		{"any result will do", analysis.Metric{}, 0.5, -1, analysis.Successful},
		{"the condition for success holds", analysis.Metric{SuccessCondition: "result < 0.01"}, 0.005, -1, analysis.Successful},
		{"its opposite is a failure", analysis.Metric{SuccessCondition: "result < 0.01"}, 0.05, -1, analysis.Failed},
		{"the condition for failure holds", analysis.Metric{FailureCondition: "result >= 0.01"}, 0.05, -1, analysis.Failed},
		{"its opposite is a success", analysis.Metric{FailureCondition: "result >= 0.01"}, 0.005, -1, analysis.Successful},
		{"failure is asked first", analysis.Metric{SuccessCondition: "true", FailureCondition: "result > 1"}, 2.0, -1, analysis.Failed},
		{"neither holds", analysis.Metric{SuccessCondition: "result < 1", FailureCondition: "result > 2"}, 1.5, -1, analysis.Inconclusive},
		{"a vector of Prometheus", analysis.Metric{SuccessCondition: "result[0] >= 0.95"}, []any{0.99}, -1, analysis.Successful},
		{"a vector of several values", analysis.Metric{SuccessCondition: "all(result, # < 5)"}, []any{1.0, 2.0}, -1, analysis.Successful},
		{"an index beyond the end cannot be evaluated", analysis.Metric{SuccessCondition: "result[1] > 0"}, []any{0.99}, -1, analysis.Errored},
		{"nor can an index into an empty result", analysis.Metric{SuccessCondition: "result[0] > 0"}, []any{}, -1, analysis.Errored},
		{"unless the condition allows an empty result", analysis.Metric{SuccessCondition: "len(result) == 0 || result[0] > 0"}, []any{}, -1,
			analysis.Successful},
		{"nil has a default", analysis.Metric{SuccessCondition: "default(result, 0) < 1"}, nil, -1, analysis.Successful},
		{"nil can be asked for", analysis.Metric{SuccessCondition: "isNil(result)"}, nil, -1, analysis.Successful},
		{"NaN is neither more nor less", analysis.Metric{SuccessCondition: "result < 1"}, math.NaN(), -1, analysis.Failed},
		{"unless the condition allows NaN", analysis.Metric{SuccessCondition: "isNaN(result) || result < 1"}, math.NaN(), -1,
			analysis.Successful},
		{"infinity can be asked for", analysis.Metric{FailureCondition: "isInf(result)"}, math.Inf(1), -1, analysis.Failed},
		{"texts become numbers", analysis.Metric{SuccessCondition: "asFloat(result) > 1.5"}, "2.5", -1, analysis.Successful},
		{"texts become whole numbers", analysis.Metric{SuccessCondition: "asInt(result) == 2"}, "2", -1, analysis.Successful},
		{"whole numbers of any size become numbers", analysis.Metric{SuccessCondition: "asFloat(result) > 1"}, uint64(1 << 63), -1,
			analysis.Successful},
		{"a text that is not a number", analysis.Metric{SuccessCondition: "asInt(result) == 2"}, "two", -1, analysis.Errored},
		{"fields of a JSON answer", analysis.Metric{SuccessCondition: "result.ok && result.count < 10"},
			map[string]any{"ok": true, "count": 5.0}, -1, analysis.Successful},
		{"a condition is true or false", analysis.Metric{SuccessCondition: "result"}, 1.0, -1, analysis.Errored},
		{"no data can be waited for", analysis.Metric{SuccessCondition: "result[0] > 0", OnNoData: rollout.NoDataWait}, []any{}, -1,
			analysis.Pending},
		{"not a number is no data", analysis.Metric{SuccessCondition: "result > 0", OnNoData: rollout.NoDataWait}, math.NaN(), -1,
			analysis.Pending},
		{"no data can pass", analysis.Metric{SuccessCondition: "result[0] > 0", OnNoData: rollout.NoDataPass}, nil, -1, analysis.Successful},
		{"no data can fail", analysis.Metric{SuccessCondition: "result[0] > 0", OnNoData: rollout.NoDataFail}, nil, -1, analysis.Failed},
		{"too few samples are none", analysis.Metric{SuccessCondition: "result < 1", MinSamples: 100}, 5.0, 7, analysis.Pending},
		{"enough samples are judged", analysis.Metric{SuccessCondition: "result < 1", MinSamples: 100}, 5.0, 100, analysis.Failed},
		{"an unknown number of samples is enough", analysis.Metric{SuccessCondition: "result < 1", MinSamples: 100}, 5.0, -1, analysis.Failed},
		{"no samples are too few", analysis.Metric{SuccessCondition: "result < 1", MinSamples: 1}, 5.0, 0, analysis.Pending},
		{"too few samples can pass", analysis.Metric{SuccessCondition: "result < 1", MinSamples: 1, OnNoData: rollout.NoDataPass}, 5.0, 0,
			analysis.Successful},
		{"nothing of nothing is asked about", analysis.Metric{SuccessCondition: "len(result) == 0"}, []any{}, 0, analysis.Successful},
		{"some data is data", analysis.Metric{SuccessCondition: "len(result) == 2", OnNoData: rollout.NoDataFail}, []any{math.NaN(), 1.0}, -1,
			analysis.Successful},
		{"nothing but NaN is none", analysis.Metric{SuccessCondition: "true", OnNoData: rollout.NoDataFail}, []any{math.NaN(), nil}, -1,
			analysis.Failed},
		{"an empty text is none", analysis.Metric{SuccessCondition: "true", OnNoData: rollout.NoDataFail}, "", -1, analysis.Failed},
		{"another text is some", analysis.Metric{SuccessCondition: "true", OnNoData: rollout.NoDataFail}, "x", -1, analysis.Successful},
		{"an empty mapping is some", analysis.Metric{SuccessCondition: "true", OnNoData: rollout.NoDataFail}, map[string]any{}, -1,
			analysis.Successful},
		{"a condition that cannot be evaluated decides nothing", analysis.Metric{FailureCondition: "result[1] > 0"}, []any{1.0}, -1,
			analysis.Errored},
		{"a text is not NaN", analysis.Metric{SuccessCondition: "isNaN(result)"}, "x", -1, analysis.Failed},
		{"a text is not infinite", analysis.Metric{SuccessCondition: "isInf(result)"}, "x", -1, analysis.Failed},
		{"minus infinity is infinite", analysis.Metric{SuccessCondition: "isInf(result)"}, math.Inf(-1), -1, analysis.Successful},
		{"a list is not a number", analysis.Metric{SuccessCondition: "asFloat(result) > 0"}, []any{1.0}, -1, analysis.Errored},
		{"default leaves a value as it is", analysis.Metric{SuccessCondition: "default(result, 0) == 5"}, 5.0, -1, analysis.Successful},
		{"a metric waits for startWhen", analysis.Metric{SuccessCondition: "result < 1", StartWhen: "result > 10"}, 5.0, -1, analysis.Pending},
		{"it begins when startWhen holds", analysis.Metric{SuccessCondition: "result < 100", StartWhen: "result > 10"}, 50.0, -1,
			analysis.Successful},
		{"no data is no beginning", analysis.Metric{SuccessCondition: "result[0] < 1", StartWhen: "result[0] > 10"}, []any{}, -1,
			analysis.Pending},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := analysis.Judge(tc.metric, analysis.Progress{}, tc.result, tc.samples, noon); got.Phase != tc.want {
				t.Errorf("%s (%s), want %s", got.Phase, got.Message, tc.want)
			}
		})
	}
	begun := analysis.Judge(analysis.Metric{SuccessCondition: "result < 1", StartWhen: "result > 10"}, analysis.Progress{Count: 1}, 5.0, -1,
		noon)
	if begun.Phase != analysis.Failed {
		t.Errorf("a metric that has begun is %s: startWhen is asked once", begun.Phase)
	}
}

func TestCheckCondition(t *testing.T) {
	for _, good := range []string{"", "result >= 0.95", "result[0] < 5 && len(result) > 0", "result.a.b == 'x'",
		"isNaN(result) || asFloat(result) < 1", "default(result, 0) < 1"} {
		if err := analysis.CheckCondition(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	if err := analysis.CheckCondition("result > {{args.x}}"); err == nil || !strings.Contains(err.Error(), "{{args.x}}") {
		t.Errorf("an argument that is not filled in: %v", err)
	}
	if err := analysis.CheckCondition("result > {{ release.elapsed }}"); err == nil ||
		!strings.Contains(err.Error(), "{{ release.elapsed }}: only") {
		t.Errorf("a condition with the time: %v", err)
	}
	for _, bad := range []string{"result >", "result[", "foo(result)", "result = 1", "1 +"} {
		if err := analysis.CheckCondition(bad); err == nil {
			t.Errorf("%q is taken for a condition", bad)
		}
	}
}

func TestShort(t *testing.T) {
	cases := map[string]any{"0.005": 0.005, "[0.99 1]": []any{0.99, 1.0}, `{"a":1}`: map[string]any{"a": 1}, "": nil, "yes": "yes",
		"NaN": math.NaN()}
	for want, v := range cases {
		if got := analysis.Short(v); got != want {
			t.Errorf("short(%v) = %q, want %q", v, got, want)
		}
	}
	ones := slices.Repeat([]any{1.0}, 1000)
	for want, v := range map[string]any{"0.1235": 0.123456, "123.5": 123.456, "[" + strings.Repeat("1 ", 60): ones} {
		if got := analysis.Short(v); !strings.HasPrefix(got, want[:min(len(want), 100)]) || len(got) > 130 {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := analysis.Short(map[string]any{"a": math.NaN()}); got != "map[string]interface {}" {
		t.Errorf("a value that is not JSON is shown as %q", got)
	}
	if got := analysis.Short(strings.Repeat("x", 500)); len(got) > 130 {
		t.Errorf("%d letters are kept", len(got))
	}
}
