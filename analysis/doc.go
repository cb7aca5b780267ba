// Package analysis judges measurements, without I/O or clock. The semantics follow Argo Rollouts v1.10
// (analysis/analysis.go, utils/analysis). Comments mark features that Argo Rollouts lacks.
package analysis
