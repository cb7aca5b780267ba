// Package analysis interprets measurements: which of a template's metrics are due, which phase a result gets from
// conditions and limits, and when a run has passed or failed. It is pure: results and time are arguments. The semantics
// follow Argo Rollouts v1.10 (analysis/analysis.go, utils/analysis). Comments name extensions.
package analysis
