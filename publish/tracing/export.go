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

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

// exporter sends spans by OTLP as JSON over HTTP, because every collector accepts this format. OpenTelemetry's exporter
// would add 2 MB of unused gRPC code. See https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
type exporter struct {
	caller  call.Caller
	ask     call.Request
	timeout time.Duration
	failed  string // the last error; empty after a success
}

// variable returns the value of an environment variable for traces. The variable for all signals is the default.
func variable(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// newExporter reads ENDPOINT, HEADERS, TIMEOUT (milliseconds; default 10000), CERTIFICATE, CLIENT_CERTIFICATE and
// CLIENT_KEY of https://opentelemetry.io/docs/specs/otel/protocol/exporter/. The error names the invalid variable.
func newExporter(now func() time.Time) (*exporter, error) {
	e := &exporter{timeout: 10 * time.Second}
	client, err := httpClient()
	if err != nil {
		return nil, err
	}
	e.caller = call.Caller{
		Client: func(bool) *http.Client { return client }, Secrets: &call.Secrets{}, Now: now, Tries: 4,
		Name: "the collector",
	}
	e.ask = call.Request{Method: http.MethodPost, Base: os.Getenv(Variables()[1]), Header: http.Header{}}
	if e.ask.Base == "" { // the endpoint of all signals
		e.ask.Base, e.ask.Path = os.Getenv(Variables()[0]), "/v1/traces"
	}
	if at, err := url.Parse(e.ask.Base); err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return nil, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT: is no URL; write one such as http://collector:4318")
	}
	if text := variable("TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT: %q is no number of milliseconds", text)
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
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: want key=value,key=value with %XX for other characters")
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

// ExportSpans implements trace.SpanExporter. Only one goroutine may call it at a time. It returns a repeated error as
// nil, because the SDK logs each error.
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

// Shutdown implements trace.SpanExporter. There is nothing to shut down.
func (*exporter) Shutdown(context.Context) error { return nil }

// request is OTLP's ExportTraceServiceRequest (trace/v1). Identifiers are hexadecimal; 64-bit numbers are strings.
type request struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource struct {
		Attributes []keyValue `json:"attributes"`
	} `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type scopeSpans struct {
	Scope struct {
		Name string `json:"name"`
	} `json:"scope"`
	Spans []span `json:"spans"`
}

type span struct {
	TraceID    string     `json:"traceId"`
	SpanID     string     `json:"spanId"`
	ParentID   string     `json:"parentSpanId,omitempty"`
	Name       string     `json:"name"`
	Kind       int        `json:"kind"`
	Start      int64      `json:"startTimeUnixNano,string"`
	End        int64      `json:"endTimeUnixNano,string"`
	Attributes []keyValue `json:"attributes,omitempty"`
	Status     status     `json:"status"`
}

type status struct {
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

type keyValue struct {
	Key   string `json:"key"`
	Value struct {
		Text string `json:"stringValue"`
	} `json:"value"`
}

// These numbers of trace.proto are SPAN_KIND_INTERNAL and STATUS_CODE_ERROR.
const (
	kindInternal = 1
	statusError  = 2
)

// encoded converts spans to a request. All spans have the same provider and resource.
func encoded(spans []trace.ReadOnlySpan) request {
	all := scopeSpans{Spans: make([]span, len(spans))}
	all.Scope.Name = scope
	for i, s := range spans {
		at := span{
			TraceID: s.SpanContext().TraceID().String(), SpanID: s.SpanContext().SpanID().String(),
			Name: s.Name(), Kind: kindInternal, Attributes: texts(s.Attributes()),
			Start: s.StartTime().UnixNano(), End: s.EndTime().UnixNano(),
		}
		if s.Parent().HasSpanID() {
			at.ParentID = s.Parent().SpanID().String()
		}
		if s.Status().Code == codes.Error {
			at.Status = status{Code: statusError, Message: s.Status().Description}
		}
		all.Spans[i] = at
	}
	of := resourceSpans{ScopeSpans: []scopeSpans{all}}
	of.Resource.Attributes = texts(spans[0].Resource().Attributes())
	return request{ResourceSpans: []resourceSpans{of}}
}

// texts converts attributes. All attributes of gitrollout are strings.
func texts(attributes []attribute.KeyValue) []keyValue {
	all := make([]keyValue, len(attributes))
	for i, a := range attributes {
		all[i].Key, all[i].Value.Text = string(a.Key), a.Value.String()
	}
	return all
}
