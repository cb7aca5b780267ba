package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// jobLog returns the last lines of a Job's newest pod, or why there are none, or "" if the Job wants none.
func (t typed) jobLog(ctx context.Context, job *batchv1.Job) string {
	if job.Annotations[rollout.AnnotationHookLog] != "record" {
		return ""
	}
	of := metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job.Name}
	pods, err := t.core.Pods(job.Namespace).List(ctx, of)
	switch {
	case err != nil:
		return fmt.Sprintf("(there is no log: %v)", err)
	case len(pods.Items) == 0:
		return "(there is no log: the Job's pods no longer exist)"
	}
	last := slices.MaxFunc(pods.Items, func(a, b corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	// LimitBytes cuts the selected lines' end.
	text, err := t.core.Pods(job.Namespace).GetLogs(last.Name, &corev1.PodLogOptions{
		Container: spoke(last), TailLines: new(int64(50)), LimitBytes: new(int64(64 << 10)),
	}).DoRaw(ctx)
	if err != nil {
		return fmt.Sprintf("(there is no log: %v)", err)
	}
	return rollout.Tail(string(text), rollout.MaxHookLog)
}

// spoke returns the first failed container, or else the first.
func spoke(pod corev1.Pod) string {
	all := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	failed, _ := rollout.Find(all, func(c corev1.ContainerStatus) bool {
		return c.State.Terminated != nil && c.State.Terminated.ExitCode != 0
	})
	return cmp.Or(failed.Name, pod.Spec.Containers[0].Name)
}
