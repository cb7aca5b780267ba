// Package tracing sends spans to an OpenTelemetry collector.
package tracing

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
)

// Enabled reports whether the environment names a collector.
func Enabled() bool { return variable("ENDPOINT") != "" }

// Options describe the process.
type Options struct {
	Version string
	Cluster string
	Problem func(error) // any goroutine calls this if spans cannot be sent
}

// Tracing sends spans until Stop.
type Tracing struct{ provider *trace.TracerProvider }

const scope = "gitrollout.dev/gitrollout"

// Start prepares the export. No pass waits for the collector.
func Start(ctx context.Context, o Options) (*Tracing, error) {
	exporter, err := newExporter()
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "gitrollout"),
			attribute.String("service.version", o.Version),
			attribute.String("gitrollout.cluster", o.Cluster)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(), // last, because OTEL_SERVICE_NAME overrides the name above
	)
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(o.Problem))
	provider := trace.NewTracerProvider(trace.WithResource(about),
		trace.WithSpanProcessor(withoutMemory{trace.NewBatchSpanProcessor(exporter)}))
	return &Tracing{provider}, nil
}

// Stop sends the remaining spans.
func (t *Tracing) Stop(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// Trace implements report.Tracer.
func (t *Tracing) Trace(ctx context.Context, part report.Part, app string) (context.Context, func(error)) {
	ctx, span := t.provider.Tracer(scope).Start(ctx, string(part))
	if app != "" {
		span.SetAttributes(attribute.String("gitrollout.app", app))
	}
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// withoutMemory drops spans of cached renders. These spans would fill the exporter's queue.
type withoutMemory struct{ trace.SpanProcessor }

func (p withoutMemory) OnEnd(s trace.ReadOnlySpan) {
	// A kustomize build takes longer than a millisecond, so a shorter render is from the cache.
	quick := s.EndTime().Sub(s.StartTime()) < time.Millisecond && s.Status().Code != codes.Error
	if quick && s.Name() == string(report.PartRender) {
		return
	}
	p.SpanProcessor.OnEnd(s)
}

// exporter sends spans by OTLP as JSON over HTTP, because all collectors accept this format. OpenTelemetry's exporter
// would add 2 MB of gRPC code. See https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
type exporter struct {
	caller  call.Caller
	ask     call.Request
	timeout time.Duration
	failed  string // "" after a success
}

func variable(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// newExporter reads the variables ENDPOINT, HEADERS, TIMEOUT (milliseconds; default 10000), CERTIFICATE,
// CLIENT_CERTIFICATE and CLIENT_KEY of https://opentelemetry.io/docs/specs/otel/protocol/exporter/.
func newExporter() (*exporter, error) {
	e := &exporter{timeout: 10 * time.Second}
	client, err := httpClient()
	if err != nil {
		return nil, err
	}
	e.caller = call.Caller{
		Client: func(bool) *http.Client { return client }, Secrets: &call.Secrets{}, Tries: 4, Name: "the collector",
	}
	e.ask = call.Request{Method: http.MethodPost, Header: http.Header{},
		Base: os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")}
	if e.ask.Base == "" {
		e.ask.Base, e.ask.Path = os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "/v1/traces"
	}
	if at, err := url.Parse(e.ask.Base); err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return nil, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT: is not a URL; write one such as http://collector:4318")
	}
	if text := variable("TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT: %q is not a number of milliseconds", text)
		}
		e.timeout = time.Duration(ms) * time.Millisecond
	}
	for pair := range strings.SplitSeq(variable("HEADERS"), ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		key, text, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(text))
		if !found || err != nil {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: write key=value,key=value, and other characters as %XX")
		}
		e.ask.Header.Set(strings.TrimSpace(key), value)
	}
	return e, nil
}

func httpClient() (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if file := variable("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		pool := x509.NewCertPool()
		if err == nil && !pool.AppendCertsFromPEM(pem) {
			err = errors.New("it holds no certificate in PEM")
		}
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s: %w", file, err)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	if file := variable("CLIENT_CERTIFICATE"); file != "" {
		pair, err := tls.LoadX509KeyPair(file, variable("CLIENT_KEY"))
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY: %w", err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Transport: transport}, nil
}

// ExportSpans implements trace.SpanExporter. Calls must not overlap. For a repeated error, it returns nil, because the
// SDK logs each error.
func (e *exporter) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	_, err := e.caller.JSON(ctx, e.ask, encoded(spans), nil)
	if err == nil {
		e.failed = ""
		return nil
	}
	if was := e.failed; was != "" && rollout.SameText(was, err.Error()) {
		return nil
	}
	e.failed = err.Error()
	return fmt.Errorf("traces: %w; spans are dropped until the collector accepts them", err)
}

func (*exporter) Shutdown(context.Context) error { return nil }

const (
	kindInternal = 1
	statusError  = 2
)

type object = map[string]any

// encoded returns an ExportTraceServiceRequest (trace/v1). All spans have the same provider and resource. Identifiers
// are hexadecimal, and 64-bit numbers are strings.
func encoded(spans []trace.ReadOnlySpan) object {
	nanoseconds := func(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
	all := rollout.Mapped(spans, func(s trace.ReadOnlySpan) object {
		span := object{
			"traceId": s.SpanContext().TraceID().String(), "spanId": s.SpanContext().SpanID().String(),
			"name": s.Name(), "kind": kindInternal, "attributes": texts(s.Attributes()),
			"startTimeUnixNano": nanoseconds(s.StartTime()), "endTimeUnixNano": nanoseconds(s.EndTime()),
		}
		if s.Parent().HasSpanID() {
			span["parentSpanId"] = s.Parent().SpanID().String()
		}
		if s.Status().Code == codes.Error {
			span["status"] = object{"code": statusError, "message": s.Status().Description}
		}
		return span
	})
	return object{"resourceSpans": []object{{
		"resource":   object{"attributes": texts(spans[0].Resource().Attributes())},
		"scopeSpans": []object{{"scope": object{"name": scope}, "spans": all}},
	}}}
}

func texts(attributes []attribute.KeyValue) []object {
	return rollout.Mapped(attributes, func(a attribute.KeyValue) object {
		return object{"key": string(a.Key), "value": object{"stringValue": a.Value.String()}}
	})
}
