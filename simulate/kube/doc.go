// Package kube is a model of Kubernetes for the property tests of package strategies and the simulator. It models the
// workload controllers and a kubelet in memory, with micro-steps and a given clock. The model has the real controllers'
// arithmetic, but not their machinery. A release of an hour takes a millisecond, and a seed repeats a run.
package kube
