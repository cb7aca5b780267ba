// Package tracing sends spans to an OpenTelemetry collector: passes, fetches, renders, decisions, applies, pushes.
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

// Enabled reports whether the environment names a collector. OpenTelemetry's headers, timeout, sampler and resource
// attributes also apply.
func Enabled() bool { return variable("ENDPOINT") != "" }

// Options describes the process.
type Options struct {
	Version string
	Cluster string
	Problem func(error) // spans cannot be sent; from any goroutine
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
		resource.WithFromEnv(), // last: OTEL_SERVICE_NAME overrides the name above
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

// withoutMemory drops cached renders' spans, because they would fill the queue.
type withoutMemory struct{ trace.SpanProcessor }

func (p withoutMemory) OnEnd(s trace.ReadOnlySpan) {
	// A kustomize build takes longer than a millisecond.
	quick := s.EndTime().Sub(s.StartTime()) < time.Millisecond && s.Status().Code != codes.Error
	if quick && s.Name() == string(report.PartRender) {
		return
	}
	p.SpanProcessor.OnEnd(s)
}
