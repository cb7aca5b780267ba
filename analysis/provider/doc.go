// Package provider makes measurements. It requests a metric's result from Prometheus, Datadog, a web service, a Job …
// The conditions decide, unless the provider does: a Job, a Kayenta comparison, a gate.
//
// A provider is one file with its configuration and requests, one line in table.go, and one contract in the tests.
// Configurations have the fields of Argo Rollouts v1.10's AnalysisTemplate; comments name extensions.
//
// A server may be slow, wrong or hostile. Every measurement has a time limit and each response a size limit. Transient
// errors are retried, and no credential gets into an error or to another host (package call).
package provider
