package provider_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/internal/compare"
)

var datadogPairContract = contract{
	kind: "datadog", name: "pair", compare: &analysis.Compare{},
	doc: "https://docs.datadoghq.com/api/latest/metrics/#query-scalar-data-across-multiple-products",
	config: "{apiVersion: v2, interval: 60s, queries: {of: 'sum:requests{*}.as_count()', bad: 'sum:errors{*}.as_count()'}, " +
		"secretRef: {name: mine, namespaced: true}}",
	secrets: map[string]map[string]string{"shop/mine": datadogKeys},
	serve: documented("POST /api/v2/query/scalar", datadogAllowed, func(f *fake, _ *http.Request, body string) {
		f.wantEqual("body", f.object(body), parsed(f.t, `{"data": {"type": "scalar_request", "attributes": {
			"from": 1769860770000, "to": 1769860830000, "formulas": [{"formula": "bad"}, {"formula": "of"}], "queries": [
				{"aggregator": "sum", "data_source": "metrics", "name": "bad", "query": "sum:errors{*}.as_count()"},
				{"aggregator": "sum", "data_source": "metrics", "name": "of", "query": "sum:requests{*}.as_count()"}]}}}`))
	}),
	answers: []canned{
		{name: "one", reply: datadogReply("bad", "[3]", "of", "[100]"), want: []any{3.0, 100.0}},
		{name: "in another order", reply: datadogReply("of", "[100]", "bad", "[3]"), want: []any{3.0, 100.0}},
		{name: "bad is null", reply: datadogReply("bad", "[null]", "of", "[100]"), want: []any{0.0, 100.0}},
		{name: "bad is empty", reply: datadogReply("bad", "[]", "of", "[100]"), want: []any{0.0, 100.0}},
		{name: "no bad", reply: datadogReply("of", "[100]"), want: []any{0.0, 100.0}},
		{name: "of is null", reply: datadogReply("bad", "[3]", "of", "[null]"), want: []any{3.0}},
		{name: "no of", reply: datadogReply("bad", "[3]"), want: []any{3.0}},
		{name: "empty", reply: datadogReply(), want: []any{0.0}},
		{name: "groups", reply: datadogReply("env", `[["prod"],["test"]]`, "bad", "[3,4]", "of", "[5,6]"), err: "remove groups"},
		{name: "another name", reply: datadogReply("query1", "[3]", "of", "[100]"), err: `columns besides "bad" and "of"`},
		{name: "a text", reply: datadogReply("bad", `["3"]`, "of", "[100]"), err: "it is a string"},
		{name: "lies", reply: `{"data":{"attributes":{"columns":[]},"errors":"bad formula"}}`, err: "bad formula"},
	},
}

// datadogReply returns a response with columns, from alternating names and values.
func datadogReply(texts ...string) string {
	columns := []string{}
	for i := 0; i < len(texts); i += 2 {
		kind := "number"
		if strings.HasPrefix(texts[i+1], "[[") {
			kind = "group"
		}
		columns = append(columns, fmt.Sprintf(`{"name":%q,"type":%q,"values":%s}`, texts[i], kind, texts[i+1]))
	}
	return `{"data":{"type":"scalar_response","attributes":{"columns":[` + strings.Join(columns, ",") + `]}}}`
}

var cloudWatchPairContract = contract{
	kind: "cloudWatch", name: "pair", compare: &analysis.Compare{}, doc: cloudWatchContract.doc, content: "text/xml",
	config: "{interval: 2m, metricDataQueries: [{id: of, expression: SUM(METRICS())}, {id: bad, expression: a}, " +
		"{id: a, expression: b, returnData: false}]}",
	env: cloudWatchContract.env,
	serve: documented("POST /", hasHeader("X-Amz-Security-Token", token), func(f *fake, _ *http.Request, body string) {
		const q = "MetricDataQueries.member."
		f.wantEqual("form", f.form(body), url.Values{
			"Action": {"GetMetricData"}, "Version": {"2010-08-01"}, "StartTime": {"2026-01-31T11:58:30Z"}, "EndTime": {"2026-01-31T12:00:30Z"},
			q + "1.Id": {"of"}, q + "1.Expression": {"SUM(METRICS())"}, q + "2.Id": {"bad"}, q + "2.Expression": {"a"},
			q + "3.Id": {"a"}, q + "3.Expression": {"b"}, q + "3.ReturnData": {"false"},
		})
	}),
	answers: []canned{
		{name: "one", reply: cloudWatchPair("of", "100", "bad", "3"), want: []any{3.0, 100.0}},
		{name: "in another order", reply: cloudWatchPair("bad", "3", "of", "100"), want: []any{3.0, 100.0}},
		{name: "several", reply: cloudWatchPair("of", "60 40.0", "bad", "2 1.0"), want: []any{3.0, 100.0}},
		{name: "several series", reply: cloudWatchPair("of", "60", "of", "40", "bad", "3"), want: []any{3.0, 100.0}},
		{name: "another id", reply: cloudWatchPair("a", "7", "of", "100", "bad", "3"), want: []any{3.0, 100.0}},
		{name: "bad without values", reply: cloudWatchPair("of", "100", "bad", ""), want: []any{0.0, 100.0}},
		{name: "no bad", reply: cloudWatchPair("of", "100"), want: []any{0.0, 100.0}},
		{name: "of without values", reply: cloudWatchPair("of", "", "bad", "3"), want: []any{3.0}},
		{name: "no of", reply: cloudWatchPair("bad", "3"), want: []any{3.0}},
		{name: "empty", reply: cloudWatchPair(), want: []any{0.0}},
		{name: "a part", reply: strings.Replace(cloudWatchPair("of", "100", "bad", "3"), "Complete", "PartialData", 1),
			err: "an error of CloudWatch: of is PartialData"},
		{name: "forbidden", reply: strings.Replace(cloudWatchPair("bad", "", "of", "100"), "Complete", "Forbidden", 1),
			err: "an error of CloudWatch: bad is Forbidden"},
		{name: "no number", reply: cloudWatchPair("of", "x"), err: "a value is not a number"},
	},
}

