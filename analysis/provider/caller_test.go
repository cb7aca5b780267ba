package provider

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// scripted answers one request after the other with a status, the last one for
// ever, and counts them.
func scripted(t *testing.T, after string, statuses ...int) (*session, call, *atomic.Int64) {
	t.Helper()
	asked := &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := statuses[min(int(asked.Add(1)), len(statuses))-1]
		if status == 0 {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		w.Header().Set("Retry-After", after)
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	s := &session{deps: Deps{Client: func(bool) *http.Client { return server.Client() }, Now: func() time.Time { return testNow }, Backoff: time.Millisecond}}
	return s, call{method: http.MethodPost, base: server.URL, body: []byte("x")}, asked
}

// TestWhatIsTriedAgain: what may pass is, and what may have had an effect is not.
func TestWhatIsTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		after    string
		statuses []int
		once     bool
		asked    int
		ok       bool
	}{
		"at once":                       {"", []int{200}, false, 1, true},
		"passes":                        {"", []int{503, 502, 500, 200}, false, 4, true},
		"too late":                      {"", []int{503, 502, 500, 500, 200}, false, 4, false},
		"broken connection":             {"", []int{0, 200}, false, 2, true},
		"will not pass":                 {"", []int{400, 200}, false, 1, false},
		"is not there":                  {"", []int{501, 200}, false, 1, false},
		"asks for a short break":        {"0", []int{429, 200}, false, 2, true},
		"asks for a long break":         {"3600", []int{429, 200}, false, 1, false},
		"asks until":                    {testNow.Add(time.Hour).Format(http.TimeFormat), []int{503, 200}, false, 1, false},
		"with effects":                  {"", []int{500, 200}, true, 1, false},
		"with effects, broken":          {"", []int{0, 200}, true, 1, false},
		"with effects, not yet done":    {"", []int{503, 429, 200}, true, 3, true},
		"another status than it should": {"", []int{304, 200}, false, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, ask, asked := scripted(t, c.after, c.statuses...)
			ask.once = c.once
			_, err := s.do(t.Context(), ask)
			if (err == nil) != c.ok || int(asked.Load()) != c.asked {
				t.Errorf("asked %d times with %v, want %d times and %v", asked.Load(), err, c.asked, c.ok)
			}
		})
	}
}

// TestNoTimeForAnotherTry says what was wrong, not that time is up.
func TestNoTimeForAnotherTry(t *testing.T) {
	s, ask, asked := scripted(t, "5", 503)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := s.do(ctx, ask)
	var failed *requestError
	if !errors.As(err, &failed) || failed.status != 503 || asked.Load() != 1 {
		t.Errorf("asked %d times, got %v", asked.Load(), err)
	}
}

// TestDefaultTimes are Argo Rollouts' where it has any.
func TestDefaultTimes(t *testing.T) {
	want := map[string]time.Duration{
		"prometheus": 30 * time.Second, "web": 10 * time.Second, "datadog": 10 * time.Second, "graphite": 10 * time.Second,
		"influxdb": 30 * time.Second, "skywalking": 30 * time.Second, "kayenta": 15 * time.Second, "webhook": 10 * time.Second,
		"newRelic": 15 * time.Second, // 5 of the query's, and 10 to say that they are over
	}
	for kind, limit := range want {
		c, err := parse(kind, fromYAML(t, minimal[kind]))
		if err != nil || c.timeout() != limit {
			t.Errorf("%s: got %v, want %v", kind, c.timeout(), limit)
		}
	}
	for kind, change := range map[string][2]string{"prometheus": {"timeout", "40"}, "web": {"timeoutSeconds", "40"}, "datadog": {"requestTimeout", "40s"}, "loki": {"timeout", "40"}, "webhook": {"timeout", "40s"}} {
		c, err := parse(kind, fromYAML(t, strings.TrimSuffix(minimal[kind], "}")+", "+change[0]+": "+change[1]+"}"))
		if err != nil || c.timeout() != 40*time.Second {
			t.Errorf("%s: got %v and %v", kind, c, err)
		}
	}
}

func TestMessageOf(t *testing.T) {
	for body, want := range map[string]string{
		``: "(no reason given)", `<html>x</html>`: "(no reason given)", `{}`: "(no reason given)", `{"error":null}`: "(no reason given)",
		"no such\n thing": "no such thing", `{"message":"m"}`: "m", `{"error":{"reason":"r","type":"t"}}`: "r", `{"errors":["a",{"message":"b"}]}`: "a, b",
		strings.Repeat("x", 400): strings.Repeat("x", 299) + "…",
	} {
		if got := messageOf([]byte(body), func(text string) string { return text }); got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
	}
}
