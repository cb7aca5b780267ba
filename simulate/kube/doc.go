// Package kube is a model of Kubernetes for the property tests of package strategies and the simulator. It models the
// workload controllers and a kubelet in memory, in micro-steps, and by a given clock. It has the real controllers'
// arithmetic, not their machinery: a release of an hour takes a millisecond, and a seed repeats it.
package kube
