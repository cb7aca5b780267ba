// Package rollout holds the common types: apps, Rollout documents (Spec), releases (State) and the Observed cluster. It
// parses and encodes files in Git, and uses no Kubernetes client, Git library or clock.
package rollout
