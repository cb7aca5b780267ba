package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"gitrollout.dev/gitrollout/rollout"
)

// SecretData reads a Secret's data, and never caches the data. If label is not "", the Secret must have this label with
// the value "true".
func (c *Client) SecretData(ctx context.Context, namespace, name, label string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ref := rollout.Ref{Kind: "Secret", Namespace: namespace, Name: name}
	s, err := c.kube.core.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, explain(err, ref, "get")
	}
	if label != "" && s.Labels[label] != "true" {
		return nil, &Error{Ref: ref, Reason: Forbidden, Msg: fmt.Sprintf("has no label %s: \"true\"", label),
			Fix: fmt.Sprintf("kubectl -n %s label secret %s %s=true", namespace, name, label)}
	}
	data := make(map[string]string, len(s.Data))
	for key, value := range s.Data {
		data[key] = string(value)
	}
	return data, nil
}

// CheckJob validates a Job by a dry run, which refuses unknown fields. It returns nil if the namespace is missing, the
// Job exists, or a webhook does not support dry runs.
func (c *Client) CheckJob(ctx context.Context, object map[string]any) error {
	var job batchv1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, &job, true); err != nil {
		return &Error{Ref: rollout.Object(object).Ref(), Reason: Invalid, Msg: rollout.OneLine(err.Error()), Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := c.kube.batch.Jobs(job.Namespace).Create(ctx, &job,
		metav1.CreateOptions{FieldManager: manager, DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err),
		strings.Contains(err.Error(), "does not support dry run"):
		return nil
	}
	return explain(err, rollout.Ref{Group: "batch", Kind: "Job", Namespace: job.Namespace, Name: job.Name}, "create")
}

// EnsureJob implements reconciler.Jobs.
func (c *Client) EnsureJob(
	ctx context.Context, object map[string]any, annotation string, begun bool,
) (state rollout.JobState, err error) {
	var job batchv1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &job); err != nil {
		return rollout.JobState{}, fmt.Errorf("read the Job: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ref := rollout.Ref{Group: "batch", Kind: "Job", Namespace: job.Namespace, Name: job.Name}
	jobs := c.kube.batch.Jobs(job.Namespace)
	live, err := jobs.Get(ctx, job.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && begun:
		return rollout.JobState{Gone: true}, nil
	case apierrors.IsNotFound(err):
		c.kube.nameOwners(ctx, &job)
		live, err = jobs.Create(ctx, &job, metav1.CreateOptions{FieldManager: manager})
		if apierrors.IsAlreadyExists(err) { // another process created the Job
			live, err = jobs.Get(ctx, job.Name, metav1.GetOptions{})
		}
	}
	if err != nil {
		return rollout.JobState{Refused: apierrors.IsInvalid(err)}, explain(err, ref, "create")
	}
	if live.Annotations[annotation] != job.Annotations[annotation] {
		return rollout.JobState{Taken: true}, nil
	}
	state, err = c.kube.jobState(ctx, live)
	state.UID, state.Started = string(live.UID), live.CreationTimestamp.UTC()
	if live.Status.StartTime != nil { // startTime is set again when a suspended Job resumes
		state.Started = live.Status.StartTime.UTC()
	}
	state.Suspended = live.Spec.Suspend != nil && *live.Spec.Suspend
	return state, err
}

// nameOwners sets the owners' uids, so that Kubernetes deletes the Job after its owners. nameOwners drops unreadable
// owners.
func (t typed) nameOwners(ctx context.Context, job *batchv1.Job) {
	owners := job.OwnerReferences
	job.OwnerReferences = nil
	for _, o := range owners {
		get := t.apps.RESTClient().Get().Namespace(job.Namespace).Resource(strings.ToLower(o.Kind) + "s").Name(o.Name)
		found, err := get.Do(ctx).Get()
		if owner, is := found.(metav1.Object); err == nil && is {
			o.UID = owner.GetUID()
			job.OwnerReferences = append(job.OwnerReferences, o)
		}
	}
}

// DeleteJob implements reconciler.Jobs. Kubernetes deletes the pods in the background.
func (c *Client) DeleteJob(ctx context.Context, namespace, name string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := c.kube.batch.Jobs(namespace).Delete(ctx, name,
		metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	ref := rollout.Ref{Group: "batch", Kind: "Job", Namespace: namespace, Name: name}
	return explain(utilerrors.FilterOut(err, apierrors.IsNotFound), ref, "delete")
}

// stuck lists reasons for which a container usually waits until a user's change.
var stuck = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError"}

func (t typed) jobState(ctx context.Context, job *batchv1.Job) (state rollout.JobState, err error) {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		c, over := rollout.Find(job.Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Type == kind && c.Status == corev1.ConditionTrue
		})
		if over {
			state.Complete, state.Failed = kind == batchv1.JobComplete, kind == batchv1.JobFailed
			state.Message, state.Log = rollout.OneLine(c.Message), t.jobLog(ctx, job)
			return state, nil
		}
	}
	of := metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job.Name}
	pods, err := t.core.Pods(job.Namespace).List(ctx, of)
	if err != nil {
		return state, explain(err, rollout.Ref{Kind: "Pod", Namespace: job.Namespace, Name: job.Name}, "list")
	}
	switch {
	case job.Spec.Suspend != nil && *job.Spec.Suspend:
		state.Waits = "it is suspended: spec.suspend is true"
	case len(pods.Items) == 0:
		state.Waits = "it has no pod yet"
	}
	runs := false
	for _, pod := range pods.Items {
		if c := conditionOf(&pod, corev1.PodScheduled); c.Status == corev1.ConditionFalse {
			state.Waits = "its pod is not scheduled: " + rollout.OneLine(c.Message)
		}
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if w := s.State.Waiting; w != nil && slices.Contains(stuck, w.Reason) {
				state.Stuck, state.Message = w.Reason, rollout.OneLine(w.Message)
			}
			runs = runs || s.State.Running != nil
		}
	}
	state.Idle = !runs && (state.Stuck != "" || state.Waits != "")
	return state, nil
}

// jobLog returns the last log lines of a Job's newest pod, or the reason why they are missing. Without the log
// annotation, it returns "".
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
	text, err := t.core.Pods(job.Namespace).GetLogs(last.Name, &corev1.PodLogOptions{
		Container: spoke(last), TailLines: new(int64(50)), LimitBytes: new(int64(64 << 10)),
	}).DoRaw(ctx)
	if err != nil {
		return fmt.Sprintf("(there is no log: %v)", err)
	}
	return rollout.Tail(string(text), rollout.MaxHookLog)
}

func spoke(pod corev1.Pod) string {
	all := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	failed, _ := rollout.Find(all, func(c corev1.ContainerStatus) bool {
		return c.State.Terminated != nil && c.State.Terminated.ExitCode != 0
	})
	return cmp.Or(failed.Name, pod.Spec.Containers[0].Name)
}
