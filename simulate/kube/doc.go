// Package kube models workload controllers and a kubelet in memory, in small steps and with a given clock. The model
// has the arithmetic of the real controllers, but not their queues and caches.
package kube
