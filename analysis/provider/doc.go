// Package provider measures: it asks Prometheus, Datadog, a web service, a Job … for what the conditions of a metric
// look at, and judges nothing itself, except where the provider is a judge: a Job, a Kayenta comparison, a gate.
//
// A provider is one file with its configuration and its requests, one line in the table of table.go, and one contract
// below the tests. Configurations have the fields of Argo Rollouts v1.10's AnalysisTemplate; what goes beyond them says
// so.
//
// Whatever is asked may be slow, wrong or hostile. Every measurement has a time limit and each answer a size limit,
// what may pass is tried again, and no credential gets into an error or to another host (caller.go, secrets.go).
package provider
