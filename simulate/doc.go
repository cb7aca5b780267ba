// Package simulate runs the real reconciler and renderer with models in memory: a Git server, a cluster (package kube)
// and a clock. Nothing sleeps, and goroutines run in a fixed order, so that a seed or a script determines a run.
//
// In the property tests, a scheduler makes random events: reconciler passes, faults, users' changes, advances of the
// clock. After each effect, the tests check the design's laws. "gitrollout simulate" runs a user's script with the
// user's files. docs/simulator.md lists the models.
package simulate
