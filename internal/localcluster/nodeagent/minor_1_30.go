//go:build kubernetes1.30

package nodeagent

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	v1helper "k8s.io/component-helpers/scheduling/corev1"
)

type podQueue struct {
	workqueue.RateLimitingInterface
}

func newPodQueue() podQueue {
	return podQueue{workqueue.NewRateLimitingQueue(workqueue.NewItemExponentialFailureRateLimiter(5*time.Millisecond, time.Second))}
}

func (q podQueue) Get() (types.NamespacedName, bool) {
	key, closed := q.RateLimitingInterface.Get()
	name, _ := key.(types.NamespacedName) // nil if the queue is closed
	return name, closed
}

func isOlder(version, other string) bool {
	v, err := strconv.ParseUint(version, 10, 64)
	o, otherErr := strconv.ParseUint(other, 10, 64)
	return err == nil && otherErr == nil && v < o
}

func untoleratedTaint(pod *corev1.Pod, node *corev1.Node) (corev1.Taint, bool) {
	return v1helper.FindMatchingUntoleratedTaint(node.Spec.Taints, pod.Spec.Tolerations, keepsPodsAway)
}

func tolerates(pod *corev1.Pod, taint *corev1.Taint) bool {
	return v1helper.TolerationsTolerateTaint(pod.Spec.Tolerations, taint)
}
