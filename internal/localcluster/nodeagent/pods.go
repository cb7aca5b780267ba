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
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"gitrollout.dev/gitrollout/internal/localcluster/podsim"
)

// handle is one pass over a pod. It returns after how long the pod wants
// another one without any event (0: not before one).
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
		return 0, nil // the event of our own write is on its way
	}
	if wantsNode(pod) {
		if pod, err = a.bind(ctx, pod); pod == nil || err != nil {
			return 0, err
		}
	}
	if pod.Spec.NodeName == "" {
		return 0, nil
	}
	if pod.DeletionTimestamp == nil && podsim.Finished(pod.Status) {
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

// isOutdated reports whether the watch has yet to deliver what this agent wrote
// last. Judging by the older pod would write the same again.
func (a *Agent) isOutdated(pod *corev1.Pod) bool {
	written := a.lives.lastWrite(pod)
	if written == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, written)
	return err == nil && order < 0
}

// keepRunning reports the status that the pod has come to by now. The pod
// answers requests before it says that it is ready.
func (a *Agent) keepRunning(ctx context.Context, pod *corev1.Pod, life life) (time.Duration, error) {
	status, again := podsim.StatusAt(pod, life.Life, a.clock())
	if err := a.server.update(pod, status); err != nil {
		return 0, err
	}
	return again, a.writeStatus(ctx, pod, status)
}

// stop lets a deleted pod come to its end: not ready at once, gone when it has
// stopped or its grace period is over. Until then it still answers.
func (a *Agent) stop(ctx context.Context, pod *corev1.Pod, life life) (time.Duration, error) {
	behaviour, _ := podsim.Of(pod) // one that cannot be read has its defaults
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
	if len(pod.Finalizers) > 0 && !podsim.Finished(pod.Status) {
		if err := a.writeStatus(ctx, pod, podsim.EndedAt(pod, life.Life, a.clock())); err != nil {
			return 0, err
		}
	}
	if grace == 0 {
		return 0, nil // already deleted but for its finalizers
	}
	now := metav1.NewDeleteOptions(0)
	now.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	err := a.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *now)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return 0, fmt.Errorf("delete stopped pod %s: %w", keyOf(pod), err)
	}
	return 0, nil
}

// writeStatus patches what differs from the status that the pod was seen with.
// A patch, unlike an update, leaves conditions and labels of others alone.
func (a *Agent) writeStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	if equality.Semantic.DeepEqual(pod.Status, status) {
		return nil
	}
	before, err := json.Marshal(corev1.Pod{Status: pod.Status})
	if err != nil {
		return fmt.Errorf("encode status of pod %s: %w", keyOf(pod), err)
	}
	// The uid in the patch makes it fail on another pod of the same name.
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
		return nil // replaced or gone: its own event follows
	}
	if err != nil {
		return fmt.Errorf("write status of pod %s: %w", keyOf(pod), err)
	}
	a.lives.wrote(pod, patched.ResourceVersion)
	return nil
}
