package provider_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestArgoExamples checks that the examples of Argo Rollouts' documentation are valid, except those with a listed error.
func TestArgoExamples(t *testing.T) {
	data, err := os.ReadFile("testdata/argo.yaml")
	must(t, err)
	var examples []struct {
		From     string                    `json:"from"`
		Provider map[string]map[string]any `json:"provider"`
		Refused  string                    `json:"refused"`
	}
	must(t, yaml.Unmarshal(data, &examples))
	kinds := map[string]bool{}
	for _, e := range examples {
		for kind, config := range e.Provider {
			kinds[kind] = true
			compare.CheckNamed(t, e.From+": "+kind, cmp.Or(e.Refused, "<nil>"), fmt.Sprint(provider.Check(kind, config)))
		}
	}
	for _, p := range readDocsTexts(t) {
		if !p.Own && !kinds[p.Kind] {
			t.Errorf("there is no example of %s", p.Kind)
		}
	}
}

// minimal has the shortest valid configuration of each provider. Test cases change fields of a copy.
var minimal = map[string]string{
	"prometheus": "{address: http://p:9090, query: up}",
	"web":        "{url: http://x/y}",
	"job":        "{spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}",
	"datadog":    "{query: 'avg:x{*}'}",
	"newRelic":   "{query: FROM T SELECT count(*)}",
	"wavefront":  "{address: example.wavefront.com, query: ts(x)}",
	"kayenta": "{address: http://k, application: a, canaryConfigName: c, threshold: {pass: 90, marginal: 75}, " +
		"scopes: [{name: d, controlScope: {scope: a, step: 60}, experimentScope: {scope: b, step: 60}}]}",
	"cloudWatch":    "{metricDataQueries: [{id: a, expression: b}]}",
	"graphite":      "{address: http://g, query: target=a.b}",
	"influxdb":      "{query: 'from(bucket: \"a\")'}",
	"skywalking":    "{address: http://s, query: 'query q { x }'}",
	"loki":          "{address: http://l, query: 'sum(rate({a=\"b\"}[5m]))'}",
	"elasticsearch": "{address: http://e:9200, index: logs-*}",
	"opensearch":    "{address: https://search-o.eu-west-1.es.amazonaws.com, index: 'a,b', authentication: {sigv4: {}}}",
	"webhook":       "{url: http://x/gate}",
}

