// Package kube is a model of Kubernetes for the simulator and for the property tests of package strategies. It models
// the workload controllers and a kubelet in memory, with micro-steps and a given clock. The model has the arithmetic of
// the real controllers, but not their queues and caches. The same seed gives the same run.
package kube
