package nodeagent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"gitrollout.dev/gitrollout/internal/localcluster/podsim"
)

// handle reconciles one pod. It returns the time after which the pod needs another pass, or 0 if only an event causes
// the next pass.
func (a *Agent) handle(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	pod, err := a.pods.Pods(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		a.server.remove(key)
		a.lives.end(key)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("get pod %s: %w", key, err)
	}
	if a.isOutdated(pod) {
		return 0, nil // the event of the agent's last write follows
	}
	if wantsNode(pod) {
		if pod, err = a.bind(ctx, pod); pod == nil || err != nil {
			return 0, err
		}
	}
	if pod.Spec.NodeName == "" {
		return 0, nil
	}
	if pod.DeletionTimestamp == nil && podutil.IsPodTerminal(pod) {
		a.server.remove(key)
		return 0, nil
	}
	life, err := a.lives.begin(pod, a.clock())
	if err != nil {
		return 0, err
	}
	life.HostIP = a.nodeAddress(pod.Spec.NodeName)
	if pod.DeletionTimestamp != nil {
		return a.stop(ctx, pod, life)
	}
	return a.keepRunning(ctx, pod, life)
}

// isOutdated reports whether the pod, as the watch delivered it, is older than the agent's last write. Without this
// check, the agent would repeat the write.
func (a *Agent) isOutdated(pod *corev1.Pod) bool {
	written := a.lives.lastWrite(pod)
	if written == "" {
		return false
	}
	return isOlder(pod.ResourceVersion, written)
}

// keepRunning writes the pod's current status. Before the status becomes Ready, the pod already responds to requests.
func (a *Agent) keepRunning(ctx context.Context, pod *corev1.Pod, life life) (time.Duration, error) {
	status, again := podsim.StatusAt(pod, life.Life, a.clock())
	if err := a.server.update(pod, status); err != nil {
		return 0, err
	}
	return again, a.writeStatus(ctx, pod, status)
}

// stop terminates a pod whose deletion was requested. The pod is unready immediately, but still responds. It
// is deleted after its stop time or its grace period, whichever is shorter.
func (a *Agent) stop(ctx context.Context, pod *corev1.Pod, life life) (time.Duration, error) {
	behaviour, _ := podsim.Of(pod) // the default behaviour, if the pod's behaviour cannot be parsed
	grace := time.Duration(0)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	end := life.stopping.Add(min(grace, behaviour.StopAfter))
	if left := end.Sub(a.clock()); left > 0 && podsim.Serves(pod.Status) {
		status, _ := podsim.StatusAt(pod, life.Life, a.clock())
		if err := a.writeStatus(ctx, pod, status); err != nil {
			return 0, err
		}
		return left, nil
	}
	a.server.remove(keyOf(pod))
	if len(pod.Finalizers) > 0 && !podutil.IsPodTerminal(pod) {
		if err := a.writeStatus(ctx, pod, podsim.EndedAt(pod, life.Life, a.clock())); err != nil {
			return 0, err
		}
	}
	if grace == 0 {
		return 0, nil // the deletion waits only for finalizers
	}
	now := metav1.NewDeleteOptions(0)
	now.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	err := a.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *now)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return 0, fmt.Errorf("delete stopped pod %s: %w", keyOf(pod), err)
	}
	return 0, nil
}

// writeStatus patches the differences between the pod's status and the given status. A patch, unlike an
// update, keeps the conditions and labels of other writers.
func (a *Agent) writeStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	if equality.Semantic.DeepEqual(pod.Status, status) {
		return nil
	}
	before, err := json.Marshal(corev1.Pod{Status: pod.Status})
	if err != nil {
		return fmt.Errorf("encode status of pod %s: %w", keyOf(pod), err)
	}
	// Because of the UID in the patch, the API server refuses the patch for another pod with the same name.
	after, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID}, Status: status})
	if err != nil {
		return fmt.Errorf("encode status of pod %s: %w", keyOf(pod), err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return fmt.Errorf("compute status patch of pod %s: %w", keyOf(pod), err)
	}
	patched, err := a.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name,
		types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the pod was replaced or deleted: an event follows
	}
	if err != nil {
		return fmt.Errorf("write status of pod %s: %w", keyOf(pod), err)
	}
	a.lives.wrote(pod, patched.ResourceVersion)
	return nil
}
