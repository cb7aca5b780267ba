package traffic

import (
	"cmp"
	"os"
	"strings"
	"testing"
)

// measured is a test app with an analysis. By default, it has a canary strategy, and the Gateway routes its requests.
type measured struct {
	name     string
	version  string // "" is v1
	metric   string // list of the metrics of the AnalysisTemplate named errors
	fields   string // one line with more fields of the canary
	steps    []string
	plain    bool // no routing: the share of requests is the share of new pods
	switches bool // blue-green, measured after the switch
}

// These are the documentation's queries, limited to one namespace. A counter of failures exists only after the first failure, so no data
// counts as zero.
const (
	failed   = `sum(increase(http_requests_total{code="500",namespace="NS",pod_template_hash="{{args.hash}}"}[%[1]s])) or vector(0)`
	all      = `sum(increase(http_requests_total{namespace="NS",pod_template_hash="{{args.hash}}"}[%[1]s]))`
	share    = `(` + failed + `) / ` + all
	both     = `label_replace(` + failed + `, "n", "bad", "", "") or label_replace(` + all + ` or vector(0), "n", "of", "", "")`
	slowness = `histogram_quantile(0.9, sum by (le) ` +
		`(rate(http_request_duration_seconds_bucket{namespace="NS",pod_template_hash="{{args.hash}}"}[%[1]s])))`
)

// shipped returns the query of examples/analysis for one namespace.
func shipped(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../../../examples/analysis/apps/shop/base/analysis.yaml")
	must(t, err)
	_, query, _ := strings.Cut(string(raw), "query: |-\n")
	query, _, _ = strings.Cut(query, "\n---\n")
	return strings.ReplaceAll(strings.TrimSpace(query), "pod_template_hash=", `namespace="NS",pod_template_hash=`)
}

// metric returns a metric with the given further fields. Its query covers the period `back` before the measurement.
func metric(name, query, back string, fields ...string) string {
	query = strings.ReplaceAll(query, "%[1]s", back)
	return "  - name: " + name + "\n" + lines("    ", fields) +
		"    provider:\n      prometheus:\n        address: PROMETHEUS\n        timeout: 5\n        query: |\n          " + query + "\n"
}

// failuresBelow returns a metric named errors. A measurement is successful if the share of failures in the last 10 seconds is below the
// limit.
func failuresBelow(limit string, fields ...string) string {
	return metric("errors", share, "10s", append(fields, "onNoData: wait", "successCondition: result[0] < "+limit)...)
}

const (
	templates = `templates: [{templateName: errors}], args: [{name: hash, valueFrom: {podTemplateHashValue: Latest}}]`
	inline    = `analysis: {` + templates + `}`
)

// shop returns the test app with its strategy and its AnalysisTemplate.
func (m measured) shop() shop {
	fields := ""
	if m.fields != "" {
		fields = "      " + m.fields + "\n"
	}
	s := shop{provider: gateway, version: cmp.Or(m.version, "v1"), replicas: 10, route: gateway.routed, unasked: m.plain}
	s.name = m.name
	routing := `      stableService: shop-stable
      canaryService: shop-canary
      abortScaleDownDelaySeconds: 2
      scaleDownDelaySeconds: 2
      trafficRouting: {settle: SETTLE, gatewayAPI: {httpRoute: shop}}
`
	if m.plain {
		routing, s.replicas = "", 2
	}
	s.strategy = "    canary:\n      scaling: surge\n" + routing + fields + "      steps:\n" + lines("      - ", m.steps)
	if m.switches {
		s.strategy = `    blueGreen:
      activeService: shop-stable
      previewService: shop-canary
      scaleDownDelaySeconds: 30
      abortScaleDownDelaySeconds: 2
` + fields
	}
	s.template = `apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: errors}
spec:
  args: [{name: hash}, {name: token, valueFrom: {secretKeyRef: {name: metrics, key: token}}}]
  metrics:
` + m.metric
	return s
}
