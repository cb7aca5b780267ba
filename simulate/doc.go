// Package simulate runs the real reconciler, decisions and renderer with a Git server, a cluster (package kube) and a
// clock in memory. Nothing sleeps, and the operating system decides nothing: a run follows from a seed or a script.
//
// The property tests let a random scheduler interleave passes of several reconcilers with faults, users and time, and
// check the design's promises after every effect. "gitrollout simulate" plays a script of a release against a user's
// own files. docs/simulator.md lists the modelled parts.
package simulate
