package provider_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

var datadogKeys = map[string]string{"address": "ADDRESS", "api-key": token + "-api\n", "app-key": token + "-app"}

func datadogAllowed(r *http.Request) bool {
	return r.Header.Get("DD-API-KEY") == token+"-api" && r.Header.Get("DD-APPLICATION-KEY") == token+"-app"
}

var datadogV1Contract = contract{
	kind: "datadog", name: "v1", doc: "https://docs.datadoghq.com/api/latest/metrics/#query-timeseries-points",
	config:  "{query: 'avg:requests{service:shop}'}",
	secrets: map[string]map[string]string{"datadog": datadogKeys},
	serve: documented("GET /api/v1/query", datadogAllowed, func(f *fake, r *http.Request, _ string) {
		f.wantEqual("query", r.URL.Query(), url.Values{"query": {"avg:requests{service:shop}"}, "from": {"1769860530"}, "to": {"1769860830"}})
	}),
	answers: []canned{
		{name: "one", reply: `{"status":"ok","series":[{"metric":"requests","pointlist":[[1430311800000,98.19]]}]}`, want: 98.19},
		{name: "several", reply: `{"status":"ok","series":[{"pointlist":[[1,1],[2,2.5],[3,null]]},{"pointlist":[[1,9]]}]}`, want: 2.5},
		{name: "empty", reply: `{"status":"ok","series":[]}`, want: nil},
		{name: "no points", reply: `{"status":"ok","series":[{"pointlist":[]}]}`, want: nil},
		{name: "lies", reply: `{"status":"error","error":"Rule 'scope_expr' didn't match"}`,
			err: "an error of Datadog: Rule 'scope_expr' didn't match"},
		{name: "another API", reply: `{}`, err: "it has no series"},
		{name: "no pair", reply: `{"series":[{"pointlist":[[1]]}]}`, err: "a point is not a pair"},
	},
}

var datadogV2Contract = contract{
	kind: "datadog", name: "v2", doc: "https://docs.datadoghq.com/api/latest/metrics/#query-scalar-data-across-multiple-products",
	config: "{apiVersion: v2, interval: 10m, aggregator: sum, formula: a / b, secretRef: {name: mine, namespaced: true}, " +
		"queries: {b: 'sum:requests{*}', a: 'sum:errors{*}'}}",
	secrets: map[string]map[string]string{"shop/mine": datadogKeys},
	serve: documented("POST /api/v2/query/scalar", datadogAllowed, func(f *fake, r *http.Request, body string) {
		f.wantEqual("Content-Type", r.Header.Get("Content-Type"), "application/json")
		f.wantEqual("body", f.object(body), parsed(f.t, `{"data": {"type": "scalar_request", "attributes": {
			"from": 1769860230000, "to": 1769860830000, "formulas": [{"formula": "a / b"}], "queries": [
				{"aggregator": "sum", "data_source": "metrics", "name": "a", "query": "sum:errors{*}"},
				{"aggregator": "sum", "data_source": "metrics", "name": "b", "query": "sum:requests{*}"}]}}}`))
	}),
	answers: []canned{
		{name: "one", reply: `{"data":{"type":"scalar_response","attributes":{"columns":[{"name":"a / b","type":"number","values":[0.0145]}]}}}`,
			want: 0.0145},
		{name: "several",
			reply: `{"data":{"attributes":{"columns":[{"type":"group","values":[["prod"],["test"]]},{"type":"number","values":[3,4]}]}}}`,
			want:  3.0},
		{name: "empty", reply: `{"data":{"attributes":{"columns":[]}}}`, want: nil},
		{name: "null", reply: `{"data":{"attributes":{"columns":[{"type":"number","values":[null]}]}}}`, want: nil},
		{name: "lies", reply: `{"data":{"attributes":{"columns":[]},"errors":"bad formula"}}`, err: "bad formula"},
		{name: "lies otherwise", reply: `{"errors":["Invalid query input"]}`, err: "Invalid query input"},
	},
}

