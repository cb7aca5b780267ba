package cluster

import (
	"context"

	"gitrollout.dev/gitrollout/rollout"
)

// Changed is the number of objects that were written.
func (r Result) Changed() int { return len(r.Written) }

// Shows reports whether the watches show an object, and as the app's.
func (c *Client) Shows(ctx context.Context, app string, ref rollout.Ref) bool {
	_, l, err := c.candidate(ctx, app, ref)
	return err == nil && l != nil
}

// Keeps reports whether the content of an app's object is still kept, for a comparison with what is to be applied.
func (c *Client) Keeps(ctx context.Context, app string, ref rollout.Ref) bool {
	_, l, err := c.candidate(ctx, app, ref)
	return err == nil && l != nil && l.pending != ""
}
