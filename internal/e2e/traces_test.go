package e2e

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"gitrollout.dev/gitrollout/internal/e2e/tracing"
)

// TestTraces runs gitrollout with an OTLP collector over HTTP and checks the spans of a release's pass: their kinds, parents and apps.
func TestTraces(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	spans := map[string]*otlp.Span{} // by ID
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		request, err := tracing.Decode(r)
		if err != nil {
			t.Errorf("decode: %v", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					spans[string(span.SpanId)] = span
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	app := newShop(1, "", "setWeight: 50")
	w := newWorld(t, app.files())
	w.env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL, "OTEL_BSP_SCHEDULE_DELAY=200"}
	w.start("--metrics-address=").awaitHealthy(w.repo.Head())

	// parents maps each kind of span to its parent's kind.
	parents := map[string]string{"pass": "", "fetch": "", "render": "", "decide": "pass", "push": "", "apply": "decide"}
	missing := func() map[string]string {
		mu.Lock()
		defer mu.Unlock()
		missing := maps.Clone(parents)
		for _, span := range spans {
			parent := spans[string(span.ParentSpanId)]
			about := ""
			for _, a := range span.Attributes {
				if a.Key == "gitrollout.app" {
					about = a.GetValue().GetStringValue()
				}
			}
			if perApp := span.Name != "fetch" && span.Name != "push"; perApp != (about == w.app) {
				t.Errorf("span %s is about app %q", span.Name, about)
			}
			if parent.GetName() == missing[span.Name] {
				delete(missing, span.Name)
			}
		}
		return missing
	}
	awaitEqual(t, "missing spans", map[string]string{}, missing)
}
