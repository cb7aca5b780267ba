package cluster

import (
	"context"
	"errors"
	"fmt"

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
	ready      chan struct{} // closed when the first list is in, or failed
	err        error         // why it failed; read after ready
}

// key returns the table's key of an object, which has no namespace for kinds
// that know none, whatever the manifest says.
func (k *kind) key(ref rollout.Ref) key {
	if !k.namespaced {
		return key{name: ref.Name}
	}
	return key{ref.Namespace, ref.Name}
}

// errUnknownKind is returned inside an Error for kinds that the API server does
// not serve.
var errUnknownKind = errors.New("is not known to the cluster")

// kindOf returns a kind whose watch is in sync, and starts the watch when it is
// the first to ask.
func (c *Client) kindOf(ctx context.Context, gvk schema.GroupVersionKind) (*kind, error) {
	c.mu.Lock()
	k, exists := c.kinds[gvk]
	if exists {
		c.mu.Unlock()
		select {
		case <-k.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if errors.Is(k.err, context.Canceled) && ctx.Err() == nil && c.root.Err() == nil {
			return c.kindOf(ctx, gvk) // whoever was first has given up; we have not
		}
		return k, k.err
	}
	if c.root == nil {
		c.mu.Unlock()
		return nil, errors.New("cluster client is not started")
	}
	k = &kind{gvk: gvk, ready: make(chan struct{})}
	c.kinds[gvk] = k
	root := c.root
	c.mu.Unlock()

	if k.err = c.watchKind(ctx, root, k); k.err != nil {
		c.forget(k)
	}
	close(k.ready)
	return k, k.err
}

// forget makes the next user of the kind start over.
func (c *Client) forget(k *kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds[k.gvk] == k {
		delete(c.kinds, k.gvk)
	}
	if k.stop != nil {
		k.stop()
	}
}

func (c *Client) watchKind(ctx, root context.Context, k *kind) error {
	mapping, err := c.mapping(k.gvk)
	if err != nil {
		return err
	}
	k.resource, k.namespaced = mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace
	k.live = newTable(func(obj any) (*live, error) { return c.readLive(k, obj) }, c.liveChanged)
	watching, stop := context.WithCancel(root)
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
	if err := k.live.await(ctx); err != nil {
		stop()
		return fmt.Errorf("watch %s: %w", k.resource.GroupResource(), err)
	}
	return nil
}

// noteGone ends the watch of a kind whose CRD was deleted, with all its objects.
func (c *Client) noteGone(k *kind, err error) {
	if !apierrors.IsNotFound(err) {
		return
	}
	select {
	case <-k.ready:
		c.forget(k)
		c.mapper.Reset()
		_ = k.live.Replace(nil, "") // an empty list reads nothing that could fail
	default: // the first look: await reports it
	}
}

// mapping finds the resource of a kind. A kind that is not known is looked up
// again at the API server, because its CRD may be new.
func (c *Client) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), versions(gvk)...)
	if meta.IsNoMatchError(err) {
		c.mapper.Reset()
		mapping, err = c.mapper.RESTMapping(gvk.GroupKind(), versions(gvk)...)
	}
	if meta.IsNoMatchError(err) {
		return nil, errUnknownKind
	}
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", gvk.Kind, err)
	}
	return mapping, nil
}

func versions(gvk schema.GroupVersionKind) []string {
	if gvk.Version == "" {
		return nil
	}
	return []string{gvk.Version}
}

// kindOfRef returns the kind of a reference, which names no version: the one
// that is watched already, or else the one that the API server prefers.
func (c *Client) kindOfRef(ctx context.Context, ref rollout.Ref) (*kind, error) {
	if k, ok := c.watchedKind(ref); ok {
		return k, nil
	}
	mapping, err := c.mapping(schema.GroupVersionKind{Group: ref.Group, Kind: ref.Kind})
	if err != nil {
		return nil, err
	}
	return c.kindOf(ctx, mapping.GroupVersionKind)
}

func (c *Client) watchedKind(ref rollout.Ref) (*kind, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gvk, k := range c.kinds {
		if gvk.Group != ref.Group || gvk.Kind != ref.Kind {
			continue
		}
		select {
		case <-k.ready:
			return k, true
		default:
		}
	}
	return nil, false
}

func kindOfObject(o rollout.Object) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion(), o.Kind())
}
