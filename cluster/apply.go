package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/rollout"
)

// Result says what an Apply did with each object, in the order given.
type Result struct {
	Created    []rollout.Ref
	Configured []rollout.Ref // existed, and was written
	Unchanged  []rollout.Ref // not written
}

// Changed is the number of objects that were written.
func (r Result) Changed() int { return len(r.Created) + len(r.Configured) }

// known is what this process knows of an object that it applied, or found
// applied by its predecessor.
type known struct {
	digest string // of what was applied
	print  string // fingerprint of the owned fields after it
	app    string // for which app
	before string // the app that had it before, until that one has let go of it
}

// Apply makes the objects what they should be, in the order given, each with
// one server-side apply that takes over the fields which others set. An object
// is written only if its content changed since the last Apply, or if a watch
// shows that a field of it which is ours changed or that it is gone; otherwise
// there is no request for it at all. Every object gets rollout.LabelApp,
// rollout.AnnotationCluster and AnnotationApplied.
//
// It stops at the first object that the API server does not take and returns an
// *Error: what comes later may depend on it, and a Deployment must not start
// pods before its configuration is there. Check finds most such errors before
// anything is changed. An object with rollout.AnnotationGenerated takes over none
// that is not the app's.
//
// The result tells what was done, also when there is an error. It is safe to
// repeat at any time.
func (c *Client) Apply(ctx context.Context, app string, objects []rollout.Object) (Result, error) {
	var result Result
	all := make([]*desired, 0, len(objects))
	for _, o := range objects {
		d, err := c.prepare(app, o)
		if err != nil {
			return result, err
		}
		all = append(all, d)
	}
	todo, err := c.toApply(ctx, app, all, &result)
	if err != nil {
		return result, err
	}
	for _, d := range todo {
		created, err := c.applyOne(ctx, d)
		if err != nil {
			return result, explain(err, d.ref, "patch")
		}
		if created {
			result.Created = append(result.Created, d.ref)
		} else {
			result.Configured = append(result.Configured, d.ref)
		}
	}
	return result, nil
}

// toApply returns the objects that must be written.
func (c *Client) toApply(ctx context.Context, app string, all []*desired, result *Result) ([]*desired, error) {
	var todo []*desired
	for _, d := range all {
		k, err := c.kindOf(ctx, d.gvk)
		if errors.Is(err, errUnknownKind) && defined(all, d) {
			todo = append(todo, d)
			continue
		}
		if err != nil {
			return nil, explain(err, d.ref, "list and watch")
		}
		d.kind = k
		if k.namespaced && d.ref.Namespace == "" {
			return nil, &Error{Ref: d.ref, Reason: Invalid, Msg: "has no namespace, and its kind needs one", Fix: "set metadata.namespace, or the app's namespace"}
		}
		if other := c.contender(app, d.ref); other != "" {
			return nil, &Error{Ref: d.ref, Reason: Contested, Msg: fmt.Sprintf("is in app %s and in app %s", app, other), Fix: "keep it in one of them"}
		}
		if c.isApplied(d) {
			result.Unchanged = append(result.Unchanged, d.ref)
		} else {
			todo = append(todo, d)
		}
	}
	return todo, nil
}

// isApplied reports whether the live object is what was applied last, and that
// is what is desired now. It sends nothing.
func (c *Client) isApplied(d *desired) bool {
	l, exists := d.kind.live.get(d.kind.key(d.ref))
	c.mu.Lock()
	k, remembered := c.known[d.ref]
	c.mu.Unlock()
	switch {
	case !exists:
		return false
	case remembered:
		return k.digest == d.digest && k.print == l.print
	case l.provenBy(d):
		c.remember(d, l)
		return true
	default:
		return false
	}
}

// learn notes what is now applied, and from which app the object came.
func (c *Client) learn(d *desired, l *live) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := known{digest: d.digest, print: l.print, app: l.app}
	if was, ok := c.known[d.ref]; ok {
		k.before = was.before
		if was.app != k.app {
			k.before = was.app
		}
	}
	c.known[d.ref] = k
}

// contender returns the app that took an object from this one, which wants it
// back. An object may move between apps, but one that is in two of them would
// go to and fro with every pass.
func (c *Client) contender(app string, ref rollout.Ref) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, ok := c.known[ref]; ok && k.app != app && k.before == app {
		return k.app
	}
	return ""
}

func (c *Client) remember(d *desired, l *live) {
	c.learn(d, l)
	if l.pending != "" {
		d.kind.live.swap(l, l.settled())
	}
}

func (c *Client) remembers(ref rollout.Ref) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.known[ref]
	return ok
}

// applyOne writes one object and remembers what became of it.
func (c *Client) applyOne(ctx context.Context, d *desired) (created bool, err error) {
	if d.kind == nil {
		if d.kind, err = c.kindOf(ctx, d.gvk); err != nil {
			return false, err
		}
	}
	if err := c.refuseForeign(ctx, d); err != nil {
		return false, err
	}
	if err := c.handOverReplicas(ctx, d); err != nil {
		return false, err
	}
	u, created, err := c.applyPatch(ctx, d)
	if err != nil {
		return false, err
	}
	if u, err = c.takeOver(ctx, d, u); err != nil {
		return created, err
	}
	l, err := c.readLive(d.kind, u)
	if err != nil {
		return created, err
	}
	l.pending = ""
	c.learn(d, l)
	d.kind.live.put(l)
	if isCRD(d.ref) {
		return created, c.awaitEstablished(ctx, d)
	}
	return created, nil
}

func (c *Client) applyPatch(ctx context.Context, d *desired) (*unstructured.Unstructured, bool, error) {
	return c.patch(ctx, d.kind, d.ref, types.ApplyPatchType, d.body(), patchOptions{manager: c.opts.Manager, force: true})
}

type patchOptions struct {
	manager string
	force   bool
	dryRun  bool
}

// patch sends one PATCH and returns the object as it then is, and whether it
// was created.
func (c *Client) patch(ctx context.Context, k *kind, ref rollout.Ref, patchType types.PatchType, body []byte, o patchOptions) (*unstructured.Unstructured, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request := c.raw.Patch(patchType).AbsPath(k.path(ref)).Param("fieldManager", o.manager).Body(body)
	if o.force {
		request.Param("force", "true")
	}
	if o.dryRun {
		request.Param("dryRun", metav1.DryRunAll)
	}
	var code int
	u, err := answer(request.Do(ctx).StatusCode(&code))
	return u, code == http.StatusCreated, err
}

// answer reads an object. Only Error reads the API server's own message out of
// a refusal; Raw alone says "unknown".
func answer(result rest.Result) (*unstructured.Unstructured, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, u); err != nil {
		return nil, fmt.Errorf("read the API server's answer: %w", err)
	}
	return u, nil
}

// path is where the API server serves an object.
func (k *kind) path(ref rollout.Ref) string {
	parts := []string{"/apis", k.resource.Group, k.resource.Version}
	if k.resource.Group == "" {
		parts = []string{"/api", k.resource.Version}
	}
	if k.namespaced {
		parts = append(parts, "namespaces", ref.Namespace)
	}
	return strings.Join(append(parts, k.resource.Resource, ref.Name), "/")
}

func (c *Client) get(ctx context.Context, k *kind, ref rollout.Ref) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return answer(c.raw.Get().AbsPath(k.path(ref)).Do(ctx))
}

// isConflict reports that somebody else wrote the object meanwhile.
func isConflict(err error) bool { return apierrors.IsConflict(err) }
