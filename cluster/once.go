package cluster

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"gitrollout.dev/gitrollout/rollout"
)

// makeOnce creates an object without Force, because another writer may, too. Of an existing one, it writes only labels
// and annotations: a database may use the random content.
func (s *server) makeOnce(ctx context.Context, d *desired) (*unstructured.Unstructured, error) {
	switch _, err := s.get(ctx, d.kind, d.ref); {
	case apierrors.IsNotFound(err):
		return s.patch(ctx, patch{kind: d.kind, ref: d.ref, body: d.body()})
	case err != nil:
		return nil, err
	}
	return s.annotate(ctx, d, map[string]any{"labels": map[string]any{rollout.LabelApp: d.app()},
		"annotations": map[string]any{
			rollout.AnnotationCluster: d.annotation(rollout.AnnotationCluster), rollout.AnnotationCreateOnly: "true",
		}})
}

// nowAlways removes the annotation from a Secret that is no longer CreateOnly in Git.
func (s *server) nowAlways(ctx context.Context, d *desired) error {
	if l, exists := d.kind.live.get(d.kind.key(d.ref)); !exists || !l.once {
		return nil
	}
	_, err := s.annotate(ctx, d, map[string]any{"annotations": map[string]any{rollout.AnnotationCreateOnly: nil}})
	return utilerrors.FilterOut(err, apierrors.IsNotFound)
}

func (s *server) annotate(
	ctx context.Context, d *desired, metadata map[string]any,
) (*unstructured.Unstructured, error) {
	body, _ := json.Marshal(map[string]any{"metadata": metadata}) // cannot fail
	return s.patch(ctx, patch{kind: d.kind, ref: d.ref, form: types.MergePatchType, body: body})
}
