// Package simulate runs the real reconciler and renderer with models in memory: a Git server, a cluster (package kube)
// and a clock. Nothing sleeps, and goroutines run in a fixed order, so that a seed or a script determines a run.
//
// In the property tests, a scheduler makes random events: reconciler passes, faults, users' changes, and passing time.
// The tests check the design's promises after every effect. The command "gitrollout simulate" runs a user's script with
// the user's own files. docs/simulator.md lists the modelled parts.
package simulate
