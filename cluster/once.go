package cluster

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/rollout"
)

// makeOnce makes an object that is not there. To one that is there it writes whose it is, and nothing else: what it
// holds may have been drawn by chance, and be in a database since. It is made without force, so that who makes one of
// the same name at the same time is not written over, either; and it is marked without an apply, which would take away
// what the one before has set.
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

// nowAlways takes the mark off an object that was made once, and is to be what Git says from now on.
func (s *server) nowAlways(ctx context.Context, d *desired) error {
	if l, exists := d.kind.live.get(d.kind.key(d.ref)); !exists || !l.once {
		return nil
	}
	_, err := s.annotate(ctx, d, map[string]any{"annotations": map[string]any{rollout.AnnotationCreateOnly: nil}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// annotate writes metadata of an object that is there.
func (s *server) annotate(
	ctx context.Context, d *desired, metadata map[string]any,
) (*unstructured.Unstructured, error) {
	body, _ := json.Marshal(map[string]any{"metadata": metadata}) // of JSON values: cannot fail
	return s.patch(ctx, patch{kind: d.kind, ref: d.ref, form: types.MergePatchType, body: body})
}
