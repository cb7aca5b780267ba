// Package kube models workload controllers and a kubelet for the simulator and the property tests of package
// strategies, in memory, with micro-steps and a given clock. The model has the arithmetic of the real controllers,
// but not their queues and caches. The same seed gives the same run.
package kube
