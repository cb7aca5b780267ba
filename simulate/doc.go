// Package simulate runs the real reconciler with a Git server (package memgit), a cluster (package kube) and a clock in
// memory. Goroutines run in a fixed order, so a seed (property tests) or a script ("gitrollout simulate") determines a
// run. docs/simulator.md lists the models.
package simulate
