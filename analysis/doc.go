// Package analysis judges measurements: which metrics are due, a result's phase, and when a run ends. Callers pass in
// results and time. The semantics follow Argo Rollouts v1.10 (analysis/analysis.go, utils/analysis). Comments mark
// features that Argo Rollouts lacks.
package analysis
