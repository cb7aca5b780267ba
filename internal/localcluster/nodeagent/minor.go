//go:build !kubernetes1.30

package nodeagent

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	v1helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

// This file has the calls to Kubernetes' libraries that differ between minor versions. See minor.go of package main.

type podQueue = workqueue.TypedRateLimitingInterface[types.NamespacedName]

func newPodQueue() podQueue {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](5*time.Millisecond, time.Second))
}

// isOlder reports whether a resource version precedes another version of the same object.
func isOlder(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order < 0
}

func untoleratedTaint(pod *corev1.Pod, node *corev1.Node) (corev1.Taint, bool) {
	return v1helper.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, keepsPodsAway, false)
}

func tolerates(pod *corev1.Pod, taint *corev1.Taint) bool {
	return v1helper.TolerationsTolerateTaint(klog.Background(), pod.Spec.Tolerations, taint, false)
}
