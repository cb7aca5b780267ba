package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/rollout"
)

// DryRunner reads a cluster's objects, and asks what an apply would change.
type DryRunner struct{ anyKind }

// NewDryRunner returns a DryRunner for a kubeconfig's cluster.
func NewDryRunner(config *rest.Config) (*DryRunner, error) {
	c, err := New(config, Options{})
	if err != nil {
		return nil, err
	}
	return &DryRunner{c.kinds.anyKind}, nil
}

// Compare returns the live object (or nil) and its state after an apply. A CreateOnly Secret stays unchanged. If RBAC
// forbids the dry run, Compare merges o into the live object, and also returns the error.
func (d *DryRunner) Compare(ctx context.Context, o rollout.Object) (live, after rollout.Object, err error) {
	objects, found, err := d.get(ctx, o.Ref(), kindOfObject(o).Version)
	if err != nil {
		return nil, nil, err
	}
	if found == nil {
		return nil, o, nil
	}
	if o.CreateOnly() {
		return found.Object, found.Object, nil
	}
	made, err := objects.Apply(ctx, o.Name(), &unstructured.Unstructured{Object: o.Copy()},
		metav1.ApplyOptions{FieldManager: manager, Force: true, DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return found.Object, made.Object, nil
	}
	refused := explain(err, o.Ref(), "patch")
	if o.Kind() == "Secret" {
		err = refused // err quotes the Secret, and refused does not
	}
	err = fmt.Errorf("the dry run of an apply: %w", err)
	if e := new(Error); errors.As(refused, &e) && e.Reason == Forbidden {
		return found.Object, overlaid(found.Object, map[string]any(o)).(map[string]any), err
	}
	return found.Object, nil, err
}

func overlaid(live, desired any) any {
	switch want := desired.(type) {
	case map[string]any:
		have, _ := live.(map[string]any)
		merged := map[string]any{}
		maps.Copy(merged, have)
		for name, value := range want {
			if have[name] != nil || value != any(false) { // the API server omits false
				merged[name] = overlaid(have[name], value)
			}
		}
		return merged
	case []any:
		if have, _ := live.([]any); len(have) == len(want) {
			merged := slices.Clone(want)
			for i, value := range want {
				merged[i] = overlaid(have[i], value)
			}
			return merged
		}
	}
	return desired
}

// Runs reports whether a workload exists, and whether an apply would keep its pod template.
func (d *DryRunner) Runs(ctx context.Context, o rollout.Object) (exists, same bool, err error) {
	live, after, err := d.Compare(ctx, o)
	exists = err == nil && live != nil
	return exists, exists && keepsTemplate(live, after, o), err
}

// Get returns an object with the app's label, or nil.
func (d *DryRunner) Get(ctx context.Context, ref rollout.Ref, app string) (rollout.Object, error) {
	_, found, err := d.get(ctx, ref, "")
	if err != nil || found == nil || found.GetLabels()[rollout.LabelApp] != app {
		return nil, err
	}
	return found.Object, nil
}

// PodHash returns the pod-template-hash that most of a Deployment's pods have, or "" if unknown.
func (d *DryRunner) PodHash(ctx context.Context, w rollout.Workload) (hash string) {
	sets, err := d.resource(ctx, schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, w.Namespace, "v1")
	if err != nil || w.Kind != "" {
		return ""
	}
	all, err := sets.List(ctx, metav1.ListOptions{})
	if err != nil {
		return ""
	}
	most := int64(0)
	for _, s := range all.Items {
		owner := metav1.GetControllerOf(&s)
		n, _, _ := unstructured.NestedInt64(s.Object, "status", "replicas")
		if owner != nil && owner.Kind == "Deployment" && owner.Name == w.Name && n > most {
			most, hash = n, s.GetLabels()[rollout.LabelPodHash]
		}
	}
	return hash
}

type anyKind struct {
	*resources
	dynamic dynamic.Interface
}

func (a anyKind) resource(
	ctx context.Context, kind schema.GroupKind, namespace, version string,
) (dynamic.ResourceInterface, error) {
	mapping, err := a.find(ctx, kind.WithVersion(version))
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return a.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
	}
	return a.dynamic.Resource(mapping.Resource), nil
}

func (a anyKind) get(
	ctx context.Context, ref rollout.Ref, version string,
) (all dynamic.ResourceInterface, found *unstructured.Unstructured, err error) {
	kind := schema.GroupKind{Group: ref.Group, Kind: ref.Kind}
	if all, err = a.resource(ctx, kind, ref.Namespace, version); err != nil {
		return nil, nil, err
	}
	found, err = all.Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return all, nil, nil
	}
	return all, found, err
}
