package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// Evict deletes a pod, and marks it as terminating in the cache. A missing pod is no error. Evict uses the client's own
// rights, so that a release's service account does not need the right to delete pods.
func (c *Client) Evict(ctx context.Context, namespace string, pod rollout.Pod) error {
	ctx, cancel := context.WithTimeout(As(ctx, ""), requestTimeout)
	defer cancel()
	err := c.kube.core.Pods(namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(pod.UID)})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		c.workloads.evicted(key{namespace, pod.Name}, pod.UID)
		return nil
	}
	ref := rollout.Ref{Kind: "Pod", Namespace: namespace, Name: pod.Name}
	return fmt.Errorf("cannot delete pods: %w", explain(err, ref, "delete"))
}

// evicted marks a pod as terminating before the watch reports it.
func (w *workloads) evicted(at key, uid string) {
	if was, known := w.pods.get(at); known && string(was.uid) == uid {
		is := *was
		is.terminating = true
		w.pods.swap(was, &is)
	}
}
