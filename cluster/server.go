package cluster

import (
	"cmp"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/dynamic"

	"gitrollout.dev/gitrollout/rollout"
)

// server sends requests for any kind, each limited by requestTimeout. The dynamic client refuses names such as "../".
type server struct {
	dynamic dynamic.Interface
	taken   func(ref rollout.Ref, fields string) // Options.Taken
}

func (s *server) of(k *kind, ref rollout.Ref) dynamic.ResourceInterface {
	return s.dynamic.Resource(k.resource).Namespace(k.key(ref).namespace)
}

type patch struct {
	kind    *kind
	ref     rollout.Ref
	form    types.PatchType // default: server-side apply
	body    []byte
	manager string // default: the constant manager
	force   bool
	dryRun  bool
}

func (s *server) patch(ctx context.Context, p patch) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	o := metav1.PatchOptions{FieldManager: cmp.Or(p.manager, manager)}
	if p.force {
		o.Force = &p.force
	}
	if p.dryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return s.of(p.kind, p.ref).Patch(ctx, p.ref.Name, cmp.Or(p.form, types.ApplyPatchType), p.body, o)
}

func (s *server) get(ctx context.Context, k *kind, ref rollout.Ref) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return s.of(k, ref).Get(ctx, ref.Name, metav1.GetOptions{})
}

// delete sends the observed uid, so that a newer object with the same name stays.
func (s *server) delete(ctx context.Context, k *kind, l *live) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := s.dynamic.Resource(k.resource).Namespace(l.namespace).Delete(ctx, l.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &l.uid}, PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
	return utilerrors.FilterOut(err, apierrors.IsNotFound)
}
