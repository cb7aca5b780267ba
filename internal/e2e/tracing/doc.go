// Package tracing holds what a collector receives of publish/tracing against OpenTelemetry's own definition.
//
// Its neighbours: publish/tracing, and internal/e2e, whose reconciler is followed by its spans.
package tracing
