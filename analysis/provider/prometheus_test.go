package provider

import (
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

// servePrometheus follows the documentation: POST with a form, answered with the documented examples.
func servePrometheus(path string, want url.Values) func(*fake, http.ResponseWriter, *http.Request, string) bool {
	return func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
		user, password, _ := r.BasicAuth()
		if user != "reader" || password != token {
			return false
		}
		f.want(r, http.MethodPost, path)
		f.wantEqual("Content-Type", r.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
		f.wantEqual("tenant", r.Header.Get("X-Scope-OrgID"), "tenant_a")
		form, err := url.ParseQuery(body)
		if err != nil {
			f.t.Errorf("the body is no form: %v", err)
		}
		f.wantEqual("form", form, want)
		f.send(w, "application/json")
		return true
	}
}

func prometheusConfigAt(address string) map[string]any {
	return map[string]any{
		"address": "http://" + userinfo + address[len("http://"):] + "/prom", "query": `sum(rate(errors{app="a&b"}[5m]))`,
		"headers": []any{map[string]any{"key": "X-Scope-OrgID", "value": "tenant_a"}},
	}
}

var prometheusAnswers = []canned{
	{name: "one",
		reply: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up"},"value":[1435781451.781,"0.97"]}]}}`,
		want:  []any{0.97}},
	{name: "several",
		reply: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]},{"metric":{},"value":[1,"-2.5e3"]}]}}`,
		want:  []any{1.0, -2500.0}},
	{name: "scalar", reply: `{"status":"success","data":{"resultType":"scalar","result":[1435781451.781,"3"]}}`, want: 3.0},
	{name: "pair",
		reply: `{"status":"success","data":{"resultType":"vector","result":[` +
			`{"metric":{"n":"of"},"value":[1,"100"]},{"metric":{"n":"bad"},"value":[1,"3"]}]}}`, want: []any{3.0, 100.0}},
	{name: "none bad", reply: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"n":"of"},"value":[1,"100"]}]}}`,
		want: []any{0.0, 100.0}},
	{name: "no total", reply: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"n":"bad"},"value":[1,"3"]}]}}`,
		want: []any{3.0}},
	{name: "other names",
		reply: `{"status":"success","data":{"resultType":"vector","result":[` +
			`{"metric":{"n":"b"},"value":[1,"1"]},{"metric":{"n":"a"},"value":[1,"2"]}]}}`, want: []any{1.0, 2.0}},
	{name: "three",
		reply: `{"status":"success","data":{"resultType":"vector","result":[` +
			`{"metric":{"n":"bad"},"value":[1,"1"]},{"metric":{"n":"of"},"value":[1,"2"]},{"metric":{"n":"bad"},"value":[1,"3"]}]}}`,
		want: []any{1.0, 2.0, 3.0}},
	{name: "empty", reply: `{"status":"success","data":{"resultType":"vector","result":[]}}`, want: []any{}},
	{name: "NaN",
		reply: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"NaN"]},{"metric":{},"value":[1,"+Inf"]}]}}`,
		want:  []any{math.NaN(), math.Inf(1)}},
	{name: "text", reply: `{"status":"success","data":{"resultType":"string","result":[1,"foo"]}}`, err: "ask for a number"},
	{name: "histogram", reply: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{"count":"60"}]}]}}`,
		err: "histogram_quantile"},
	{name: "lies", reply: `{"status":"error","errorType":"bad_data","error":"unknown function \"summ\""}`, err: `unknown function "summ"`},
	{name: "half a pair", reply: `{"status":"success","data":{"resultType":"scalar","result":[1]}}`, err: "differs from its documentation"},
	{name: "no pair", reply: `{"status":"success","data":{"resultType":"scalar","result":{}}}`, err: "differs from its documentation"},
	{name: "a number for a text", reply: `{"status":"success","data":{"resultType":"scalar","result":[1,2]}}`,
		err: "differs from its documentation"},
	{name: "another API", reply: `{"hello":"world"}`, err: "an error of Prometheus"},
	{name: "no number", reply: `{"status":"success","data":{"resultType":"scalar","result":[1,"three"]}}`, err: "no number"},
}

var prometheusContract = contract{
	kind: "prometheus", doc: "https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries",
	config:  prometheusConfigAt,
	serve:   servePrometheus("/prom/api/v1/query", url.Values{"query": {`sum(rate(errors{app="a&b"}[5m]))`}}),
	answers: prometheusAnswers,
}

var prometheusRangeContract = contract{
	kind: "prometheus", name: "range", doc: "https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries",
	config: func(address string) map[string]any {
		c := prometheusConfigAt(address)
		c["address"] = address + "/prom"
		c["authentication"] = map[string]any{"basicAuth": map[string]any{"username": "reader", "password": token}}
		c["rangeQuery"] = map[string]any{"start": `now() - duration("5m")`, "end": "now()", "step": "1m"}
		return c
	},
	serve: servePrometheus("/prom/api/v1/query_range", url.Values{
		"query": {`sum(rate(errors{app="a&b"}[5m]))`}, "start": {"1769860530"}, "end": {"1769860830"}, "step": {"60"},
	}),
	answers: []canned{
		{name: "one", reply: `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"900"]]}]}}`,
			want: []any{900.0}},
		{name: "several",
			reply: `{"status":"success","data":{"resultType":"matrix","result":[` +
				`{"metric":{},"values":[[1,"1"],[2,"2"]]},{"metric":{},"values":[[1,"3"]]}]}}`, want: []any{1.0, 2.0, 3.0}},
		{name: "empty", reply: `{"status":"success","data":{"resultType":"matrix","result":[]}}`, want: []any{}},
	},
}

var lokiContract = contract{
	kind: "loki", doc: "https://grafana.com/docs/loki/latest/reference/loki-http-api/#query-logs-at-a-single-point-in-time",
	config: func(address string) map[string]any {
		return map[string]any{
			"address": address, "query": `sum(count_over_time({app="shop"} |= "error" [5m]))`,
			"authentication": map[string]any{"basic": map[string]any{"username": "reader", "password": token}},
		}
	},
	serve: func(f *fake, w http.ResponseWriter, r *http.Request, _ string) bool {
		user, password, _ := r.BasicAuth()
		if user != "reader" || password != token {
			return false
		}
		f.want(r, http.MethodGet, "/loki/api/v1/query")
		f.wantEqual("query", r.URL.Query(), url.Values{"query": {`sum(count_over_time({app="shop"} |= "error" [5m]))`}})
		f.send(w, "application/json")
		return true
	},
	answers: []canned{
		{name: "one",
			reply: `{"status":"success","data":{"resultType":"vector","result":[` +
				`{"metric":{},"value":[1588889221,"1267.1266666666666"]}],"stats":{}}}`, want: []any{1267.1266666666666}},
		{name: "several",
			reply: `{"status":"success","data":{"resultType":"vector","result":[` +
				`{"metric":{"level":"warn"},"value":[1,"3"]},{"metric":{"level":"info"},"value":[1,"4"]}]}}`, want: []any{3.0, 4.0}},
		{name: "empty", reply: `{"status":"success","data":{"resultType":"vector","result":[]}}`, want: []any{}},
		{name: "lines", reply: `{"status":"success","data":{"resultType":"streams","result":[]}}`, err: "count_over_time"},
		{name: "lies", reply: `{"status":"error","error":"parse error"}`, err: "parse error"},
	},
}

// TestPrometheusAddress uses the address of the environment if the configuration has none.
func TestPrometheusAddress(t *testing.T) {
	for _, name := range prometheusAddresses {
		c := prometheusContract
		c.env = func(address string) map[string]string {
			return map[string]string{name: "http://" + userinfo + address[len("http://"):] + "/prom"}
		}
		b := newBench(t, c)
		delete(b.request.Config, "address")
		b.reply = c.answers[0].reply
		got, err := b.measure(t.Context())
		if diff := compare.Diff([]any{0.97}, got.Value); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	b := newBench(t, prometheusContract)
	delete(b.request.Config, "address")
	if _, err := b.measure(t.Context()); err == nil ||
		err.Error() != "there is no address: write prometheus.address, or set GITROLLOUT_PROMETHEUS_ADDRESS" {
		t.Errorf("without any address: %v", err)
	}
}

// TestPrometheusWithoutPost queries a server that allows only GET.
func TestPrometheusWithoutPost(t *testing.T) {
	c := prometheusContract
	c.serve = func(f *fake, w http.ResponseWriter, r *http.Request, _ string) bool {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return true
		}
		f.wantEqual("query", r.URL.Query().Get("query"), `sum(rate(errors{app="a&b"}[5m]))`)
		f.send(w, "application/json")
		return true
	}
	b := newBench(t, c)
	b.reply = `{"status":"success","warnings":["partial","slow"],"data":{"resultType":"scalar","result":[1,"3"]}}`
	got, err := b.measure(t.Context())
	want := Result{Value: 3.0,
		Metadata: map[string]string{"ResolvedPrometheusQuery": `sum(rate(errors{app="a&b"}[5m]))`, "warnings": "partial; slow"}}
	if diff := compare.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestSecretsOfArguments hides values from Secrets wherever they appear.
func TestSecretsOfArguments(t *testing.T) {
	c := prometheusContract
	c.serve = func(f *fake, w http.ResponseWriter, _ *http.Request, _ string) bool {
		f.send(w, "application/json")
		return true
	}
	b := newBench(t, c)
	b.request.Secrets = []string{"tok3n-of-app"}
	b.request.Config["query"] = `sum(rate(errors{key="tok3n-of-app"}[5m]))`
	b.reply = prometheusAnswers[0].reply
	got, err := b.measure(t.Context())
	if want := `sum(rate(errors{key="***"}[5m]))`; err != nil || got.Metadata["ResolvedPrometheusQuery"] != want {
		t.Errorf("got %v and %v, want the query %s", got, err, want)
	}
	b.reply = `{"status":"error","error":"no such key: tok3n-of-app"}`
	if _, err := b.measure(t.Context()); err == nil || err.Error() != "an error of Prometheus: no such key: ***" {
		t.Errorf("got %v", err)
	}
	b.mode = "500"
	if _, err := b.measure(t.Context()); err == nil || strings.Contains(err.Error(), "tok3n") {
		t.Errorf("got %v", err)
	}
}
