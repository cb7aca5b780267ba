// Package tracing checks the requests of publish/tracing against OpenTelemetry's protobuf definition. internal/e2e uses
// Decode to read the spans of a running gitrollout.
package tracing
