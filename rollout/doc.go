// Package rollout holds the common types: apps, Rollout documents (Spec), releases (State), the observed cluster
// (Observed), and the exact bytes of the files that gitrollout reads from and writes to Git.
//
// It does not depend on Kubernetes clients, Git or the clock. Package render builds a Render from a commit, cluster
// an Observed; strategies computes the next State from both, and git pushes it to the state branch.
package rollout
