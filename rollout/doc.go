// Package rollout holds the common types: apps, Rollout documents (Spec), releases (State) and the Observed cluster. It
// reads and writes files in Git, without Kubernetes client, Git library or clock.
package rollout