func TestMinimal(t *testing.T) {
	for _, kind := range provider.Kinds() {
		if err := provider.Check(kind, fromYAML(t, minimal[kind])); err != nil {
			t.Errorf("%s %s: %v", kind, minimal[kind], err)
		}
		if err := provider.Check(kind, nil); err == nil {
			t.Errorf("%s: nothing at all is accepted", kind)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fromYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	var config map[string]any
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return config
}

// changed returns the minimal configuration of a kind with changed fields. A field with the value ~ is removed.
func changed(t *testing.T, kind, change string) map[string]any {
	t.Helper()
	config := fromYAML(t, cmp.Or(minimal[kind], "{}"))
	for field, value := range fromYAML(t, change) {
		if config[field] = value; value == nil {
			delete(config, field)
		}
	}
	return config
}

// TestRefused checks that errors name the field, the mistake and the fix.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ kind, change, field, msg, fix string }{
		{"prometeus", "{}", "", "is not a provider", "use one of prometheus, web"},
		{"plugin", "{}", "", "is not a provider", "the provider web can query any HTTP service"},

		{"prometheus", "{query: ~}", ".query", "is missing", "PromQL"},
		{"prometheus", "{query: '  '}", ".query", "is missing", "PromQL"},
		{"prometheus", "{qurey: up}", ".qurey", "is not a known field", "did you mean query?"},
		{"prometheus", "{Query: up}", ".Query", "is not a known field", "did you mean query?"},
		{"prometheus", "{interval: 5m}", ".interval", "is not a known field", "beside provider"},
		{"prometheus", "{address: 'prometheus:9090'}", ".address", `"prometheus:9090" is not a URL`, "http://prometheus.monitoring:9090"},
		{"prometheus", "{address: 'http://p:99999'}", ".address", `"http://p:99999"`, "1 to 65535"},
		{"prometheus", "{address: 'ftp://me:s3cr3t@p?token=s3cr3t'}", ".address", `"ftp://p" is not a URL`, "http://"},
		{"prometheus", "{timeout: '30'}", ".timeout", "must be a whole number, not a string", "without quotes"},
		{"prometheus", "{timeout: 0}", ".timeout", "is 0", "1 to 600 seconds"},
		{"prometheus", "{timeout: -1}", ".timeout", "-1 is negative", "0 or more"},
		{"prometheus", "{insecure: 'yes'}", ".insecure", "must be true or false, not a string", "without quotes"},
		{"prometheus", "{headers: {X-A: b}}", ".headers", "must be a list, not a mapping", "dash"},
		{"prometheus", "{headers: [{key: 'X A', value: s3cr3t}]}", ".headers[0].key", `"X A" is not a valid header name`, "X-Scope-OrgID"},
		{"prometheus", `{headers: [{key: A, value: "s3cr3t\n"}]}`, ".headers[0].value", "more than one line", "remove the line break"},
		{"prometheus", "{headers: [{key: A, val: s3cr3t}]}", ".headers[0].val", "is not a known field", "did you mean value?"},
		{"prometheus", "{rangeQuery: {start: now(), step: 1m}}", ".rangeQuery.end", "is missing", `duration("5m")`},
		{"prometheus", "{rangeQuery: {start: 5m, end: now(), step: 1m}}", ".rangeQuery.start", `"5m" is not a moment`, `now() - duration("5m")`},
		{"prometheus", `{rangeQuery: {start: 'now() - duration("5 minutes")', end: now(), step: 1m}}`, ".rangeQuery.start",
			`"5 minutes" is not a duration`, "now()"},
		{"prometheus", "{rangeQuery: {start: now(), end: now()}}", ".rangeQuery.step", "is missing", "30s"},
		{"prometheus", "{rangeQuery: {start: now(), end: now(), step: 1 min}}", ".rangeQuery.step", `"1 min" is not a duration`, "30s, 5m"},
		{"prometheus", "{authentication: {oauth2: {tokenUrl: http://t, clientId: a}}}", ".authentication.oauth2.clientSecret",
			"is missing", "secretKeyRef"},
		{"prometheus", "{authentication: {oauth2: {clientId: a, clientSecret: s3cr3t}}}", ".authentication.oauth2.tokenUrl", "is missing", "URL"},
		{"prometheus", "{authentication: {basic: {username: a}}}", ".authentication.basic.password", "is missing", "secretKeyRef"},
		{"web", "{authentication: {basicAuth: {username: a}}}", ".authentication.basicAuth.password", "is missing", "secretKeyRef"},
		{"prometheus", "{authentication: {bearer: {}}}", ".authentication.bearer.token", "is missing", "secretKeyRef"},
		{"prometheus", "{authentication: {bearer: {token: s3cr3t}, basic: {username: a, password: s3cr3t}}}", ".authentication",
			"has 2 methods", "keep one: "},
		{"prometheus", "{authentication: {basicAuth: {username: a, password: s3cr3t}, oauth2: {tokenUrl: http://t, clientId: a, " +
			"clientSecret: s3cr3t}}}", ".authentication", "has 2 methods", "keep one: "},
		{"prometheus", "{authentication: {basicAuth: {password: s3cr3t}}}", ".authentication.basicAuth.username", "is missing", "name"},
		{"prometheus", "{authentication: {sigv4: {roleArn: metrics}}}", ".authentication.sigv4.roleArn", `"metrics" is not the ARN`,
			"arn:aws:iam::"},

		{"prometheus", "{address: 'https://aps-workspaces.eu-west-1.amazonaws.com.example.com/w', authentication: {sigv4: {}}}", ".address",
			`"https://aps-workspaces.eu-west-1.amazonaws.com.example.com/w" is not an AWS server`, "remove sigv4"},
		{"opensearch", "{address: 'https://o:9200'}", ".address", `"https://o:9200" is not an AWS server`, "remove sigv4"},

		{"web", "{url: ~}", ".url", "is missing", "URL"},
		{"web", "{method: DELETE}", ".method", `is "DELETE"`, "GET, POST, PUT"},
		{"web", "{method: post}", ".method", `is "post"`, "GET, POST, PUT"},
		{"web", "{body: x}", ".body", "the method is GET", "method: POST"},
		{"web", "{jsonBody: {a: 1}}", ".jsonBody", "the method is GET", "method: POST"},
		{"web", "{method: POST, body: x, jsonBody: {a: 1}}", ".jsonBody", "conflicts with body", "keep only"},
		{"web", "{jsonPath: $.data}", ".jsonPath", `"$.data" is not in braces`, "{$.data.value}"},
		{"web", "{jsonPath: '{$.data[}'}", ".jsonPath", "cannot be read: unterminated array", "{$.data.value}"},
		{"web", "{timeoutSeconds: -5}", ".timeoutSeconds", "-5 is negative", "0 or more"},
		{"web", "{timeoutSeconds: 20s}", ".timeoutSeconds", "must be a whole number", "a whole number, without quotes"},
		{"prometheus", "{authentication: {sigv4: {}}, headers: [{key: host, value: aps-workspaces.eu-west-1.amazonaws.com}]}",
			".headers", "have a Host, but sigv4 signs for the host of the address", "leave Host out"},
		{"web", "{authentication: {sigv4: {region: eu-west-1}}}", ".authentication.sigv4", "does not work with this provider", "prometheus and opensearch"},

		{"job", "{spec: ~}", ".spec", "is missing", "spec of a Job"},
		{"job", "{spec: {template: {}}}", ".spec.template.spec", "is missing", "containers"},
		{"job", "{spec: {backofLimit: 1, template: {}}}", ".spec.backofLimit", "is not a field", "backoffLimit"},
		{"job", "{spec: {template: {spec: {restartPolicy: Always, containers: [{name: a, image: b}]}}}}", ".spec.template.spec.restartPolicy",
			`is "Always"`, "Never or OnFailure"},
		{"job", "{spec: {template: {spec: {containers: [{name: a, image: b}]}}}}", ".spec.template.spec.restartPolicy", "is missing",
			"Never or OnFailure"},
		{"job", "{spec: {template: {spec: {restartPolicy: Never, containers: []}}}}", ".spec.template.spec.containers", "is missing",
			"name and image"},
		{"job", "{spec: {template: {spec: {restartPolicy: Never, containers: [{name: a}]}}}}", ".spec.template.spec.containers[0].image",
			"is missing", "image"},
		{"job", "{metadata: {name: x}}", ".metadata.name", "is not a known field", "use one of annotations, labels"},

		{"datadog", "{query: ~}", ".query", "is missing", "apiVersion: v2"},
		{"datadog", "{apiVersion: v3}", ".apiVersion", `is "v3"`, "v1, v2"},
		{"datadog", "{queries: {a: b}}", ".queries", "conflict with query", "keep only one"},
		{"datadog", "{query: ~, queries: {a: b}}", ".queries", "the API is v1", "apiVersion: v2"},
		{"datadog", "{query: ~, apiVersion: v2, queries: {a: b, c: d}}", ".formula", "there are 2 queries", "a / b"},
		{"datadog", "{query: ~, apiVersion: v2, queries: {bad: b, of: d, c: e}}", ".formula", "there are 3 queries", "a / b"},
		{"datadog", "{query: ~, apiVersion: v2, queries: {bad: b, all: d}}", ".formula", "there are 2 queries", "a / b"},
		{"datadog", "{query: ~, queries: {bad: b, of: d}}", ".queries", "the API is v1", "apiVersion: v2"},
		{"datadog", "{apiVersion: v2, formula: a}", ".formula", "without queries", "give the queries"},
		{"datadog", "{aggregator: sum}", ".aggregator", `is "sum", but the API is v1`, "apiVersion: v2"},
		{"datadog", "{apiVersion: v2, aggregator: median}", ".aggregator", `is "median"`, "avg, min, max"},
		{"datadog", "{requestTimeout: 0s}", ".requestTimeout", `"0s" is not a duration`, "30s"},
		{"datadog", "{secretRef: {namespaced: true}}", ".secretRef.name", "is missing", "namespace"},
		{"datadog", "{secretRef: {name: My Secret}}", ".secretRef.name", `"My Secret"`, "small letters"},

		{"newRelic", "{timeout: 6000}", ".timeout", "is 6000", "1 to 600"},
		{"newRelic", "{profile: A_B}", ".profile", `"A_B" is not a valid Secret name`, "small letters"},
		{"wavefront", "{address: 'a b'}", ".address", `"a b" is not a host`, "example.wavefront.com"},
		{"wavefront", "{address: ~}", ".address", "is missing", "example.wavefront.com"},
		{"kayenta", "{threshold: ~}", ".threshold", "is missing", "pass and marginal"},
		{"kayenta", "{threshold: {pass: 50, marginal: 75}}", ".threshold", "pass 50 and marginal 75", "marginal at most pass"},
		{"kayenta", "{scopes: []}", ".scopes", "is missing", "compare"},
		{"kayenta", "{scopes: [{name: d, controlScope: {scope: a, step: 60, start: x}, experimentScope: {scope: b, step: 60}}]}",
			".scopes[0].controlScope.start", "in only one scope", "both"},
		{"kayenta", "{scopes: [{name: d, controlScope: {scope: a}, experimentScope: {scope: b, step: 60}}]}",
			".scopes[0].controlScope.step", "is 0", "60"},
		{"cloudWatch", "{metricDataQueries: ~}", ".metricDataQueries", "is missing", "at least one"},
		{"cloudWatch", "{metricDataQueries: [{id: Rate, expression: a}]}", ".metricDataQueries[0].id",
			`"Rate" is not a valid id`, "small letter"},
		{"cloudWatch", "{metricDataQueries: [{id: a}]}", ".metricDataQueries[0]", "needs either expression", "exactly one"},
		{"cloudWatch", "{metricDataQueries: [{id: a, metricStat: {metric: {metricName: x}, stat: Sum, period: 1m}}]}",
			".metricDataQueries[0].metricStat.period", "is 1m", "60"},
		{"cloudWatch", "{metricDataQueries: [{id: a, metricStat: {metric: {metricName: x}, stat: Sum}}]}",
			".metricDataQueries[0].metricStat.period", "is missing", "60"},
		{"cloudWatch", "{metricDataQueries: [{id: a, expression: b, returnData: false}]}", ".metricDataQueries",
			"returnData: false", "remove it"},
		{"cloudWatch", "{interval: 5}", ".interval", "must be a string, not 5", "quote it"},
		{"cloudWatch", "{interval: five}", ".interval", `"five" is not a duration`, "5m"},
		{"graphite", "{query: sumSeries(a.b)}", ".query", `"sumSeries(a.b)" has no target`, "target="},
		{"graphite", "{address: graphite}", ".address", `"graphite" is not a URL`, "http://"},
		{"influxdb", "{query: ~}", ".query", "is missing", "Flux"},
		{"skywalking", "{query: service_apdex}", ".query", `"service_apdex" is not GraphQL`, "query q("},
		{"skywalking", "{interval: five}", ".interval", `"five" is not a duration`, "5m"},
		{"loki", "{address: ~}", ".address", "is missing", "Loki"},
		{"elasticsearch", "{index: ~}", ".index", "is missing", "logs-*"},
		{"elasticsearch", "{index: logs/_search}", ".index", `"logs/_search"`, "logs-*"},
		{"elasticsearch", "{query: 'level:error'}", ".query", `"level:error" is not a JSON object`, "search API"},
		{"elasticsearch", "{aggs: [1]}", ".aggs", "neither a mapping nor", "search API"},
		{"elasticsearch", "{authentication: {sigv4: {}}}", ".authentication.sigv4", "does not work with this provider", "opensearch"},
		{"webhook", "{url: ~}", ".url", "is missing", "posted"},
		{"webhook", "{type: bash}", ".type", `is "bash"`, "confirm-promotion, confirm-rollout"},
		{"webhook", "{retries: 100}", ".retries", "is 100", "0 to 10"},
		{"webhook", "{metadata: {a: 1}}", ".metadata[a]", "must be a string, not 1", "quote it"},
		{"webhook", "{timeout: 10}", ".timeout", "must be a string, not 10", "quote it"},
	} {
		err := provider.Check(c.kind, changed(t, c.kind, c.change))
		var got *rollout.InvalidError
		if !errors.As(err, &got) {
			t.Errorf("%s %s: got %v, want an InvalidError", c.kind, c.change, err)
			continue
		}
		if got.Field != "provider."+c.kind+c.field || !strings.Contains(got.Msg, c.msg) || !strings.Contains(got.Fix, c.fix) {
			t.Errorf("%s %s:\n got %q, %q, %q\nwant %q, %q, %q", c.kind, c.change, got.Field, got.Msg, got.Fix, c.field, c.msg, c.fix)
		}
		if strings.Contains(got.Error()+got.Fix, "s3cr3t") {
			t.Errorf("%s %s: %v tells a secret", c.kind, c.change, got)
		}
	}
}

