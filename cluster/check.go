package cluster

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gitrollout.dev/gitrollout/rollout"
)

// Check asks the API server whether Apply would be accepted, by a dry run of
// each object that Apply would write, and changes nothing. An object may be there
// in several forms. The error is the
// first object's *Error. Objects whose kind or namespace the set itself brings
// cannot be asked about before it is there.
func (c *Client) Check(ctx context.Context, app string, objects []rollout.Object) error {
	todo, err := c.toApply(ctx, app, objects, &Result{})
	if err != nil {
		return err
	}
	for _, d := range todo {
		if kind := d.ref.GroupKind(); d.kind != nil && !d.kind.namespaced && !c.opts.MayHave(app, kind) {
			return &Error{Ref: d.ref, Reason: Forbidden,
				Msg: fmt.Sprintf("belongs to no namespace, and app %s may not have any %s", app, kind),
				Fix: "if it is to have that, add to its entry in the configuration: clusterResources: [" + kind + "]"}
		}
	}
	return c.rehearse(ctx, todo)
}

// rehearse sends each object as a dry run.
func (c *Client) rehearse(ctx context.Context, todo []*desired) error {
	namespaces := map[string]bool{}
	for _, d := range todo {
		if d.gvk.Group == "" && d.gvk.Kind == "Namespace" {
			namespaces[d.ref.Name] = true
		}
	}
	for _, d := range todo {
		if d.kind == nil || namespaces[d.ref.Namespace] {
			continue
		}
		if err := c.server.refuseForeign(ctx, d); err != nil {
			return err
		}
		if d.once {
			if _, err := c.server.get(ctx, d.kind, d.ref); !apierrors.IsNotFound(err) {
				if err != nil {
					return explain(err, d.ref, "get")
				}
				continue // it stays as it is
			}
		}
		_, _, err := c.server.patch(ctx, patch{kind: d.kind, ref: d.ref, body: d.body(), force: true, dryRun: true})
		if err != nil && !strings.Contains(err.Error(), "does not support dry run") {
			return explain(err, d.ref, "patch")
		}
	}
	return nil
}
