// Package kube models workload controllers and a kubelet in memory, with micro-steps and a given clock. The model has
// the arithmetic of the real controllers, but not their queues and caches.
package kube
