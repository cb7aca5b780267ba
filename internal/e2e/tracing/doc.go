// Package tracing compares the requests of publish/tracing with OpenTelemetry's definition. internal/e2e uses it to
// follow a reconciler by its spans.
package tracing
