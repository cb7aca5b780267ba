package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"gitrollout.dev/gitrollout/rollout"
)

// Result lists the objects that an Apply wrote or left unchanged, in order.
type Result struct {
	Written, Unchanged []rollout.Ref
}

// Apply writes the changed objects in order with forced server-side applies. At the first refused object, Apply stops
// and returns an *Error, because later objects may depend on the object. If another writer repeatedly changes an
// object, Apply repairs the object more slowly, and after 10 s returns rollout.ErrOverwritten. Even with an error, the
// Result is valid.
func (c *Client) Apply(ctx context.Context, app string, objects []rollout.Object) (result Result, err error) {
	todo, err := c.toApply(ctx, app, objects, &result)
	if err != nil {
		return result, err
	}
	var fights error
	for _, d := range todo {
		if k, _ := c.applied.of(d.ref); d.kind != nil && k.digest == d.digest && k.fighting(time.Now()) {
			fights = errors.Join(fights, k.overwritten(d.ref, time.Now()))
			continue
		}
		if err := explain(c.applyOne(ctx, d), d.ref, "patch"); err != nil {
			if !isRefused(err) {
				c.applied.doubt(d)
			}
			return result, err
		}
		result.Written = append(result.Written, d.ref)
	}
	for _, ref := range slices.Concat(result.Written, result.Unchanged) {
		if k, _ := c.applied.of(ref); fights == nil {
			fights = k.overwritten(ref, time.Now())
		}
	}
	return result, fights
}

func (c *Client) toApply(
	ctx context.Context, app string, objects []rollout.Object, result *Result,
) (todo []*desired, err error) {
	all := make([]*desired, 0, len(objects))
	for _, o := range objects {
		if o.Annotation(rollout.AnnotationSealed) != "" {
			continue // leave the live Secret, because the new Secret is still encrypted
		}
		d, err := c.prepare(app, o)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
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
		if err := c.kinds.reach(k, d.ref); err != nil {
			return nil, explain(err, d.ref, "patch")
		}
		if k.namespaced && d.ref.Namespace == "" {
			return nil, &Error{Ref: d.ref, Reason: Invalid, Msg: "has no namespace, and its kind needs one",
				Fix: "set metadata.namespace, or the app's namespace"}
		}
		shared, err := c.contested(app, d)
		if err != nil {
			return nil, err
		}
		if shared || c.applied.isApplied(d) {
			result.Unchanged = append(result.Unchanged, d.ref)
		} else {
			todo = append(todo, d)
		}
	}
	return todo, nil
}

// contested returns an error if another app's newest commit has the object, or is unknown. Two apps may share a
// Namespace, volume or CRD with equal content.
func (c *Client) contested(app string, d *desired) (shared bool, err error) {
	l, exists := d.kind.get(d.ref)
	if !exists || l.app == "" || l.app == app || c.opts.Wants == nil {
		return false, nil
	}
	wanted, err := c.opts.Wants(l.app, d.ref)
	switch {
	case err != nil:
		return false, &Error{Ref: d.ref, Reason: Unavailable, Err: err,
			Msg: fmt.Sprintf("is in app %s, whose objects in Git are not known yet: %v", l.app, err)}
	case wanted == nil:
		return false, nil
	case d.ref.HoldsData():
		if theirs, err := c.prepare(app, wanted); err == nil && theirs.digest == d.digest {
			return true, nil
		}
	}
	return false, &Error{Ref: d.ref, Reason: Contested, Fix: "keep it in one app",
		Msg: fmt.Sprintf("is in app %s and in app %s", app, l.app)}
}

func (m *appliedCache) isApplied(d *desired) bool {
	l, exists := d.kind.get(d.ref)
	k, remembered := m.of(d.ref)
	switch {
	case !exists:
		return false
	case d.once:
		if !l.once || l.app != d.app() {
			return false
		}
	case remembered:
		return k.digest == d.digest && k.print == l.print
	case l.provenBy(d):
		m.note(d, l, "", time.Time{})
	default:
		return false
	}
	if l.pending != "" { // pending is no longer needed
		compared := *l
		compared.pending = ""
		d.kind.live.swap(l, &compared)
	}
	return true
}

func (c *Client) applyOne(ctx context.Context, d *desired) (err error) {
	if d.kind == nil {
		if d.kind, err = c.kinds.of(ctx, d.gvk); err != nil {
			return err
		}
	}
	if err := c.server.refuseForeign(ctx, d); err != nil {
		return err
	}
	by := "another writer"
	if l, exists := d.kind.get(d.ref); exists && l.writer != "" {
		by = l.writer
	}
	if k, _ := c.applied.of(d.ref); k.digest == d.digest && k.repairs > 0 {
		by += c.server.inFields(ctx, d, by)
	}
	u, err := c.server.write(ctx, d)
	if err != nil {
		return err
	}
	l, err := c.readLive(d.kind, u)
	if err != nil {
		return err
	}
	l.pending = ""
	c.applied.note(d, l, by, time.Now())
	d.kind.live.put(l)
	if isCRD(d.ref) {
		return d.awaitEstablished(ctx)
	}
	return nil
}

// inFields returns a text about the fields of d that another manager owns, such as " in spec.replicas", or "".
func (s *server) inFields(ctx context.Context, d *desired, writer string) string {
	u, err := s.get(ctx, d.kind, d.ref)
	if err != nil {
		return ""
	}
	var fields map[string]any
	for _, e := range managedEntries(u.Object) {
		if e["manager"] == writer && !isOwn(e) {
			fields = union(fields, existing(childOf(e, "fieldsV1"), d.object))
		}
	}
	if len(fields) == 0 {
		return ""
	}
	return " in " + rollout.Cut(strings.Join(paths(fields, ""), ", "), 120)
}

func (s *server) write(ctx context.Context, d *desired) (*unstructured.Unstructured, error) {
	if d.once {
		return s.makeOnce(ctx, d)
	}
	if err := s.nowAlways(ctx, d); err != nil {
		return nil, err
	}
	if err := s.handOverReplicas(ctx, d); err != nil {
		return nil, err
	}
	if err := s.takeOver(ctx, d, true); err != nil {
		return nil, err
	}
	return s.patch(ctx, patch{kind: d.kind, ref: d.ref, body: d.body(), force: true})
}

// makeOnce creates a CreateOnly Secret without Force, so that it overwrites no other writer's Secret. If the Secret
// exists, makeOnce writes only labels and annotations, because a database may already use the Secret's content.
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

func (s *server) nowAlways(ctx context.Context, d *desired) error {
	if l, exists := d.kind.get(d.ref); !exists || !l.once {
		return nil
	}
	_, err := s.annotate(ctx, d, map[string]any{"annotations": map[string]any{rollout.AnnotationCreateOnly: nil}})
	return utilerrors.FilterOut(err, apierrors.IsNotFound)
}

func (s *server) annotate(
	ctx context.Context, d *desired, metadata map[string]any,
) (*unstructured.Unstructured, error) {
	body, _ := json.Marshal(map[string]any{"metadata": metadata})
	return s.patch(ctx, patch{kind: d.kind, ref: d.ref, form: types.MergePatchType, body: body})
}
