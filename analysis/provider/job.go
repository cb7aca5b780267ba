package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
)

// Jobs creates and deletes Jobs; package cluster implements it.
type Jobs interface {
	// EnsureJob returns a Job's state. If the Job is missing, it creates the Job or, if begun is set, returns Gone. If
	// the live Job's annotation differs, it returns Taken. It sets the uids of a new Job's owners.
	EnsureJob(ctx context.Context, object map[string]any, annotation string, begun bool) (rollout.JobState, error)
	// DeleteJob deletes a Job and its pods, if any.
	DeleteJob(ctx context.Context, namespace, name string) error
}

const (
	LabelMeasurement      = "gitrollout.dev/measurement"    // "true", for label selectors
	AnnotationMeasurement = "gitrollout.dev/measurement-id" // Request.ID
)

// jobConfig runs a Job in the Rollout's namespace for each measurement. A deleted Job is not created again. If the Job
// was deleted or its image cannot be pulled, the result is Inconclusive.
type jobConfig struct {
	Metadata struct {
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata,omitempty"`
	Spec map[string]any `json:"spec"`
}

// jobFields lists the spec fields that users may set. The Job controller sets the selector.
var jobFields = []string{
	"activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "completionMode", "completions", "maxFailedIndexes",
	"parallelism", "podFailurePolicy", "podReplacementPolicy", "successPolicy", "template", "ttlSecondsAfterFinished",
}

func (c *jobConfig) check() error {
	if len(c.Spec) == 0 {
		return required("spec", "", "write the spec of a Job")
	}
	for _, field := range slices.Sorted(maps.Keys(c.Spec)) {
		if !slices.Contains(jobFields, field) {
			return wrong("spec."+field, "correct its name, or remove it; allowed: "+strings.Join(jobFields, ", "),
				"is not a field that a measurement's Job can have")
		}
	}
	pod := rollout.Object(c.Spec).Map("template", "spec")
	if pod == nil {
		return required("spec.template.spec", "", "write the pod's spec, with its containers")
	}
	restart, _ := pod["restartPolicy"].(string)
	switch {
	case restart == "":
		return required("spec.template.spec.restartPolicy", "", "write Never or OnFailure")
	case !hasArgument(restart) && restart != "Never" && restart != "OnFailure":
		return wrong("spec.template.spec.restartPolicy", "use Never or OnFailure; a Job takes no other", "is %q", restart)
	}
	containers, _ := pod["containers"].([]any)
	if len(containers) == 0 {
		return required("spec.template.spec.containers", "", "give at least one, with name and image")
	}
	for i, raw := range containers {
		container, _ := raw.(map[string]any)
		for _, field := range []string{"name", "image"} {
			text, _ := container[field].(string)
			if err := required(fmt.Sprintf("spec.template.spec.containers[%d].%s", i, field), text,
				"give the container's "+field); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *jobConfig) timeout() time.Duration { return 30 * time.Second }

func (c *jobConfig) measure(ctx context.Context, s *session) (Result, error) {
	if s.deps.Jobs == nil {
		return Result{}, errors.New("there are no Jobs here")
	}
	if s.request.ID == "" {
		return Result{}, errors.New("the measurement has no ID, so its Job could not be found again")
	}
	name := jobName(s.request.ID)
	begun := s.request.Metadata["job-name"] == name
	state, err := s.deps.Jobs.EnsureJob(ctx, c.object(s.request, name), AnnotationMeasurement, begun)
	if err != nil {
		return Result{}, fmt.Errorf("job %s/%s: %w", s.request.Namespace, name, err)
	}
	if state.Taken {
		return Result{}, fmt.Errorf("job %s/%s: another Job has this name", s.request.Namespace, name)
	}
	// These keys are the same in Argo Rollouts.
	result := Result{Metadata: map[string]string{"job-name": name, "job-namespace": s.request.Namespace}}
	switch {
	case state.Complete:
		result.Phase = analysis.Successful
	case state.Failed:
		result.Phase, result.Message = analysis.Failed, strings.TrimSuffix("the Job failed: "+state.Message, ": ")
	case state.Gone:
		result.Phase, result.Message = analysis.Inconclusive, "the Job was deleted before it was over"
	case state.Stuck != "":
		result.Phase, result.Message = analysis.Inconclusive,
			strings.TrimSuffix("the Job cannot start: "+state.Stuck+": "+state.Message, ": ")
	default:
		result.Phase, result.Message = analysis.Running, "the Job runs"
	}
	return result, nil
}

func (c *jobConfig) stop(ctx context.Context, s *session) error {
	name := jobName(s.request.ID)
	if s.deps.Jobs == nil || s.request.ID == "" {
		return nil
	}
	if err := s.deps.Jobs.DeleteJob(ctx, s.request.Namespace, name); err != nil {
		return fmt.Errorf("delete the job %s/%s: %w", s.request.Namespace, name, err)
	}
	return nil
}

func (c *jobConfig) object(r Request, name string) map[string]any {
	spec := maps.Clone(c.Spec)
	ttl, _ := spec["ttlSecondsAfterFinished"].(int64)
	// Kubernetes keeps the Job at least a day, because a new gitrollout process could repeat a deleted Job.
	spec["ttlSecondsAfterFinished"] = max(ttl, 24*60*60)
	o := rollout.Object{
		"apiVersion": "batch/v1", "kind": "Job", "spec": spec,
		"metadata": map[string]any{"name": name, "namespace": r.Namespace}}
	if owner := r.Workload.Ref(); owner.Group == "apps" { // the API versions of other groups' kinds are unknown here
		owners := []any{map[string]any{"apiVersion": "apps/v1", "kind": owner.Kind, "name": owner.Name}}
		o.Set(owners, "metadata", "ownerReferences")
	}
	for key, value := range c.Metadata.Labels {
		o.Set(value, "metadata", "labels", key)
	}
	for key, value := range c.Metadata.Annotations {
		o.Set(value, "metadata", "annotations", key)
	}
	o.Set("true", "metadata", "labels", LabelMeasurement)
	o.Set(r.ID, "metadata", "annotations", AnnotationMeasurement)
	return o
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// jobName joins at most 46 characters of id and 12 of id's hash, because a label may have 63 characters.
func jobName(id string) string {
	readable := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(id), "-"), "-")
	if len(readable) > 46 {
		readable = strings.Trim(readable[:46], "-")
	}
	return strings.TrimPrefix(readable+"-"+rollout.Digest([]byte(id), 6), "-")
}
