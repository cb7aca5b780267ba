// Package tracing sends what a pass does to an OpenTelemetry collector, as spans: the pass, and within it the fetch,
// each app's render, decision and apply, and the push.
package tracing

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"gitrollout.dev/gitrollout/reconciler/report"
)

// Variables are those of the environment that turn tracing on, if one is not empty. Others of OpenTelemetry's count as
// well: headers, timeout, sampler, resource attributes.
func Variables() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}
}

// Options say whose spans these are.
type Options struct {
	Version string
	Cluster string
	Now     func() time.Time // the clock by which a collector says when to ask again
	Problem func(error)      // a collector that does not take spans; called from any goroutine
}

// Tracing sends spans until Stop.
type Tracing struct{ provider *trace.TracerProvider }

// scope is what OpenTelemetry calls who makes the spans.
const scope = "gitrollout.dev/gitrollout"

// Start connects to the collector that the environment names, by OTLP over HTTP.
// A collector that does not answer costs spans, and no pass.
func Start(ctx context.Context, o Options) (*Tracing, error) {
	exporter, err := newExporter(o.Now)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "gitrollout"),
			attribute.String("service.version", o.Version),
			attribute.String("gitrollout.cluster", o.Cluster)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(), // last: OTEL_SERVICE_NAME wins
	)
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(o.Problem))
	provider := trace.NewTracerProvider(trace.WithResource(about),
		trace.WithSpanProcessor(withoutMemory{trace.NewBatchSpanProcessor(exporter)}))
	return &Tracing{provider}, nil
}

// Stop sends what is left.
func (t *Tracing) Stop(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// appKey is the attribute of a span that is about one app.
const appKey = attribute.Key("gitrollout.app")

// Trace is a report.Tracer.
func (t *Tracing) Trace(ctx context.Context, part report.Part, app string) (context.Context, func(error)) {
	ctx, span := t.provider.Tracer(scope).Start(ctx, string(part))
	if app != "" {
		span.SetAttributes(appKey.String(app))
	}
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// fromMemory is how long an answer from memory takes at most. A build takes several milliseconds.
const fromMemory = time.Millisecond

// withoutMemory leaves out renders that were answered from memory: after each push
// there is one for every app, and they would push what matters out of the queue.
type withoutMemory struct{ trace.SpanProcessor }

// OnEnd is trace.SpanProcessor's.
func (p withoutMemory) OnEnd(s trace.ReadOnlySpan) {
	quick := s.EndTime().Sub(s.StartTime()) < fromMemory && s.Status().Code != codes.Error
	if quick && s.Name() == string(report.PartRender) {
		return
	}
	p.SpanProcessor.OnEnd(s)
}
