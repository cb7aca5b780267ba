package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"gitrollout.dev/gitrollout/rollout"
)

// kind is a watched kind. Except for workloads, the watch selects rollout.LabelApp, because a cluster may have 50,000
// other Secrets.
type kind struct {
	gvk        schema.GroupVersionKind
	resource   schema.GroupVersionResource
	namespaced bool
	live       *table[*live]
	stop       context.CancelFunc
	late       atomic.Bool
}

// key omits the namespace if the kind is cluster-scoped, even if a manifest has one.
func (k *kind) key(ref rollout.Ref) key {
	if !k.namespaced {
		return key{name: ref.Name}
	}
	return key{ref.Namespace, ref.Name}
}

func (k *kind) get(ref rollout.Ref) (*live, bool) { return k.live.get(k.key(ref)) }

type kinds struct {
	*background
	anyKind
	namespaces []string
	read       func(*kind, *unstructured.Unstructured) (*live, error)
	changed    func(was, is *live)
	runsPods   func(schema.GroupVersionKind) bool

	mu  sync.Mutex
	all map[schema.GroupVersionKind]*kind
}

// listTimeout limits how long a call waits for a kind's first list. 5,000 Deployments take 0.3 s. Retries continue in
// the background.
const listTimeout = 5 * time.Second

func (w *kinds) of(ctx context.Context, gvk schema.GroupVersionKind) (*kind, error) {
	k, err := w.watching(ctx, gvk)
	if err != nil {
		return nil, err
	}
	timeout := listTimeout
	if k.late.Load() {
		timeout = 0
	}
	err = k.live.await(ctx, timeout)
	if err == nil {
		return k, nil
	}
	if ctx.Err() == nil {
		k.late.Store(true)
	}
	if permanent(err) {
		w.forget(k)
	}
	if apierrors.IsNotFound(err) { // the discovery was outdated
		_, _, _ = w.look(ctx)
	}
	return nil, fmt.Errorf("watch %s: %w", k.resource.GroupResource(), err)
}

type outside string

func (e outside) Error() string { return string(e) }

func (w *kinds) reach(k *kind, ref rollout.Ref) error {
	if k.namespaced && len(w.namespaces) > 0 && !slices.Contains(w.namespaces, ref.Namespace) {
		return outside(fmt.Sprintf("is in namespace %s, which --namespaces leaves out", ref.Namespace))
	}
	return nil
}

func (w *kinds) watching(ctx context.Context, gvk schema.GroupVersionKind) (*kind, error) {
	if k := w.known(gvk); k != nil {
		return k, nil
	}
	if w.context() == nil {
		return nil, errNotStarted
	}
	mapping, err := w.find(ctx, gvk)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace && len(w.namespaces) > 0 {
		return nil, outside("is cluster-scoped, but gitrollout runs with --namespaces")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.all[gvk]; k != nil {
		return k, nil
	}
	k := &kind{gvk: gvk, resource: mapping.Resource, namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}
	k.live = newTable(reading(func(u *unstructured.Unstructured) (*live, error) { return w.read(k, u) }), w.changed,
		w.namespaces...)
	w.all[gvk] = k
	w.run(k)
	return k, nil
}

func (w *kinds) forget(k *kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all[k.gvk] == k {
		delete(w.all, k.gvk)
	}
	k.stop()
}

func (w *kinds) known(gvk schema.GroupVersionKind) *kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all[gvk]
}

func (w *kinds) run(k *kind) {
	watching, stop := context.WithCancel(w.context())
	k.stop = stop
	selector := rollout.LabelApp
	if w.runsPods(k.gvk) {
		selector = "" // before adoption, a workload has no app label
	}
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(k.gvk)
	for _, f := range k.live.feeds {
		client := w.dynamic.Resource(k.resource).Namespace(f.namespace)
		runWatch(watching, w.background, f, k.resource.String(), example, source{
			list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.LabelSelector = selector
				list, err := client.List(ctx, o)
				w.noteGone(k, err)
				return list, err
			},
			watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.LabelSelector = selector
				events, err := client.Watch(ctx, o)
				w.noteGone(k, err)
				return events, err
			},
		})
	}
}

// noteGone ends a kind's watch and drops the kind's objects after its CRD was deleted.
func (w *kinds) noteGone(k *kind, err error) {
	if !apierrors.IsNotFound(err) || !k.live.inSync() {
		return // the caller that waits for the first list reports the error
	}
	w.forget(k)
	w.begin()
	for _, f := range k.live.feeds {
		_ = f.Replace(nil, "")
	}
}

func (w *kinds) ofRef(ctx context.Context, ref rollout.Ref) (*kind, error) {
	k, ok := w.watched(ref)
	if !ok {
		mapping, err := w.find(ctx, schema.GroupVersionKind{Group: ref.Group, Kind: ref.Kind})
		if err != nil {
			return nil, err
		}
		if k, err = w.of(ctx, mapping.GroupVersionKind); err != nil {
			return nil, err
		}
	}
	return k, w.reach(k, ref)
}

func (w *kinds) watched(ref rollout.Ref) (*kind, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for gvk, k := range w.all {
		if gvk.Group == ref.Group && gvk.Kind == ref.Kind && k.live.inSync() {
			return k, true
		}
	}
	return nil, false
}

func kindOfObject(o rollout.Object) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion(), o.Kind())
}
