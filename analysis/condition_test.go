package analysis

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

func TestJudge(t *testing.T) {
	for _, tc := range []struct {
		name    string
		metric  Metric
		result  any
		samples int
		want    Phase
	}{
		{"any result will do", Metric{}, 0.5, -1, Successful},
		{"the condition for success holds", Metric{SuccessCondition: "result < 0.01"}, 0.005, -1, Successful},
		{"its opposite is a failure", Metric{SuccessCondition: "result < 0.01"}, 0.05, -1, Failed},
		{"the condition for failure holds", Metric{FailureCondition: "result >= 0.01"}, 0.05, -1, Failed},
		{"its opposite is a success", Metric{FailureCondition: "result >= 0.01"}, 0.005, -1, Successful},
		{"failure is asked first", Metric{SuccessCondition: "true", FailureCondition: "result > 1"}, 2.0, -1, Failed},
		{"neither holds", Metric{SuccessCondition: "result < 1", FailureCondition: "result > 2"}, 1.5, -1, Inconclusive},
		{"a vector of Prometheus", Metric{SuccessCondition: "result[0] >= 0.95"}, []any{0.99}, -1, Successful},
		{"a vector of several values", Metric{SuccessCondition: "all(result, # < 5)"}, []any{1.0, 2.0}, -1, Successful},
		{"an index beyond the end cannot be evaluated", Metric{SuccessCondition: "result[1] > 0"}, []any{0.99}, -1, Errored},
		{"nor can an index into an empty result", Metric{SuccessCondition: "result[0] > 0"}, []any{}, -1, Errored},
		{"unless the condition allows an empty result", Metric{SuccessCondition: "len(result) == 0 || result[0] > 0"}, []any{}, -1, Successful},
		{"nil has a default", Metric{SuccessCondition: "default(result, 0) < 1"}, nil, -1, Successful},
		{"nil can be asked for", Metric{SuccessCondition: "isNil(result)"}, nil, -1, Successful},
		{"NaN is neither more nor less", Metric{SuccessCondition: "result < 1"}, math.NaN(), -1, Failed},
		{"unless the condition allows NaN", Metric{SuccessCondition: "isNaN(result) || result < 1"}, math.NaN(), -1, Successful},
		{"infinity can be asked for", Metric{FailureCondition: "isInf(result)"}, math.Inf(1), -1, Failed},
		{"texts become numbers", Metric{SuccessCondition: "asFloat(result) > 1.5"}, "2.5", -1, Successful},
		{"texts become whole numbers", Metric{SuccessCondition: "asInt(result) == 2"}, "2", -1, Successful},
		{"whole numbers of any size become numbers", Metric{SuccessCondition: "asFloat(result) > 1"}, uint64(1 << 63), -1, Successful},
		{"a text that is not a number", Metric{SuccessCondition: "asInt(result) == 2"}, "two", -1, Errored},
		{"fields of a JSON answer", Metric{SuccessCondition: "result.ok && result.count < 10"},
			map[string]any{"ok": true, "count": 5.0}, -1, Successful},
		{"a condition is true or false", Metric{SuccessCondition: "result"}, 1.0, -1, Errored},
		{"no data can be waited for", Metric{SuccessCondition: "result[0] > 0", OnNoData: rollout.NoDataWait}, []any{}, -1, Pending},
		{"not a number is no data", Metric{SuccessCondition: "result > 0", OnNoData: rollout.NoDataWait}, math.NaN(), -1, Pending},
		{"no data can pass", Metric{SuccessCondition: "result[0] > 0", OnNoData: rollout.NoDataPass}, nil, -1, Successful},
		{"no data can fail", Metric{SuccessCondition: "result[0] > 0", OnNoData: rollout.NoDataFail}, nil, -1, Failed},
		{"too few samples are none", Metric{SuccessCondition: "result < 1", MinSamples: 100}, 5.0, 7, Pending},
		{"enough samples are judged", Metric{SuccessCondition: "result < 1", MinSamples: 100}, 5.0, 100, Failed},
		{"an unknown number of samples is enough", Metric{SuccessCondition: "result < 1", MinSamples: 100}, 5.0, -1, Failed},
		{"no samples are too few", Metric{SuccessCondition: "result < 1", MinSamples: 1}, 5.0, 0, Pending},
		{"too few samples can pass", Metric{SuccessCondition: "result < 1", MinSamples: 1, OnNoData: rollout.NoDataPass}, 5.0, 0, Successful},
		{"nothing of nothing is asked about", Metric{SuccessCondition: "len(result) == 0"}, []any{}, 0, Successful},
		{"some data is data", Metric{SuccessCondition: "len(result) == 2", OnNoData: rollout.NoDataFail}, []any{math.NaN(), 1.0}, -1, Successful},
		{"nothing but NaN is none", Metric{SuccessCondition: "true", OnNoData: rollout.NoDataFail}, []any{math.NaN(), nil}, -1, Failed},
		{"an empty text is none", Metric{SuccessCondition: "true", OnNoData: rollout.NoDataFail}, "", -1, Failed},
		{"another text is some", Metric{SuccessCondition: "true", OnNoData: rollout.NoDataFail}, "x", -1, Successful},
		{"an empty mapping is some", Metric{SuccessCondition: "true", OnNoData: rollout.NoDataFail}, map[string]any{}, -1, Successful},
		{"a condition that cannot be evaluated decides nothing", Metric{FailureCondition: "result[1] > 0"}, []any{1.0}, -1, Errored},
		{"a text is not NaN", Metric{SuccessCondition: "isNaN(result)"}, "x", -1, Failed},
		{"a text is not infinite", Metric{SuccessCondition: "isInf(result)"}, "x", -1, Failed},
		{"minus infinity is infinite", Metric{SuccessCondition: "isInf(result)"}, math.Inf(-1), -1, Successful},
		{"a list is not a number", Metric{SuccessCondition: "asFloat(result) > 0"}, []any{1.0}, -1, Errored},
		{"default leaves a value as it is", Metric{SuccessCondition: "default(result, 0) == 5"}, 5.0, -1, Successful},
		{"a metric waits for startWhen", Metric{SuccessCondition: "result < 1", StartWhen: "result > 10"}, 5.0, -1, Pending},
		{"it begins when startWhen holds", Metric{SuccessCondition: "result < 100", StartWhen: "result > 10"}, 50.0, -1, Successful},
		{"no data is no beginning", Metric{SuccessCondition: "result[0] < 1", StartWhen: "result[0] > 10"}, []any{}, -1, Pending},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Judge(tc.metric, Progress{}, tc.result, tc.samples, noon); got.Phase != tc.want {
				t.Errorf("%s (%s), want %s", got.Phase, got.Message, tc.want)
			}
		})
	}
	begun := Judge(Metric{SuccessCondition: "result < 1", StartWhen: "result > 10"}, Progress{Count: 1}, 5.0, -1, noon)
	if begun.Phase != Failed {
		t.Errorf("a metric that has begun is %s: startWhen is asked once", begun.Phase)
	}
}

