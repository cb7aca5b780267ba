package provider_test

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/internal/compare"
)

const errorRate = `sum(rate(errors{app="a&b"}[5m]))`

// servePrometheus follows the documentation: it accepts a POST with a form, and replies with the documented examples.
func servePrometheus(path string, want url.Values) server {
	return documented("POST "+path, isReader, func(f *fake, r *http.Request, body string) {
		f.wantEqual("Content-Type", r.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
		f.wantEqual("tenant", r.Header.Get("X-Scope-OrgID"), "tenant_a")
		f.wantEqual("form", f.form(body), want)
	})
}

func promReply(kind, result string) string {
	return `{"status":"success","data":{"resultType":"` + kind + `","result":` + result + `}}`
}

var prometheusAnswers = []canned{
	{name: "one", reply: promReply("vector", `[{"metric":{"__name__":"up"},"value":[1435781451.781,"0.97"]}]`), want: []any{0.97}},
	{name: "several", reply: promReply("vector", `[{"metric":{},"value":[1,"1"]},{"metric":{},"value":[1,"-2.5e3"]}]`),
		want: []any{1.0, -2500.0}},
	{name: "scalar", reply: promReply("scalar", `[1435781451.781,"3"]`), want: 3.0},
	{name: "names of a comparison", want: []any{100.0, 3.0},
		reply: promReply("vector", `[{"metric":{"n":"of"},"value":[1,"100"]},{"metric":{"n":"bad"},"value":[1,"3"]}]`)},
	{name: "one name of a comparison", reply: promReply("vector", `[{"metric":{"n":"of"},"value":[1,"100"]}]`), want: []any{100.0}},
	{name: "empty", reply: promReply("vector", `[]`), want: []any{}},
	{name: "NaN", reply: promReply("vector", `[{"metric":{},"value":[1,"NaN"]},{"metric":{},"value":[1,"+Inf"]}]`),
		want: []any{math.NaN(), math.Inf(1)}},
	{name: "text", reply: promReply("string", `[1,"foo"]`), err: "ask for a number"},
	{name: "histogram", reply: promReply("vector", `[{"metric":{},"histogram":[1,{"count":"60"}]}]`), err: "histogram_quantile"},
	{name: "lies", reply: `{"status":"error","errorType":"bad_data","error":"unknown function \"summ\""}`, err: `unknown function "summ"`},
	{name: "half a pair", reply: promReply("scalar", `[1]`), err: "differs from its documentation"},
	{name: "no pair", reply: promReply("scalar", `{}`), err: "differs from its documentation"},
	{name: "a number for a text", reply: promReply("scalar", `[1,2]`), err: "differs from its documentation"},
	{name: "another API", reply: `{"hello":"world"}`, err: "an error of Prometheus"},
	{name: "no number", reply: promReply("scalar", `[1,"three"]`), err: "is not a number"},
}

// pairAnswers are responses to a comparison's query. The label n names the values.
var pairAnswers = []canned{
	{name: "one", reply: promReply("vector", `[{"metric":{"n":"of"},"value":[1,"100"]},{"metric":{"n":"bad"},"value":[1,"3"]}]`),
		want: []any{3.0, 100.0}},
	{name: "none bad", reply: promReply("vector", `[{"metric":{"n":"of"},"value":[1,"100"]}]`), want: []any{0.0, 100.0}},
	{name: "no total", reply: promReply("vector", `[{"metric":{"n":"bad"},"value":[1,"3"]}]`), want: []any{3.0}},
	{name: "other names", reply: promReply("vector", `[{"metric":{"n":"b"},"value":[1,"1"]},{"metric":{"n":"a"},"value":[1,"2"]}]`),
		want: []any{1.0, 2.0}},
	{name: "three", err: `several series with n="bad"`, reply: promReply("vector",
		`[{"metric":{"n":"bad"},"value":[1,"1"]},{"metric":{"n":"of"},"value":[1,"2"]},{"metric":{"n":"bad"},"value":[1,"3"]}]`)},
	{name: "two totals", err: `several series with n="of"`, reply: promReply("vector",
		`[{"metric":{"n":"of","pod":"a"},"value":[1,"90"]},{"metric":{"n":"of","pod":"b"},"value":[1,"100"]}]`)},
	{name: "another series beside the total", err: `has a series without n="bad" or n="of"`, reply: promReply("vector",
		`[{"metric":{"n":"of"},"value":[1,"100"]},{"metric":{},"value":[1,"100"]}]`)},
	{name: "another series before the total", err: `has a series without n="bad" or n="of"`, reply: promReply("vector",
		`[{"metric":{},"value":[1,"100"]},{"metric":{"n":"of"},"value":[1,"100"]}]`)},
	{name: "empty", reply: promReply("vector", `[]`), want: []any{}},
	{name: "no list", reply: promReply("vector", `{}`), err: "differs from its documentation"},
	{name: "lies", reply: `{"status":"error","error":"parse error"}`, err: "parse error"},
}

var prometheusPairContract = contract{kind: "prometheus", name: "pair", compare: &analysis.Compare{}, doc: prometheusContract.doc,
	config: prometheusContract.config, serve: prometheusContract.serve, answers: pairAnswers}

var lokiPairContract = contract{kind: "loki", name: "pair", compare: &analysis.Compare{}, doc: lokiContract.doc,
	config: lokiContract.config, serve: lokiContract.serve, answers: pairAnswers}

var prometheusContract = contract{
	kind: "prometheus", doc: "https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries",
	config:  "{address: '" + asReader + "/prom', query: '" + errorRate + "', headers: [{key: X-Scope-OrgID, value: tenant_a}]}",
	serve:   servePrometheus("/prom/api/v1/query", url.Values{"query": {errorRate}}),
	answers: prometheusAnswers,
}

var prometheusRangeContract = contract{
	kind: "prometheus", name: "range", doc: "https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries",
	config: "{address: ADDRESS/prom, query: '" + errorRate + "', headers: [{key: X-Scope-OrgID, value: tenant_a}], " +
		"authentication: {basicAuth: {username: reader, password: " + token + "}}, " +
		"rangeQuery: {start: 'now() - duration(\"5m\")', end: now(), step: 1m}}",
	serve: servePrometheus("/prom/api/v1/query_range",
		url.Values{"query": {errorRate}, "start": {"1769860530"}, "end": {"1769860830"}, "step": {"60"}}),
	answers: []canned{
		{name: "one", reply: promReply("matrix", `[{"metric":{},"values":[[1,"900"]]}]`), want: []any{900.0}},
		{name: "several", reply: promReply("matrix", `[{"metric":{},"values":[[1,"1"],[2,"2"]]},{"metric":{},"values":[[1,"3"]]}]`),
			want: []any{1.0, 2.0, 3.0}},
		{name: "empty", reply: promReply("matrix", `[]`), want: []any{}},
	},
}

const logRate = `sum(count_over_time({app="shop"} |= "error" [5m]))`

var lokiContract = contract{
	kind: "loki", doc: "https://grafana.com/docs/loki/latest/reference/loki-http-api/#query-logs-at-a-single-point-in-time",
	config: "{address: ADDRESS, query: '" + logRate + "', authentication: {basic: {username: reader, password: " + token + "}}}",
	serve: documented("GET /loki/api/v1/query", isReader, func(f *fake, r *http.Request, _ string) {
		f.wantEqual("query", r.URL.Query(), url.Values{"query": {logRate}})
	}),
	answers: []canned{
		{name: "one", want: []any{1267.1266666666666}, reply: `{"status":"success","data":{"resultType":"vector","result":[` +
			`{"metric":{},"value":[1588889221,"1267.1266666666666"]}],"stats":{}}}`},
		{name: "several", reply: promReply("vector", `[{"metric":{"level":"warn"},"value":[1,"3"]},{"metric":{"level":"info"},"value":[1,"4"]}]`),
			want: []any{3.0, 4.0}},
		{name: "empty", reply: promReply("vector", `[]`), want: []any{}},
		{name: "lines", reply: promReply("streams", `[]`), err: "count_over_time"},
		{name: "lies", reply: `{"status":"error","error":"parse error"}`, err: "parse error"},
	},
}

// TestPrometheusAddress checks that the default address comes from the environment.
func TestPrometheusAddress(t *testing.T) {
	c := prometheusContract
	for _, name := range provider.PrometheusAddresses {
		c.env = map[string]string{name: asReader + "/prom"}
		b := newBench(t, c)
		delete(b.request.Config, "address")
		b.wantValue([]any{0.97})
	}
	b := newBench(t, prometheusContract)
	delete(b.request.Config, "address")
	compare.Check(t, "there is no address: set GITROLLOUT_PROMETHEUS_ADDRESS, or write prometheus.address", b.wantError(""))
}

// TestPrometheusWithoutPost checks that a query is repeated by GET if the server refuses POST.
func TestPrometheusWithoutPost(t *testing.T) {
	c := prometheusContract
	c.serve = func(f *fake, w http.ResponseWriter, r *http.Request, _ string) bool {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return true
		}
		f.wantEqual("query", r.URL.Query().Get("query"), errorRate)
		f.send(w)
		return true
	}
	b := newBench(t, c)
	b.reply = `{"status":"success","warnings":["partial","slow"],"data":{"resultType":"scalar","result":[1,"3"]}}`
	want := provider.Result{Value: 3.0, Metadata: map[string]string{"ResolvedPrometheusQuery": errorRate, "warnings": "partial; slow"}}
	compare.Check(t, want, b.wantValue(3.0))
}