// TestTaken checks that values at a limit are accepted, and that values just beyond the limit are refused.
func TestTaken(t *testing.T) {
	for _, c := range []struct {
		kind, change string
		taken        bool
	}{
		{"kayenta", "{threshold: {pass: 100, marginal: 100}}", true}, {"kayenta", "{threshold: {pass: 0, marginal: 0}}", true},
		{"kayenta", "{threshold: {pass: 101, marginal: 75}}", false}, {"kayenta", "{threshold: {pass: 50, marginal: -1}}", false},
		{"kayenta", "{threshold: {pass: -1, marginal: -1}}", false}, {"kayenta", "{threshold: {pass: 1, marginal: 2}}", false},
		{"kayenta", "{scopes: [{name: d, controlScope: {scope: a, step: 1}, experimentScope: {scope: b, step: 1}}]}", true},
		{"kayenta", "{scopes: [{name: d, controlScope: {scope: a, step: 1}, experimentScope: {scope: b}}]}", false},
		{"kayenta", "{scopes: [{name: d, controlScope: {scope: a, step: 1}, experimentScope: {scope: b, step: 1}}, {name: e}]}", false},
		{"webhook", "{retries: 0}", true}, {"webhook", "{retries: 10}", true}, {"webhook", "{retries: 11}", false},
		{"webhook", "{retries: -1}", false},
		{"prometheus", "{address: 'http://p:1'}", true}, {"prometheus", "{address: 'http://p:65535'}", true},
		{"prometheus", "{address: 'http://p:0'}", false}, {"prometheus", "{address: 'http://p:65536'}", false},
		{"datadog", "{query: ~, apiVersion: v2, queries: {bad: b, of: d}}", true}, // for a comparison
		{"elasticsearch", "{index: _all}", true}, {"elasticsearch", "{index: _x}", false}, {"elasticsearch", "{query: '{{args.q}}'}", true},
	} {
		if err := provider.Check(c.kind, changed(t, c.kind, c.change)); (err == nil) != c.taken {
			t.Errorf("%s %s: %v", c.kind, c.change, err)
		}
	}
	err := provider.Check("graphite", changed(t, "graphite", "{query: "+strings.Repeat("x", 61)+"}"))
	if text := fmt.Sprint(err); strings.Contains(text, strings.Repeat("x", 61)) || !strings.Contains(text, strings.Repeat("x", 50)) {
		t.Errorf("a long query is shown as %s", text)
	}
}

