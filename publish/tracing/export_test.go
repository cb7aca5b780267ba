package tracing

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// TestFailuresAreToldOnce checks that a failure to send spans is reported once. A changed error, or an error after a success, is reported
// again.
func TestFailuresAreToldOnce(t *testing.T) {
	answer := http.StatusForbidden
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answer) }))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	e, err := newExporter()
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		answer int
		told   bool
	}{{403, true}, {403, false}, {404, true}, {404, false}, {200, false}, {404, true}, {200, false}, {200, false}} {
		answer = step.answer
		if err := e.ExportSpans(t.Context(), tracetest.SpanStubs{{Name: "pass"}}.Snapshots()); (err != nil) != step.told {
			t.Errorf("step %d, %d: %v", i, step.answer, err)
		}
	}
}
