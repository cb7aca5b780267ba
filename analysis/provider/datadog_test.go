package provider

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func datadogSecrets(address string) map[string]map[string]string {
	return map[string]map[string]string{"datadog": {"address": address, "api-key": token + "-api\n", "app-key": token + "-app"}}
}

func datadogAllowed(r *http.Request) bool {
	return r.Header.Get("DD-API-KEY") == token+"-api" && r.Header.Get("DD-APPLICATION-KEY") == token+"-app"
}

var datadogV1Contract = contract{
	kind: "datadog", name: "v1", doc: "https://docs.datadoghq.com/api/latest/metrics/#query-timeseries-points",
	config:  func(string) map[string]any { return map[string]any{"query": "avg:requests{service:shop}"} },
	secrets: datadogSecrets,
	serve: func(f *fake, w http.ResponseWriter, r *http.Request, _ string) bool {
		if !datadogAllowed(r) {
			return false
		}
		f.want(r, http.MethodGet, "/api/v1/query")
		f.wantEqual("query", r.URL.Query(), url.Values{"query": {"avg:requests{service:shop}"}, "from": {"1769860530"}, "to": {"1769860830"}})
		f.send(w, "application/json")
		return true
	},
	answers: []canned{
		{name: "one", reply: `{"status":"ok","series":[{"metric":"requests","pointlist":[[1430311800000,98.19]]}]}`, want: 98.19},
		{name: "several", reply: `{"status":"ok","series":[{"pointlist":[[1,1],[2,2.5],[3,null]]},{"pointlist":[[1,9]]}]}`, want: 2.5},
		{name: "empty", reply: `{"status":"ok","series":[]}`, want: nil},
		{name: "no points", reply: `{"status":"ok","series":[{"pointlist":[]}]}`, want: nil},
		{name: "lies", reply: `{"status":"error","error":"Rule 'scope_expr' didn't match"}`,
			err: "an error of Datadog: Rule 'scope_expr' didn't match"},
		{name: "another API", reply: `{}`, err: "it has no series"},
		{name: "no pair", reply: `{"series":[{"pointlist":[[1]]}]}`, err: "a point is no pair"},
	},
}

var datadogV2Contract = contract{
	kind: "datadog", name: "v2", doc: "https://docs.datadoghq.com/api/latest/metrics/#query-scalar-data-across-multiple-products",
	config: func(string) map[string]any {
		return map[string]any{
			"apiVersion": "v2", "interval": "10m", "aggregator": "sum", "formula": "a / b",
			"secretRef": map[string]any{"name": "mine", "namespaced": true},
			"queries":   map[string]any{"b": "sum:requests{*}", "a": "sum:errors{*}"},
		}
	},
	secrets: func(address string) map[string]map[string]string {
		return map[string]map[string]string{"shop/mine": datadogSecrets(address)["datadog"]}
	},
	serve: func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
		if !datadogAllowed(r) {
			return false
		}
		f.want(r, http.MethodPost, "/api/v2/query/scalar")
		f.wantEqual("Content-Type", r.Header.Get("Content-Type"), "application/json")
		var got any
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			f.t.Errorf("the body is no JSON: %v", err)
		}
		query := func(name, text string) any {
			return map[string]any{"aggregator": "sum", "data_source": "metrics", "name": name, "query": text}
		}
		f.wantEqual("body", got, any(map[string]any{"data": map[string]any{"type": "scalar_request", "attributes": map[string]any{
			"from": 1769860230000.0, "to": 1769860830000.0, "formulas": []any{map[string]any{"formula": "a / b"}},
			"queries": []any{query("a", "sum:errors{*}"), query("b", "sum:requests{*}")},
		}}}))
		f.send(w, "application/json")
		return true
	},
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

// TestDatadogCredentials looks for credentials where Argo Rollouts does.
func TestDatadogCredentials(t *testing.T) {
	c := datadogV1Contract
	c.secrets = nil
	c.env = func(address string) map[string]string {
		return map[string]string{"DD_API_KEY": token + "-api", "DD_APP_KEY": token + "-app", "DD_ADDRESS": address}
	}
	b := newBench(t, c)
	b.reply = c.answers[0].reply
	if got, err := b.measure(t.Context()); err != nil || got.Value != 98.19 {
		t.Errorf("of the environment: got %v and %v", got, err)
	}
	b.request.Config["secretRef"] = map[string]any{"name": "other"}
	if _, err := b.measure(t.Context()); err == nil || !strings.Contains(err.Error(), "read the Secret other: not found") {
		t.Errorf("of a Secret that is not there: got %v", err)
	}
	c = datadogV1Contract
	c.secrets = func(string) map[string]map[string]string {
		return map[string]map[string]string{"datadog": {"api-key": token}}
	}
	b = newBench(t, c)
	if _, err := b.measure(t.Context()); err == nil || err.Error() != "the Secret datadog has no app-key" {
		t.Errorf("of a Secret without a key: got %v", err)
	}
}

