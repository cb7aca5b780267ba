// Package kube is a model of Kubernetes: the Deployment and ReplicaSet controllers and a kubelet, in memory, in
// micro-steps, and by a given clock. It has the arithmetic of the real controllers and none of their machinery, so that
// a release of an hour takes a millisecond and a seed repeats it.
//
// The property tests of package strategies and the simulator use it. The reconciler does not.
package kube
