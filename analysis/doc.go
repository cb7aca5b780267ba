// Package analysis judges measurements. It decides which metrics are due, which phase a result has, and when a run has
// passed or failed. Callers pass in the results and the time. The semantics follow Argo Rollouts v1.10
// (analysis/analysis.go, utils/analysis). Comments mark features that Argo Rollouts lacks.
package analysis
