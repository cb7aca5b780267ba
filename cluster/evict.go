package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// Evict deletes a pod, if present, and caches it as terminating. Service accounts need no right: the client's count.
func (c *Client) Evict(ctx context.Context, namespace string, pod rollout.Pod) error {
	ctx, cancel := context.WithTimeout(As(ctx, ""), requestTimeout)
	defer cancel()
	err := c.kube.core.Pods(namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(pod.UID)})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		pods := c.workloads.pods
		if was, known := pods.get(key{namespace, pod.Name}); known && string(was.uid) == pod.UID {
			is := *was
			is.terminating = true // before the watch reports it
			pods.swap(was, &is)
		}
		return nil
	}
	ref := rollout.Ref{Kind: "Pod", Namespace: namespace, Name: pod.Name}
	return fmt.Errorf("cannot delete pods: %w", explain(err, ref, "delete"))
}
