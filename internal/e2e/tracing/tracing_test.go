package tracing

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"gitrollout.dev/gitrollout/publish/tracing"
	"gitrollout.dev/gitrollout/reconciler"
)

// sink is a collector: it decodes what OTLP/HTTP sends.
type sink struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []*otlp.Span
	resource string
	headers  http.Header
}

func newSink(t *testing.T) *sink {
	s := &sink{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(body)
		}
		data, err := io.ReadAll(body)
		var request collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(data, &request)
		}
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s %v: %v", r.Method, r.URL, r.Header, err)
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.headers = r.Header
		for _, rs := range request.ResourceSpans {
			s.resource = rs.Resource.String()
			for _, ss := range rs.ScopeSpans {
				s.spans = append(s.spans, ss.Spans...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		answer, _ := proto.Marshal(&collector.ExportTraceServiceResponse{})
		_, _ = w.Write(answer)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sink) named(t *testing.T, name string) *otlp.Span {
	t.Helper()
	i := slices.IndexFunc(s.spans, func(span *otlp.Span) bool { return span.Name == name })
	if i < 0 {
		t.Fatalf("no span %s among %d", name, len(s.spans))
	}
	return s.spans[i]
}

// TestSpans sends a pass to a collector, whose address and headers are
// OpenTelemetry's own variables.
func TestSpans(t *testing.T) {
	s := newSink(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=shop")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=prod")
	sender, err := tracing.Start(t.Context(), tracing.Options{Version: "v1", Cluster: "prod-eu", Problem: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	inPass, endPass := sender.Trace(t.Context(), reconciler.PartPass, "")
	_, endFetch := sender.Trace(inPass, reconciler.PartFetch, "")
	endFetch(nil)
	_, quick := sender.Trace(inPass, reconciler.PartRender, "from-memory")
	quick(nil)
	_, bad := sender.Trace(inPass, reconciler.PartRender, "bad")
	bad(errors.New("apps/bad: no such file"))
	_, built := sender.Trace(inPass, reconciler.PartRender, "shop")
	time.Sleep(2 * time.Millisecond)
	built(nil)
	inDecide, endDecide := sender.Trace(inPass, reconciler.PartDecide, "shop")
	_, endApply := sender.Trace(inDecide, reconciler.PartApply, "shop")
	endApply(nil)
	endDecide(nil)
	endPass(errors.New("app bad: held"))
	if err := sender.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}

	pass := s.named(t, "pass")
	for name, parent := range map[string]*otlp.Span{"fetch": pass, "decide": pass, "apply": s.named(t, "decide")} {
		if got := s.named(t, name); string(got.ParentSpanId) != string(parent.SpanId) || string(got.TraceId) != string(pass.TraceId) {
			t.Errorf("%s is not within %s", name, parent.Name)
		}
	}
	var renders []string
	for _, span := range s.spans {
		if span.Name == "render" {
			renders = append(renders, span.Attributes[0].GetValue().GetStringValue()+" "+span.Status.GetMessage())
		}
	}
	if want := []string{"bad apps/bad: no such file", "shop "}; !slices.Equal(renders, want) {
		t.Errorf("renders %q, want %q", renders, want)
	}
	if pass.Status.Code != otlp.Status_STATUS_CODE_ERROR || len(pass.ParentSpanId) > 0 {
		t.Errorf("the pass is %v below %x", pass.Status, pass.ParentSpanId)
	}
	for _, want := range []string{`service.name`, `"gitrollout"`, `prod-eu`, `deployment.environment`} {
		if !strings.Contains(s.resource, want) {
			t.Errorf("the resource has no %s: %s", want, s.resource)
		}
	}
	if s.headers.Get("X-Tenant") != "shop" {
		t.Errorf("headers %v", s.headers)
	}
}

// TestCollectorIsAway loses spans and nothing else, and says so.
func TestCollectorIsAway(t *testing.T) {
	s := newSink(t)
	s.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	told := make(chan error, 8)
	sender, err := tracing.Start(t.Context(), tracing.Options{Problem: func(err error) { told <- err }})
	if err != nil {
		t.Fatal(err)
	}
	for range 10_000 { // many more than are kept: a pass does not wait for a collector
		_, end := sender.Trace(t.Context(), reconciler.PartPass, "")
		end(nil)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if sender.Stop(ctx) == nil && len(told) == 0 {
		t.Error("nobody was told")
	}
}

func BenchmarkSpan(b *testing.B) {
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	sender, err := tracing.Start(b.Context(), tracing.Options{Problem: func(error) {}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		_, end := sender.Trace(b.Context(), reconciler.PartApply, "shop")
		end(nil)
	}
}
