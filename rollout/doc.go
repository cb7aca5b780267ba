// Package rollout holds the common types: apps, Rollout documents (Spec), releases (State) and the observed cluster
// (Observed). It reads and writes gitrollout's files in Git.
//
// The package depends on no Kubernetes client, Git library or clock. Package render builds a Render from a commit, and
// package cluster an Observed. Package strategies computes the next State from both, and package git pushes the State.
package rollout
