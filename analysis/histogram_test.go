package analysis_test

import (
	"errors"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestHistogramRefused checks that the field histogram is refused for another provider than Prometheus, a range query, a query without
// {{elapsed}}, and equal queries for both versions.
func TestHistogramRefused(t *testing.T) {
	const sum = `sum by (le) (increase(b{hash="{{args.hash}}"}[{{elapsed}}s]))`
	for name, c := range map[string]struct{ provider, want string }{
		"accepted":          {"prometheus: {query: '" + sum + "'}", ""},
		"the whole release": {"prometheus: {query: '" + strings.ReplaceAll(sum, "elapsed", "release.elapsed") + "'}", ""},
		"another provider": {"loki: {query: '" + sum + "'}",
			"metrics[0].compare.histogram: conflicts with the provider loki; use prometheus, or remove histogram"},
		"a range query": {"prometheus: {query: '" + sum + "', rangeQuery: {start: now()}}",
			"metrics[0].provider.prometheus.rangeQuery: conflicts with compare; remove rangeQuery"},
		"no fixed start": {"prometheus: {query: '" + strings.ReplaceAll(sum, "{{elapsed}}s", "10m") + "'}",
			"metrics[0].provider.prometheus.query: has no {{elapsed}}, which compare.histogram needs; write sum by (le) (increase(" +
				`http_request_duration_seconds_bucket{pod_template_hash="{{args.hash}}"}[{{elapsed}}s]))`},
		"no argument":       {"prometheus: {query: '" + strings.ReplaceAll(sum, "{{args.hash}}", "x") + "'}", sameQuery},
		"stable's argument": {"prometheus: {query: '" + strings.ReplaceAll(sum, "args.hash", "args.stable") + "'}", sameQuery},
		"a fixed argument":  {"prometheus: {query: '" + strings.ReplaceAll(sum, "args.hash", "args.region") + "'}", sameQuery},
	} {
		text := "{args: [{name: hash}, {name: stable}, {name: region}], metrics: [{name: m, interval: 1m, " +
			"compare: {to: stable, histogram: true}, provider: {" + c.provider + "}}]}"
		got, err := analysis.Instantiate(templates(t, map[string]string{"a": text}), []analysis.TemplateRef{{"a", false}}, analysis.Values{
			Plain: map[string]string{"region": "eu"}, Pods: map[string]string{"hash": "Latest", "stable": "Stable"}}, nil)
		var invalid *rollout.InvalidError
		switch {
		case c.want == "" && (err != nil || !got[0].Compare.Histogram):
			t.Errorf("%s: %+v, error %v", name, got, err)
		case c.want != "" && !errors.As(err, &invalid):
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		case c.want != "":
			compare.CheckNamed(t, name, "spec."+c.want, invalid.Field+": "+invalid.Msg+"; "+invalid.Fix)
		}
	}
}

const sameQuery = "metrics[0].provider.prometheus: is the same for both versions, so compare would compare a version with itself; " +
	"use an argument that has podTemplateHashValue: Latest"