// TestSecretsOfArguments checks that values of Secrets are masked in metadata and errors.
func TestSecretsOfArguments(t *testing.T) {
	c := prometheusContract
	c.serve = func(f *fake, w http.ResponseWriter, _ *http.Request, _ string) bool {
		f.send(w)
		return true
	}
	b := newBench(t, c)
	b.request.Secrets = []string{"tok3n-of-app"}
	b.request.Config["query"] = `sum(rate(errors{key="tok3n-of-app"}[5m]))`
	got := b.wantValue([]any{0.97})
	compare.CheckNamed(t, "the query", `sum(rate(errors{key="***"}[5m]))`, got.Metadata["ResolvedPrometheusQuery"])
	b.reply = `{"status":"error","error":"no such key: tok3n-of-app"}`
	compare.Check(t, "an error of Prometheus: no such key: ***", b.wantError(""))
	b.mode = "500"
	if text := b.wantError(""); strings.Contains(text, "tok3n") {
		t.Errorf("got %s", text)
	}
}

// TestDistinct checks how the values of a label are counted. Without a comparison, the result lists each series.
func TestDistinct(t *testing.T) {
	series := func(n, user, value string) string {
		return `{"metric":{"n":"` + n + `","user":"` + user + `"},"value":[1,"` + value + `"]}`
	}
	for name, c := range map[string]struct {
		kind   string // the result's type; default vector
		series []string
		want   any
		err    string
	}{
		"users": {series: []string{series("of", "ann", "900"), series("of", "bob", "0.2"), series("bad", "ann", "700")}, want: []any{1.0, 2.0}},
		"several series of a user": {want: []any{1.0, 1.0},
			series: []string{series("of", "ann", "9"), series("of", "ann", "1"), series("bad", "ann", "0"), series("bad", "ann", "1")}},
		"only failures of a user":   {series: []string{series("of", "ann", "9"), series("bad", "bob", "1")}, want: []any{1.0, 2.0}},
		"neither zero nor NaN":      {series: []string{series("of", "ann", "0"), series("bad", "bob", "NaN")}, want: []any{0.0, 0.0}},
		"some requests have a user": {series: []string{series("of", "", "9"), series("of", "ann", "1")}, want: []any{0.0, 1.0}},
		"nothing":                   {want: []any{}},
		"no total":                  {series: []string{series("bad", "ann", "1")}, want: []any{1.0}},
		"no label":                  {series: []string{series("of", "", "9")}, err: "no label user: keep it, as in sum by (user)"},
		"no names":                  {series: []string{series("", "ann", "9")}, err: `without n="bad" or n="of"`},
		"a range": {kind: "matrix", series: []string{`{"metric":{"n":"of","user":"ann"},"values":[[1,"9"]]}`},
			err: "a series without"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, prometheusContract)
			b.request.Compare = &analysis.Compare{By: "user"}
			b.reply = promReply(cmp.Or(c.kind, "vector"), "["+strings.Join(c.series, ",")+"]")
			if c.err != "" {
				b.wantError(c.err)
				return
			}
			b.wantValue(c.want)
		})
	}
	b := newBench(t, prometheusContract)
	b.reply = promReply("vector", "["+series("of", "ann", "1")+","+series("of", "bob", "1")+","+series("bad", "bob", "1")+"]")
	b.wantValue([]any{1.0, 1.0, 1.0})
}

// TestQueryTime checks that the query is evaluated at the request's time.
func TestQueryTime(t *testing.T) {
	for name, c := range map[string]contract{
		"instant": {config: prometheusContract.config, serve: servePrometheus("/prom/api/v1/query",
			url.Values{"query": {errorRate}, "time": {"1769860830"}})},
		"range": {config: prometheusRangeContract.config, serve: servePrometheus("/prom/api/v1/query_range",
			url.Values{"query": {errorRate}, "start": {"1769860530"}, "end": {"1769860830"}, "step": {"60"}})},
	} {
		t.Run(name, func(t *testing.T) {
			c.kind, c.answers = "prometheus", prometheusAnswers
			b := newBench(t, c)
			b.request.At = testNow
			b.wantValue([]any{0.97})
		})
	}
}
