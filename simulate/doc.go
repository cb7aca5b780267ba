// Package simulate runs the real reconciler with a Git server (package memgit), a cluster (package kube) and a clock in
// memory. A fixed order of goroutines lets a seed (property tests) or a script ("gitrollout simulate") determine a run.
// docs/simulator.md lists the models.
package simulate
