// Package rollout holds the common types of all packages: apps, Rollout documents (Spec), releases (State), the
// observed cluster (Observed), and the exact bytes of the files that gitrollout reads from and writes to Git.
//
// It does not depend on Kubernetes clients, Git or the clock. Package render builds a Render from a commit, and cluster
// builds an Observed. Package strategies computes the next State from both, and git pushes the encoded State to the
// state branch.
package rollout
