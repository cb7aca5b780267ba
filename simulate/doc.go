// Package simulate runs the real reconciler, decisions and renderer with a Git server, a cluster (package kube) and a
// clock in memory. Nothing sleeps, and goroutines run in a fixed order: a seed or a script determines a run.
//
// The property tests let a random scheduler interleave passes of several reconcilers with faults, users and time, and
// check the design's promises after every effect. "gitrollout simulate" plays a script of a release against a user's
// own files. docs/simulator.md lists the modelled parts.
package simulate