// TestArguments checks that each text field accepts a placeholder, whose value is filled in later.
func TestArguments(t *testing.T) {
	for _, kind := range provider.Kinds() {
		if kind == "cloudWatch" || kind == "job" {
			continue // testdata/argo.yaml has examples with arguments in nested fields
		}
		for _, placeholder := range []string{"{{ args.x }}", "{{elapsed}}", "{{ release.elapsed }}"} {
			config := fromYAML(t, minimal[kind])
			for field, value := range config {
				if _, ok := value.(string); ok {
					config[field] = placeholder
				}
			}
			if kind == "graphite" {
				config["query"] = "target=" + placeholder
			}
			if kind == "skywalking" {
				config["query"] = "query q { a(b: " + placeholder + ") }"
			}
			if err := provider.Check(kind, config); err != nil {
				t.Errorf("%s %v: %v", kind, config, err)
			}
		}
	}
}

func TestMoment(t *testing.T) {
	for text, want := range map[string]time.Time{
		"now()":                                 testNow,
		` now() - duration("5m")`:               testNow.Add(-5 * time.Minute),
		`now()-duration('1h')+duration("30s")`:  testNow.Add(-time.Hour + 30*time.Second),
		`date("2026-01-30T12:00:00Z")`:          time.Date(2026, 1, 30, 12, 0, 0, 0, time.UTC),
		`date('2026-01-30') + duration("-90m")`: time.Date(2026, 1, 29, 22, 30, 0, 0, time.UTC),
	} {
		if got, err := provider.Moment(text, testNow); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %s and %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "now", "now() - 5m", `now() - duration("x")`, `date("yesterday")`, `now() * duration("5m")`,
		`now(); now()`} {
		if got, err := provider.Moment(text, testNow); err == nil {
			t.Errorf("%q is %s", text, got)
		} else if strings.Contains(text, "yesterday") && err.Error() != `"yesterday" is not a date` {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzCheck checks that no configuration makes Check panic, and that each error is a *rollout.InvalidError.
func FuzzCheck(f *testing.F) {
	for _, kind := range provider.Kinds() {
		f.Add(kind, minimal[kind])
	}
	f.Fuzz(func(t *testing.T, kind, text string) {
		var config map[string]any
		if yaml.Unmarshal([]byte(text), &config) != nil {
			return
		}
		var invalid *rollout.InvalidError
		if err := provider.Check(kind, config); err != nil && !errors.As(err, &invalid) {
			t.Errorf("%s %s: %v is no *rollout.InvalidError", kind, text, err)
		}
	})
}
