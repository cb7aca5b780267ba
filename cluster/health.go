package cluster

import (
	"context"
	"errors"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"gitrollout.dev/gitrollout/rollout"
)

// HealthStatus is kstatus' verdict on one object.
type HealthStatus string

// The verdicts.
const (
	Current     = HealthStatus(status.CurrentStatus)     // is what its spec asks for
	InProgress  = HealthStatus(status.InProgressStatus)  // is on the way there
	Failed      = HealthStatus(status.FailedStatus)      // will not get there by itself
	Terminating = HealthStatus(status.TerminatingStatus) // is being deleted
	NotFound    = HealthStatus(status.NotFoundStatus)    // does not exist, or is not the app's
	Unknown     = HealthStatus(status.UnknownStatus)     // has a status that cannot be read
)

// Health is the health of one object.
type Health struct {
	Ref     rollout.Ref
	Status  HealthStatus
	Message string // one line, "" for NotFound
}

// Health returns the health of objects of an app, in the order given, from the
// watches: it sends requests only for a kind that it never saw before. While a
// release is held its Deployment is InProgress, because its new pods never
// count as available; strategies judges those from Observe.
func (c *Client) Health(ctx context.Context, app string, refs []rollout.Ref) ([]Health, error) {
	out := make([]Health, 0, len(refs))
	for _, ref := range refs {
		h := Health{Ref: ref, Status: NotFound}
		k, err := c.kindOfRef(ctx, ref)
		if err != nil && !errors.Is(err, errUnknownKind) {
			return nil, explain(err, ref, "list and watch")
		}
		if err == nil {
			if l, ok := k.live.get(k.key(ref)); ok && l.app == app {
				h = l.health
				h.Ref = ref
			}
		}
		out = append(out, h)
	}
	return out, nil
}
