// Package analysis says what measurements mean: which of a template's metrics are due, what a result is worth under its
// conditions and limits, and when a run has passed or failed. It is pure: results and the time are arguments.
//
// Its neighbours: render reads templates with Parse and Instantiate, package analysis/provider measures, strategies
// asks for verdicts, and the state branch holds the Run while a release is analysed.
//
// The semantics are those of Argo Rollouts v1.10 (analysis/analysis.go,
// utils/analysis), and what goes beyond them says so.
package analysis
