package cluster

import (
	"context"
	"errors"
	"fmt"

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
		k, err := c.kinds.of(ctx, d.gvk)
		if errors.Is(err, errUnknownKind) && defined(all, d) {
			todo = append(todo, d)
			continue
		}
		if err != nil {
			return nil, explain(err, d.ref, "list and watch")
		}
		d.kind = k
		if k.namespaced && d.ref.Namespace == "" {
			return nil, &Error{Ref: d.ref, Reason: Invalid, Msg: "has no namespace, and its kind needs one",
				Fix: "set metadata.namespace, or the app's namespace"}
		}
		if other := c.memory.contender(app, d.ref); other != "" {
			return nil, &Error{Ref: d.ref, Reason: Contested, Fix: "keep it in one of them",
				Msg: fmt.Sprintf("is in app %s and in app %s", app, other)}
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
	k, remembered := c.memory.of(d.ref)
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

func (c *Client) remember(d *desired, l *live) {
	c.memory.note(d, l)
	if l.pending != "" {
		d.kind.live.swap(l, l.settled())
	}
}

// applyOne writes one object and remembers what became of it.
func (c *Client) applyOne(ctx context.Context, d *desired) (created bool, err error) {
	if d.kind == nil {
		if d.kind, err = c.kinds.of(ctx, d.gvk); err != nil {
			return false, err
		}
	}
	if err := c.refuseForeign(ctx, d); err != nil {
		return false, err
	}
	if err := c.handOverReplicas(ctx, d); err != nil {
		return false, err
	}
	u, created, err := c.server.apply(ctx, d)
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
	c.memory.note(d, l)
	d.kind.live.put(l)
	if isCRD(d.ref) {
		return created, c.awaitEstablished(ctx, d)
	}
	return created, nil
}