func TestCheckCondition(t *testing.T) {
	for _, good := range []string{"", "result >= 0.95", "result[0] < 5 && len(result) > 0", "result.a.b == 'x'",
		"isNaN(result) || asFloat(result) < 1", "default(result, 0) < 1"} {
		if err := checkCondition(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	if err := checkCondition("result > {{args.x}}"); err == nil || !strings.Contains(err.Error(), "{{args.x}}") {
		t.Errorf("an argument that is not filled in: %v", err)
	}
	if err := checkCondition("result > {{ release.elapsed }}"); err == nil || !strings.Contains(err.Error(), "{{ release.elapsed }}: only") {
		t.Errorf("a condition with the time: %v", err)
	}
	for _, bad := range []string{"result >", "result[", "foo(result)", "result = 1", "1 +"} {
		if err := checkCondition(bad); err == nil {
			t.Errorf("%q is taken for a condition", bad)
		}
	}
}

func TestShort(t *testing.T) {
	cases := map[string]any{"0.005": 0.005, "[0.99 1]": []any{0.99, 1.0}, `{"a":1}`: map[string]any{"a": 1}, "": nil, "yes": "yes",
		"NaN": math.NaN()}
	for want, v := range cases {
		if got := short(v); got != want {
			t.Errorf("short(%v) = %q, want %q", v, got, want)
		}
	}
	ones := slices.Repeat([]any{1.0}, 1000)
	for want, v := range map[string]any{"0.1235": 0.123456, "123.5": 123.456, "[" + strings.Repeat("1 ", 60): ones} {
		if got := short(v); !strings.HasPrefix(got, want[:min(len(want), 100)]) || len(got) > 130 {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := short(map[string]any{"a": math.NaN()}); got != "map[string]interface {}" {
		t.Errorf("a value that is not JSON is shown as %q", got)
	}
	if got := short(strings.Repeat("x", 500)); len(got) > 130 {
		t.Errorf("%d letters are kept", len(got))
	}
}
