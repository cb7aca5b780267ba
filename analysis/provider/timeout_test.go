package provider

import (
	"strings"
	"testing"
	"time"
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
		c, err := parse(kind, fromYAML(t, minimal[kind]))
		if err != nil || c.timeout() != limit {
			t.Errorf("%s: got %v, want %v", kind, c.timeout(), limit)
		}
	}
	for kind, change := range map[string]string{"prometheus": "{timeout: 40}", "web": "{timeoutSeconds: 40}",
		"datadog": "{requestTimeout: 40s}", "loki": "{timeout: 40}", "webhook": "{timeout: 40s}"} {
		c, err := parse(kind, changed(t, kind, change))
		if err != nil || c.timeout() != 40*time.Second {
			t.Errorf("%s: got %v and %v", kind, c, err)
		}
	}
}

// TestTimeout checks that Timeout returns 0 for an invalid configuration, and that Measure and Stop return errors.
func TestTimeout(t *testing.T) {
	good := Request{Kind: "prometheus", Config: fromYAML(t, minimal["prometheus"])}
	bad := Request{Kind: "loki", Config: fromYAML(t, "{query: up}")}
	if Timeout(good) != 30*time.Second || Timeout(bad) != 0 {
		t.Errorf("the timeouts are %s and %s", Timeout(good), Timeout(bad))
	}
	if _, err := Measure(t.Context(), Deps{}, bad); err == nil || !strings.Contains(err.Error(), "loki.address: is missing") {
		t.Errorf("it is measured: %v", err)
	}
	if errGood, errBad := Stop(t.Context(), Deps{}, good), Stop(t.Context(), Deps{}, bad); errGood != nil || errBad == nil {
		t.Errorf("nothing to stop: %v; a configuration that is invalid: %v", errGood, errBad)
	}
}
