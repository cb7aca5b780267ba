// Package analysis judges measurements. It says which metrics are due, which phase a result has by conditions and
// limits, and when a run has passed or failed. Results and the time are arguments. The semantics follow Argo Rollouts
// v1.10 (analysis/analysis.go, utils/analysis). Comments mark extensions.
package analysis
