package provider_test

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/analysis/provider"
)

// TestDefaultTimes checks the default timeouts. A provider that Argo Rollouts also has must use Argo Rollouts' default.
func TestDefaultTimes(t *testing.T) {
	want := map[string]time.Duration{
		"prometheus": 30 * time.Second, "web": 10 * time.Second, "datadog": 10 * time.Second, "graphite": 10 * time.Second,
		"influxdb": 30 * time.Second, "skywalking": 30 * time.Second, "kayenta": 15 * time.Second, "webhook": 10 * time.Second,
		"cloudWatch": 30 * time.Second, "elasticsearch": 30 * time.Second, "job": 30 * time.Second, "loki": 30 * time.Second,
		"wavefront": 30 * time.Second,
		"newRelic":  15 * time.Second, // 5 for the query, and 10 to report that the query took too long
	}
	for kind, limit := range want {
		got, err := provider.TimeoutOf(kind, fromYAML(t, minimal[kind]))
		if err != nil || got != limit {
			t.Errorf("%s: got %v, want %v", kind, got, limit)
		}
	}
	for kind, change := range map[string]string{"prometheus": "{timeout: 40}", "web": "{timeoutSeconds: 40}",
		"datadog": "{requestTimeout: 40s}", "loki": "{timeout: 40}", "webhook": "{timeout: 40s}"} {
		got, err := provider.TimeoutOf(kind, changed(t, kind, change))
		if err != nil || got != 40*time.Second {
			t.Errorf("%s: got %v and %v", kind, got, err)
		}
	}
}

// TestTimeout checks that Timeout returns 0 for an invalid configuration, and that Measure and Stop return errors.
func TestTimeout(t *testing.T) {
	good := provider.Request{Kind: "prometheus", Config: fromYAML(t, minimal["prometheus"])}
	bad := provider.Request{Kind: "loki", Config: fromYAML(t, "{query: up}")}
	if provider.Timeout(good) != 30*time.Second || provider.Timeout(bad) != 0 {
		t.Errorf("the timeouts are %s and %s", provider.Timeout(good), provider.Timeout(bad))
	}
	if _, err := provider.Measure(t.Context(), provider.Deps{}, bad); err == nil ||
		!strings.Contains(err.Error(), "loki.address: is missing") {
		t.Errorf("it is measured: %v", err)
	}
	if errGood, errBad := provider.Stop(t.Context(), provider.Deps{}, good),
		provider.Stop(t.Context(), provider.Deps{}, bad); errGood != nil || errBad == nil {
		t.Errorf("nothing to stop: %v; a configuration that is invalid: %v", errGood, errBad)
	}
}
