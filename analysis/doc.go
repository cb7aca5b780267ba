// Package analysis says what measurements mean: which of a template's metrics are due, what a result is worth under its
// conditions and limits, and when a run has passed or failed. It is pure: results and the time are arguments.
//
// The semantics are those of Argo Rollouts v1.10 (analysis/analysis.go,
// utils/analysis), and what goes beyond them says so.
package analysis
