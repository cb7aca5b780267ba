// Package rollout holds the common types: apps, Rollout documents (Spec), releases (State) and the observed cluster
// (Observed). It also reads and writes the files that gitrollout has in Git.
//
// The package depends on no Kubernetes client, Git or clock. Package render builds a Render from a commit, and cluster
// builds an Observed. Package strategies computes the next State from both, and git pushes it to the state branch.
package rollout
