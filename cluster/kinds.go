package cluster

import (
	"context"
	"errors"
	"fmt"
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

// kind is one kind of applied object: how it is called in URLs, and the watch
// over those of its objects that carry rollout.LabelApp. Other objects are not
// kept, so that a cluster with 50,000 Secrets costs nothing. Deployments are
// watched without selector: those not yet adopted have no label.
type kind struct {
	gvk        schema.GroupVersionKind
	resource   schema.GroupVersionResource
	namespaced bool
	live       *table[*live]
	stop       context.CancelFunc
	late       atomic.Bool // somebody has waited for the first list in vain
}

// key returns the table's key of an object, which has no namespace for kinds
// that know none, whatever the manifest says.
func (k *kind) key(ref rollout.Ref) key {
	if !k.namespaced {
		return key{name: ref.Name}
	}
	return key{ref.Namespace, ref.Name}
}

// firstList is how long somebody waits for the first list of a kind: 5,000
// Deployments take 0.3 seconds. A list that fails, for instance because the
// conversion webhook of a CRD is dead, is tried again in the background, and
// nobody waits for it a second time.
const firstList = 5 * time.Second

// kindOf returns a kind whose watch is in sync, and starts the watch when it is
// the first to ask.
func (c *Client) kindOf(ctx context.Context, gvk schema.GroupVersionKind) (*kind, error) {
	k, err := c.watching(ctx, gvk)
	if err != nil {
		return nil, err
	}
	patience := firstList
	if k.late.Load() {
		patience = 0
	}
	err = k.live.await(ctx, patience)
	if err == nil {
		return k, nil
	}
	if ctx.Err() == nil {
		k.late.Store(true)
	}
	if permanent(err) {
		c.forget(k)
	}
	if apierrors.IsNotFound(err) { // what was seen of the kind is out of date
		_, _, _ = c.resources.look(ctx)
	}
	return nil, fmt.Errorf("watch %s: %w", k.resource.GroupResource(), err)
}

// watching returns a kind whose watch is started.
func (c *Client) watching(ctx context.Context, gvk schema.GroupVersionKind) (*kind, error) {
	c.mu.Lock()
	k, root := c.kinds[gvk], c.root
	c.mu.Unlock()
	if k != nil {
		return k, nil
	}
	if root == nil {
		return nil, errors.New("cluster client is not started")
	}
	mapping, err := c.resources.find(ctx, gvk)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kinds[gvk]; k != nil {
		return k, nil // somebody else was faster
	}
	k = &kind{
		gvk: gvk, resource: mapping.Resource, namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
	}
	k.live = newTable(func(obj any) (*live, error) { return c.readLive(k, obj) }, c.liveChanged)
	c.kinds[gvk] = k
	c.watchKind(k)
	return k, nil
}

// forget makes the next user of the kind start over.
func (c *Client) forget(k *kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds[k.gvk] == k {
		delete(c.kinds, k.gvk)
	}
	k.stop()
}

// watchKind fills the table of a kind until forget or the end of the client.
func (c *Client) watchKind(k *kind) {
	watching, stop := context.WithCancel(c.root)
	k.stop = stop
	selector := rollout.LabelApp
	if k.gvk == deploymentKind() {
		selector = ""
	}
	client := c.dynamic.Resource(k.resource)
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(k.gvk)
	runWatch(c, watching, k.live, k.resource.String(), example, source{
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			list, err := client.List(ctx, o)
			c.noteGone(k, err)
			return list, err
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			w, err := client.Watch(ctx, o)
			c.noteGone(k, err)
			return w, err
		},
	})
}

// noteGone ends the watch of a kind whose CRD was deleted, with all its objects.
func (c *Client) noteGone(k *kind, err error) {
	if !apierrors.IsNotFound(err) {
		return
	}
	if !k.live.inSync() {
		return // the first look: whoever waits for it reports it
	}
	c.forget(k)
	c.resources.begin()
	_ = k.live.Replace(nil, "") // an empty list reads nothing that could fail
}

// kindOfRef returns the kind of a reference, which names no version: the one
// that is watched already, or else the one that the API server prefers.
func (c *Client) kindOfRef(ctx context.Context, ref rollout.Ref) (*kind, error) {
	if k, ok := c.watchedKind(ref); ok {
		return k, nil
	}
	mapping, err := c.resources.find(ctx, schema.GroupVersionKind{Group: ref.Group, Kind: ref.Kind})
	if err != nil {
		return nil, err
	}
	return c.kindOf(ctx, mapping.GroupVersionKind)
}

func (c *Client) watchedKind(ref rollout.Ref) (*kind, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gvk, k := range c.kinds {
		if gvk.Group == ref.Group && gvk.Kind == ref.Kind && k.live.inSync() {
			return k, true
		}
	}
	return nil, false
}

func kindOfObject(o rollout.Object) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion(), o.Kind())
}