// cloudWatchPair returns a response with results, from alternating ids and values.
func cloudWatchPair(texts ...string) string {
	var b strings.Builder
	for i := 0; i < len(texts); i += 2 {
		b.WriteString("<member><Id>" + texts[i] + "</Id><StatusCode>Complete</StatusCode><Values>")
		for _, value := range strings.Fields(texts[i+1]) {
			b.WriteString("<member>" + value + "</member>")
		}
		b.WriteString("</Values></member>")
	}
	return `<GetMetricDataResponse xmlns="http://monitoring.amazonaws.com/doc/2010-08-01/"><GetMetricDataResult><MetricDataResults>` +
		b.String() + `</MetricDataResults><Messages/></GetMetricDataResult></GetMetricDataResponse>`
}

// TestComparisons measures both versions with each provider whose results have the names "bad" and "of". Without "bad", there are 0 bad
// requests. Without "of", there are no requests.
func TestComparisons(t *testing.T) {
	prometheus := func(bad, of string) string {
		series := []string{}
		for _, one := range [][2]string{{"of", of}, {"bad", bad}} {
			if one[1] != "" {
				series = append(series, fmt.Sprintf(`{"metric":{"n":%q},"value":[1,%q]}`, one[0], one[1]))
			}
		}
		return promReply("vector", "["+strings.Join(series, ",")+"]")
	}
	datadog := func(bad, of string) string {
		return datadogReply("of", "["+cmp.Or(of, "null")+"]", "bad", "["+cmp.Or(bad, "null")+"]")
	}
	cloudWatch := func(bad, of string) string { return cloudWatchPair("of", of, "bad", bad) }
	for _, p := range []struct {
		contract
		reply func(bad, of string) string
	}{{prometheusPairContract, prometheus}, {datadogPairContract, datadog}, {cloudWatchPairContract, cloudWatch}} {
		for name, c := range map[string]struct {
			canary, stable [2]string // bad and of
			phase          analysis.Phase
			value          string
		}{
			"worse":       {[2]string{"30", "100"}, [2]string{"3", "100"}, analysis.Failed, "30 of 100 (30%), stable 3 of 100 (3%)"},
			"equal":       {[2]string{"3", "100"}, [2]string{"3", "100"}, analysis.Successful, "3 of 100 (3%), stable 3 of 100 (3%)"},
			"no bad":      {[2]string{"", "100"}, [2]string{"3", "100"}, analysis.Successful, "0 of 100 (0%), stable 3 of 100 (3%)"},
			"stable good": {[2]string{"30", "100"}, [2]string{"", "100"}, analysis.Failed, "30 of 100 (30%), stable 0 of 100 (0%)"},
			"no total":    {[2]string{"3", ""}, [2]string{"3", "100"}, analysis.Pending, "0 of 0, stable 3 of 100 (3%)"},
			"no stable":   {[2]string{"3", "100"}, [2]string{"3", ""}, analysis.Pending, "3 of 100 (3%), stable 0 of 0"},
		} {
			t.Run(p.kind+"/"+name, func(t *testing.T) {
				b := newBench(t, p.contract)
				measured := func(version [2]string) any {
					b.reply = p.reply(version[0], version[1])
					got, err := provider.Measure(t.Context(), b.deps, b.request)
					must(t, err)
					return got.Value
				}
				m := analysis.Metric{Name: "errors", Compare: p.compare}
				canary, stable := measured(c.canary), measured(c.stable)
				got, _ := analysis.JudgeComparison(m, analysis.Alone(m), analysis.Progress{}, testNow, canary, stable, testNow)
				compare.Check(t, c.phase, got.Phase)
				compare.Check(t, c.value, got.Value)
			})
		}
	}
}

// TestHalfAPairOfWavefront checks a comparison in which only one of two series has points yet. The resulting list is no error.
func TestHalfAPairOfWavefront(t *testing.T) {
	b := newBench(t, wavefrontContract)
	b.request.Compare = &analysis.Compare{}
	b.wantValue([]any{0.97})
}
