package cluster

import (
	"context"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"gitrollout.dev/gitrollout/rollout"
)

// Check asks the API server by dry runs whether it would accept the objects. An object may occur in several versions.
// The only real write is takeOver's change of managed fields. Check skips objects whose CRD or Namespace is new, and
// returns the first refusal.
func (c *Client) Check(ctx context.Context, app string, objects []rollout.Object) error {
	todo, err := c.toApply(ctx, app, objects, &Result{})
	if err != nil {
		return err
	}
	for _, d := range todo {
		if d.kind == nil || d.kind.namespaced || c.opts.MayHave == nil {
			continue
		}
		if no := c.opts.MayHave(app, d.ref.GroupKind()); no != nil {
			no.Msg = d.ref.Title() + ": belongs to no namespace, and " + no.Msg
			return no
		}
	}
	return c.rehearse(ctx, todo)
}

// tries is the backoff of dry runs. If 1 % of requests fail, the chance that 300 dry runs all succeed without retries
// is only 5 %.
var tries = wait.Backoff{Steps: 3, Duration: 100 * time.Millisecond, Factor: 3, Jitter: 0.1}

func (c *Client) rehearse(ctx context.Context, todo []*desired) error {
	namespaces := map[string]bool{}
	for _, d := range todo {
		if d.gvk.Group == "" && d.gvk.Kind == "Namespace" {
			namespaces[d.ref.Name] = true
		}
	}
	// A timeout is not retried, because it has already taken requestTimeout.
	isPassing := func(err error) bool {
		var e *Error
		return errors.As(err, &e) && e.Reason == Unavailable && !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	}
	for _, d := range todo {
		if d.kind == nil || namespaces[d.ref.Namespace] {
			continue
		}
		if err := repeated(ctx, tries, isPassing, func() error { return c.rehearseOne(ctx, d) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) rehearseOne(ctx context.Context, d *desired) error {
	if err := c.server.refuseForeign(ctx, d); err != nil {
		return err
	}
	if d.once {
		if _, err := c.server.get(ctx, d.kind, d.ref); !apierrors.IsNotFound(err) {
			return explain(err, d.ref, "get") // an apply keeps the content of an existing CreateOnly Secret
		}
	}
	err := c.server.takeOver(ctx, d, false) // a list entry that left Git could conflict with a new entry
	if err == nil {
		_, err = c.server.patch(ctx, patch{kind: d.kind, ref: d.ref, body: d.body(), force: true, dryRun: true})
	}
	if err != nil && !strings.Contains(err.Error(), "does not support dry run") {
		return explain(err, d.ref, "patch")
	}
	return nil
}
