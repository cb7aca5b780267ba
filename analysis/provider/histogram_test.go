package provider_test

import (
	"math"
	"net/url"
	"os"
	"testing"

	"gitrollout.dev/gitrollout/analysis"
)

const latencies = `sum by (le) (increase(http_request_duration_seconds_bucket[60s]))`

// recorded returns the answer of a real Prometheus 2.42 to a query for a histogram of four requests. The test TestRecordHistograms of
// internal/e2e/traffic has recorded the answer.
func recorded(kind string) string {
	body, err := os.ReadFile("testdata/prometheus-" + kind + ".json")
	if err != nil {
		panic(err)
	}
	return string(body)
}

const severalSeries = "the query returns several series: sum by (le)"

var histogramContract = contract{
	kind: "prometheus", name: "histogram", compare: &analysis.Compare{Histogram: true},
	doc:    "https://prometheus.io/docs/prometheus/latest/querying/api/#native-histograms",
	config: "{address: '" + asReader + "/prom', query: '" + latencies + "', headers: [{key: X-Scope-OrgID, value: tenant_a}]}",
	serve:  servePrometheus("/prom/api/v1/query", url.Values{"query": {latencies}}),
	answers: []canned{
		{name: "one", reply: recorded("classic"), want: buckets(0.005, 0, 0.01, 0, 0.025, 1, 0.05, 2, 0.1, 3, 0.25, 4, 0.5, 4, 1, 4,
			2.5, 4, 5, 4, 10, 4, math.Inf(1), 4)},
		{name: "native", reply: recorded("native"), want: buckets(0.018581361171917516, 0, 0.020263118041422026, 1, 0.03716272234383503, 1,
			0.04052623608284405, 2, 0.0625, 2, 0.0681567332915786, 3, 0.125, 3, 0.1363134665831572, 4, math.Inf(1), 4)},
		{name: "empty", reply: promReply("vector", `[]`), want: nil},
		{name: "in another order", reply: promReply("vector", `[{"metric":{"le":"+Inf"},"value":[1,"5"]},`+
			`{"metric":{"le":"10"},"value":[1,"4"]},`+
			`{"metric":{"le":"2.5e-1"},"value":[1,"3"]}]`), want: buckets(0.25, 3, 10, 4, math.Inf(1), 5)},
		{name: "NaN", reply: promReply("vector", `[{"metric":{"le":"0.1"},"value":[1,"NaN"]},{"metric":{"le":"+Inf"},"value":[1,"NaN"]}]`),
			want: buckets(0.1, math.NaN(), math.Inf(1), math.NaN())},
		{name: "no +Inf", reply: promReply("vector", `[{"metric":{"le":"0.1"},"value":[1,"3"]}]`), want: buckets(0.1, 3)},
		{name: "gaps", want: buckets(1, 0, 2, 3, 4, 3, 8, 5, math.Inf(1), 6), reply: promReply("vector", `[{"metric":{},"histogram":[1,`+
			`{"count":"6","sum":"20","buckets":[[0,"1","2","3"],[0,"4","8","2"]]}]}]`)},
		{name: "the zero bucket", want: buckets(-0.001, 0, 0.001, 2, math.Inf(1), 2), reply: promReply("vector",
			`[{"metric":{},"histogram":[1,{"count":"2","sum":"0","buckets":[[3,"-0.001","0.001","2"]]}]}]`)},
		{name: "up to infinity", want: buckets(1, 0, math.Inf(1), 2), reply: promReply("vector",
			`[{"metric":{},"histogram":[1,{"count":"2","sum":"+Inf","buckets":[[0,"1","+Inf","2"]]}]}]`)},
		{name: "no requests", want: buckets(math.Inf(1), 0),
			reply: promReply("vector", `[{"metric":{},"histogram":[1,{"count":"0","sum":"0"}]}]`)},

		{name: "two pods", err: severalSeries, reply: promReply("vector",
			`[{"metric":{"le":"0.1","pod":"a"},"value":[1,"3"]},{"metric":{"le":"0.1","pod":"b"},"value":[1,"3"]}]`)},
		{name: "one pod", err: severalSeries, reply: promReply("vector", `[{"metric":{"le":"0.1","pod":"a"},"value":[1,"3"]}]`)},
		{name: "two native", err: severalSeries, reply: promReply("vector", `[{"metric":{},"histogram":[1,{"count":"0"}]},`+
			`{"metric":{},"histogram":[1,{"count":"0"}]}]`)},
		{name: "one native pod", err: severalSeries, reply: promReply("vector", `[{"metric":{"pod":"a"},"histogram":[1,{"count":"0"}]}]`)},
		{name: "both kinds", err: severalSeries, reply: promReply("vector", `[{"metric":{"le":"0.1"},"value":[1,"3"]},`+
			`{"metric":{},"histogram":[1,{"count":"0"}]}]`)},
		{name: "no le", err: "keep the label le", reply: promReply("vector", `[{"metric":{},"value":[1,"3"]}]`)},
		{name: "all values", err: "keep the label le", reply: promReply("matrix", `[{"metric":{"le":"1"},"values":[[1,"3"]]}]`)},
		{name: "le is a text", err: "keep the label le", reply: promReply("vector", `[{"metric":{"le":"fast"},"value":[1,"3"]}]`)},
		{name: "a short bucket", err: "invalid syntax", reply: promReply("vector",
			`[{"metric":{},"histogram":[1,{"count":"2","buckets":[[0,"1"]]}]}]`)},
		{name: "no count", err: "invalid syntax", reply: promReply("vector", `[{"metric":{},"histogram":[1,{}]}]`)},
		{name: "no pair", err: "differs from its documentation", reply: promReply("vector", `[{"metric":{},"histogram":[1]}]`)},
		{name: "no list", err: "differs from its documentation", reply: promReply("vector", `{}`)},
		{name: "lies", reply: `{"status":"error","error":"parse error"}`, err: "parse error"},
	},
}

// buckets returns a histogram from alternating bounds and counts.
func buckets(numbers ...float64) (h analysis.Histogram) {
	for i := 0; i < len(numbers); i += 2 {
		h = append(h, analysis.Bucket{Bound: numbers[i], Count: numbers[i+1]})
	}
	return h
}

// TestHistogramKeepsItsType checks that a bound that equals a Secret's value is not masked.
func TestHistogramKeepsItsType(t *testing.T) {
	b := newBench(t, histogramContract)
	b.request.Secrets = []string{"0.01"}
	b.wantValue(histogramContract.answers[0].want)
}
