// Package provider makes measurements. The result of a metric comes from a server, such as Prometheus, or from a Job.
// The metric's conditions judge the result; only Jobs, Kayenta and webhooks give their own verdicts.
//
// A provider is one file with its configuration and requests, one entry in table.go, and one contract in the tests.
// Configurations have the fields of Argo Rollouts v1.10's AnalysisTemplate; comments mark extensions.
//
// A server may be slow, wrong or hostile. So each measurement has a time limit, and each response a size limit.
// Transient errors are retried. No credential gets into an error or to another host (package call).
package provider