var newRelicContract = contract{
	kind: "newRelic", doc: "https://docs.newrelic.com/docs/apis/nerdgraph/examples/nerdgraph-nrql-tutorial/",
	config: func(string) map[string]any {
		return map[string]any{"query": "FROM Transaction SELECT percentage(count(*), WHERE httpResponseCode != 500) as rate",
			"profile": "my-newrelic", "timeout": 10}
	},
	secrets: func(address string) map[string]map[string]string {
		return map[string]map[string]string{"my-newrelic": {"personal-api-key": token, "account-id": "1234567", "region": "us",
			"base-url-nerdgraph": address + "/graphql"}}
	},
	serve: func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
		if r.Header.Get("Api-Key") != token {
			return false
		}
		f.want(r, http.MethodPost, "/graphql")
		var got struct {
			Query     string         `json:"query"`
			Variables map[string]any `json:"variables"`
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || !strings.Contains(got.Query, "nrql(query: $query, timeout: $timeout)") {
			f.t.Errorf("the query is %q, %v", got.Query, err)
		}
		f.wantEqual("variables", got.Variables, map[string]any{
			"accountId": 1234567.0, "timeout": 10.0, "query": "FROM Transaction SELECT percentage(count(*), WHERE httpResponseCode != 500) as rate",
		})
		f.send(w, "application/json")
		return true
	},
	answers: []canned{
		{name: "one", reply: `{"data":{"actor":{"account":{"nrql":{"results":[{"rate":99.5}]}}}}}`, want: map[string]any{"rate": 99.5}},
		{name: "several", reply: `{"data":{"actor":{"account":{"nrql":{"results":[{"count":1},{"count":2}]}}}}}`,
			want: []any{map[string]any{"count": 1.0}, map[string]any{"count": 2.0}}},
		{name: "empty", reply: `{"data":{"actor":{"account":{"nrql":{"results":[]}}}}}`, want: nil},
		{name: "empty row", reply: `{"data":{"actor":{"account":{"nrql":{"results":[{}]}}}}}`, want: nil},
		{name: "lies", reply: `{"data":{"actor":{"account":{"nrql":null}}},"errors":[{"message":"NRQL Syntax Error: Error at line 1"}]}`,
			err: "NRQL Syntax Error: Error at line 1"},
		{name: "no account", reply: `{"data":{"actor":{"account":null}}}`, err: "has no results"},
	},
}

var skywalkingContract = contract{
	kind: "skywalking", doc: "https://skywalking.apache.org/docs/main/latest/en/api/query-protocol/",
	config: func(address string) map[string]any {
		return map[string]any{
			"address": "http://" + userinfo + address[len("http://"):], "interval": "3m",
			"query": "query q($duration: Duration!) { service_apdex: readMetricsValues(duration: $duration) { label } }",
		}
	},
	serve: func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
		if _, password, _ := r.BasicAuth(); password != token {
			return false
		}
		f.want(r, http.MethodPost, "/graphql")
		var got struct {
			Variables any `json:"variables"`
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			f.t.Errorf("the body is no JSON: %v", err)
		}
		f.wantEqual("variables", got.Variables,
			any(map[string]any{"duration": map[string]any{"start": "2026-01-31 1157", "end": "2026-01-31 1200", "step": "MINUTE"}}))
		f.send(w, "application/json")
		return true
	},
	answers: []canned{
		{name: "one", reply: `{"data":{"service_apdex":{"values":{"values":[{"value":9900}]}}}}`,
			want: map[string]any{"service_apdex": map[string]any{"values": map[string]any{"values": []any{map[string]any{"value": 9900.0}}}}}},
		{name: "empty", reply: `{"data":null}`, want: nil},
		{name: "lies", reply: `{"data":null,"errors":[{"message":"Validation error"}]}`, err: "Validation error"},
		{name: "another API", reply: `{"x":1}`, err: "it has no data"},
	},
}
