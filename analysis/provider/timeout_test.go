package provider

import (
	"strings"
	"testing"
	"time"
)

// TestDefaultTimes checks the default timeouts, which are Argo Rollouts' where it has some.
func TestDefaultTimes(t *testing.T) {
	want := map[string]time.Duration{
		"prometheus": 30 * time.Second, "web": 10 * time.Second, "datadog": 10 * time.Second, "graphite": 10 * time.Second,
		"influxdb": 30 * time.Second, "skywalking": 30 * time.Second, "kayenta": 15 * time.Second, "webhook": 10 * time.Second,
		"cloudWatch": 30 * time.Second, "elasticsearch": 30 * time.Second, "job": 30 * time.Second, "loki": 30 * time.Second,
		"wavefront": 30 * time.Second,
		"newRelic":  15 * time.Second, // 5 for the query, and 10 for reporting its timeout
	}
	for kind, limit := range want {
		c, err := parse(kind, fromYAML(t, minimal[kind]))
		if err != nil || c.timeout() != limit {
			t.Errorf("%s: got %v, want %v", kind, c.timeout(), limit)
		}
	}
	for kind, change := range map[string][2]string{"prometheus": {"timeout", "40"}, "web": {"timeoutSeconds", "40"},
		"datadog": {"requestTimeout", "40s"}, "loki": {"timeout", "40"}, "webhook": {"timeout", "40s"}} {
		c, err := parse(kind, fromYAML(t, strings.TrimSuffix(minimal[kind], "}")+", "+change[0]+": "+change[1]+"}"))
		if err != nil || c.timeout() != 40*time.Second {
			t.Errorf("%s: got %v and %v", kind, c, err)
		}
	}
}
