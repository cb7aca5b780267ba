package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"gitrollout.dev/gitrollout/rollout"
)

// Annotator writes annotations of workloads, and metadata of pods.
type Annotator struct{ *Client }

// Annotate sets an annotation with the given field manager.
func (a Annotator) Annotate(ctx context.Context, ref rollout.Ref, key, value, by string) error {
	body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	return a.send(ctx, patch{ref: ref, form: types.MergePatchType, body: body, manager: by})
}

// Unannotate removes an annotation if it has the given value.
func (a Annotator) Unannotate(ctx context.Context, ref rollout.Ref, key, value string) error {
	path := "/metadata/annotations/" + strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
	body, _ := json.Marshal([]map[string]string{
		{"op": "test", "path": path, "value": value}, {"op": "remove", "path": path},
	})
	err := a.send(ctx, patch{ref: ref, form: types.JSONPatchType, body: body})
	return utilerrors.FilterOut(err, apierrors.IsInvalid, apierrors.IsNotFound)
}

// SetRole applies a role's labels and annotations (JSON) to a pod. The API server removes the previous role's metadata.
// If another client owns a key, SetRole returns an error. It ignores a missing pod.
func (a Annotator) SetRole(ctx context.Context, namespace string, pod rollout.Pod, role string) error {
	metadata := map[string]any{}
	if role != "" {
		_ = json.Unmarshal([]byte(role), &metadata) // cannot fail, because the render encoded role
		_ = unstructured.SetNestedField(metadata, role, "annotations", rollout.AnnotationRole)
	}
	metadata["name"], metadata["uid"] = pod.Name, pod.UID
	body, _ := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
	live, err := a.kube.core.Pods(namespace).Patch(ctx, pod.Name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: manager + "-roles"})
	isTaken := apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
	isGone := apierrors.IsNotFound(err) || apierrors.IsConflict(err)
	switch {
	case err == nil:
		is, err := readPod(live)
		a.workloads.pods.put(is)
		return err
	case !isTaken && (isGone || strings.Contains(err.Error(), "metadata.uid")):
		return nil
	}
	err = explain(err, rollout.Ref{Kind: "Pod", Namespace: namespace, Name: pod.Name}, "patch")
	if isTaken || isRefused(err) {
		err = fmt.Errorf("%w: %w", rollout.ErrUnlabelled, err)
	}
	return err
}

// User returns the user name that the API server assigns to the client.
func (a Annotator) User(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}
	u, err := a.server.dynamic.Resource(schema.GroupVersionResource{
		Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews",
	}).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	name, _, err := unstructured.NestedString(u.Object, "status", "userInfo", "username")
	return name, err
}

func (a Annotator) send(ctx context.Context, p patch) (err error) {
	if p.kind, err = a.kinds.ofRef(ctx, p.ref); err != nil {
		return err
	}
	u, err := a.server.patch(ctx, p)
	if err != nil {
		return explain(err, p.ref, "patch")
	}
	l, err := a.readLive(p.kind, u)
	if err != nil {
		return fmt.Errorf("%s: %w", p.ref.Title(), err)
	}
	p.kind.live.put(l)
	return nil
}
