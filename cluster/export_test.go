package cluster

import (
	"context"

	"gitrollout.dev/gitrollout/rollout"
)

// Changed returns the number of written objects.
func (r Result) Changed() int { return len(r.Written) }

// Shows reports whether the watch caches have the object with the app's labels.
func (c *Client) Shows(ctx context.Context, app string, ref rollout.Ref) bool {
	_, l, err := c.candidate(ctx, app, ref)
	return err == nil && l != nil
}

// Keeps reports whether the record of an app's object still contains the managed fields. Only the first comparison with Git needs these
// fields.
func (c *Client) Keeps(ctx context.Context, app string, ref rollout.Ref) bool {
	_, l, err := c.candidate(ctx, app, ref)
	return err == nil && l != nil && l.pending != ""
}