// TestDatadogCredentials checks that credentials come from environment variables or from a Secret, as in Argo Rollouts.
func TestDatadogCredentials(t *testing.T) {
	c := datadogV1Contract
	c.secrets = nil
	c.env = map[string]string{"DD_API_KEY": token + "-api", "DD_APP_KEY": token + "-app", "DD_ADDRESS": "ADDRESS"}
	b := newBench(t, c)
	b.wantValue(98.19)
	b.request.Config["secretRef"] = map[string]any{"name": "other"}
	b.wantError("read the Secret other: not found")
	c = datadogV1Contract
	c.secrets = map[string]map[string]string{"datadog": {"api-key": token}}
	compare.Check(t, "the Secret datadog has no app-key", newBench(t, c).wantError(""))
}

const newRelicQuery = "FROM Transaction SELECT percentage(count(*), WHERE httpResponseCode != 500) as rate"

var newRelicContract = contract{
	kind: "newRelic", doc: "https://docs.newrelic.com/docs/apis/nerdgraph/examples/nerdgraph-nrql-tutorial/",
	config: "{query: '" + newRelicQuery + "', profile: my-newrelic, timeout: 10}",
	secrets: map[string]map[string]string{"my-newrelic": {"personal-api-key": token, "account-id": "1234567", "region": "us",
		"base-url-nerdgraph": "ADDRESS/graphql"}},
	serve: documented("POST /graphql", hasHeader("Api-Key", token), func(f *fake, _ *http.Request, body string) {
		got := f.object(body)
		compare.Contains(f.t, fmt.Sprint(got["query"]), "nrql(query: $query, timeout: $timeout)")
		f.wantEqual("variables", got["variables"], map[string]any{"accountId": 1234567.0, "timeout": 10.0, "query": newRelicQuery})
	}),
	answers: []canned{
		{name: "one", reply: `{"data":{"actor":{"account":{"nrql":{"results":[{"rate":99.5}]}}}}}`, want: map[string]any{"rate": 99.5}},
		{name: "several", reply: `{"data":{"actor":{"account":{"nrql":{"results":[{"count":1},{"count":2}]}}}}}`,
			want: []any{map[string]any{"count": 1.0}, map[string]any{"count": 2.0}}},
		{name: "empty", reply: `{"data":{"actor":{"account":{"nrql":{"results":[]}}}}}`, want: nil},
		{name: "empty row", reply: `{"data":{"actor":{"account":{"nrql":{"results":[{}]}}}}}`, want: nil},
		{name: "lies", reply: `{"data":{"actor":{"account":{"nrql":null}}},"errors":[{"message":"NRQL Syntax Error: Error at line 1"}]}`,
			err: "NRQL Syntax Error: Error at line 1"},
		{name: "no account", reply: `{"data":{"actor":{"account":null}}}`, err: "lacks account.nrql"},
	},
}

var skywalkingContract = contract{
	kind: "skywalking", doc: "https://skywalking.apache.org/docs/main/latest/en/api/query-protocol/",
	config: "{address: '" + asReader + "', interval: 3m, query: 'query q($duration: Duration!) { service_apdex: " +
		"readMetricsValues(duration: $duration) { label } }'}",
	serve: documented("POST /graphql", isReader, func(f *fake, _ *http.Request, body string) {
		f.wantEqual("variables", f.object(body)["variables"],
			parsed(f.t, `{"duration": {"start": "2026-01-31 1157", "end": "2026-01-31 1200", "step": "MINUTE"}}`))
	}),
	answers: []canned{
		{name: "one", reply: `{"data":{"service_apdex":{"values":{"values":[{"value":9900}]}}}}`,
			want: map[string]any{"service_apdex": map[string]any{"values": map[string]any{"values": []any{map[string]any{"value": 9900.0}}}}}},
		{name: "empty", reply: `{"data":null}`, want: nil},
		{name: "lies", reply: `{"data":null,"errors":[{"message":"Validation error"}]}`, err: "Validation error"},
		{name: "another API", reply: `{"x":1}`, err: "it has no data"},
	},
}
