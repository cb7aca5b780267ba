// Package provider makes measurements. It gets the result of a metric from a server, such as Prometheus, or from a Job.
// The metric's conditions judge the result. Only Jobs, Kayenta and webhooks give their own verdicts.
// Each provider has one file with its configuration and requests, one entry in table.go, and its own tests.
// Configurations have the fields of Argo Rollouts v1.10's AnalysisTemplate. Comments mark additional fields.
// A server may be slow, wrong or hostile. So each measurement has a time limit, and each response a size limit. The
// package "call" retries after transient errors. It keeps credentials out of errors and sends them to no other host.
package provider
