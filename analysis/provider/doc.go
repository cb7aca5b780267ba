// Package provider makes measurements. It asks Prometheus, Datadog, a web service, a Job … for a metric's result. The
// metric's conditions judge the result, except that Jobs, Kayenta and webhooks judge by themselves.
//
// A provider is one file with its configuration and requests, one entry in table.go, and one contract in the tests.
// Configurations have the fields of Argo Rollouts v1.10's AnalysisTemplate; comments mark extensions.
//
// A server may be slow, wrong or hostile. So each measurement has a time limit, and each response a size limit.
// Transient errors are retried. No credential gets into an error or to another host (package call).
package provider
