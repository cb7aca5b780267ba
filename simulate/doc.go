// Package simulate runs the real reconciler, with the real decisions and the real renderer, in a world of memory: a Git
// server, a cluster whose controllers are those of package kube, and a clock that is a variable. Nothing sleeps and
// nothing is left to the operating system, so what happens follows from a seed or from a script, and happens again.
//
// The property tests of this package let a random scheduler interleave passes of several reconcilers with faults,
// people and time, and check what the design promises after every effect. "gitrollout simulate" plays a script of a
// release against a user's own files. docs/simulator.md says what is modelled.
package simulate
