// Package tracing has the tests of what a collector of OpenTelemetry receives of
// publish/tracing. It has only tests.
package tracing
