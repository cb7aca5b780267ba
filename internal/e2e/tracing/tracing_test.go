package tracing

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/publish/tracing"
	"gitrollout.dev/gitrollout/reconciler/report"
)

// sink is a collector that decodes OTLP/HTTP.
type sink struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []*otlp.Span
	resource string
	headers  http.Header
	busy     int // number of requests that are still answered with 503
}

func newSink(t *testing.T) *sink {
	s := &sink{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := Decode(r)
		if err != nil {
			t.Error(err)
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.headers, s.spans = r.Header, nil
		for _, rs := range request.ResourceSpans {
			s.resource = rs.Resource.String()
			for _, ss := range rs.ScopeSpans {
				s.spans = append(s.spans, ss.Spans...)
			}
		}
		if s.busy--; s.busy >= 0 { // like some proxies, the sink reads the request before it responds 503
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("{}"))
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

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// start starts a sender of spans. A problem of the sender fails the test.
func start(tb testing.TB) *tracing.Tracing {
	tb.Helper()
	sender, err := tracing.Start(tb.Context(),
		tracing.Options{Version: "v1", Cluster: "prod-eu", Problem: func(err error) { tb.Error(err) }})
	must(tb, err)
	return sender
}

// trace starts and ends a span.
func trace(ctx context.Context, sender *tracing.Tracing, part report.Part, app string, err error) {
	_, end := sender.Trace(ctx, part, app)
	end(err)
}

// TestSpans sends the spans of a pass to a collector. The address and the headers come from OpenTelemetry's environment variables.
func TestSpans(t *testing.T) {
	s := newSink(t)
	s.busy = 2
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL+"/")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20dXNlcg==, x-tenant=shop")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=prod")
	sender := start(t)
	inPass, endPass := sender.Trace(t.Context(), report.PartPass, "")
	trace(inPass, sender, report.PartFetch, "", nil)
	trace(inPass, sender, report.PartRender, "from-memory", nil)
	trace(inPass, sender, report.PartRender, "bad", errors.New("apps/bad: no such file"))
	_, built := sender.Trace(inPass, report.PartRender, "shop")
	time.Sleep(2 * time.Millisecond)
	built(nil)
	inDecide, endDecide := sender.Trace(inPass, report.PartDecide, "shop")
	trace(inDecide, sender, report.PartApply, "shop", nil)
	endDecide(nil)
	endPass(errors.New("app bad: held"))
	must(t, sender.Stop(t.Context()))

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
	compare.CheckNamed(t, "renders", []string{"bad apps/bad: no such file", "shop "}, renders)
	if pass.Status.Code != otlp.Status_STATUS_CODE_ERROR || len(pass.ParentSpanId) > 0 {
		t.Errorf("the pass is %v below %x", pass.Status, pass.ParentSpanId)
	}
	compare.Contains(t, s.resource, `service.name`, `"gitrollout"`, `prod-eu`, `deployment.environment`)
	if s.headers.Get("X-Tenant") != "shop" || s.headers.Get("Authorization") != "Basic dXNlcg==" {
		t.Errorf("headers %v", s.headers)
	}
}

// TestCollectorIsAway checks that an unreachable collector blocks nothing, and that the loss of spans is reported.
func TestCollectorIsAway(t *testing.T) {
	s := newSink(t)
	s.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	told := make(chan error, 8)
	sender, err := tracing.Start(t.Context(), tracing.Options{Problem: func(err error) { told <- err }})
	must(t, err)
	for range 10_000 { // far more spans than the queue holds: a pass does not wait for the collector
		trace(t.Context(), sender, report.PartPass, "", nil)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if sender.Stop(ctx) == nil && len(told) == 0 {
		t.Error("the failed export was not reported")
	}
}

// TestWrongVariable checks that the error names the invalid environment variable, and shows no header.
func TestWrongVariable(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.pem")
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS": "x-token secret", "OTEL_EXPORTER_OTLP_TIMEOUT": "10s",
		"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318", "OTEL_EXPORTER_OTLP_CERTIFICATE": none, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": none,
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv(name, value)
			_, err := tracing.Start(t.Context(), tracing.Options{})
			if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestTrustedCollector checks that the variables for traces set the endpoint and the trusted certificate, and override the general
// variables.
func TestTrustedCollector(t *testing.T) {
	asked := make(chan string, 8)
	s := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	must(t, os.WriteFile(file, data, 0o600))
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", s.URL+"/there")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", file)
	sender := start(t)
	trace(t.Context(), sender, report.PartPass, "", nil)
	must(t, sender.Stop(t.Context()))
	if path := <-asked; path != "/there" {
		t.Errorf("it was asked at %s", path)
	}
}

func BenchmarkSpan(b *testing.B) {
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	sender, err := tracing.Start(b.Context(), tracing.Options{Problem: func(error) {}})
	must(b, err)
	for b.Loop() {
		trace(b.Context(), sender, report.PartApply, "shop", nil)
	}
}
