package reconciler

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// routing is the routing that this process knows to have been applied for an app.
type routing struct {
	held  string    // the routing of the last apply without an error
	key   string    // the routing at the last pass
	began time.Time // the first pass after it was applied
}

// since returns from when on proxies could learn a state's routing: after the cluster has it. Unapplied, or after a
// restart, it is now; without routing, zero.
func (r *routing) since(s rollout.State, source *rollout.Render, now time.Time) time.Time {
	if source == nil {
		return time.Time{}
	}
	switch strategies.Routing(s, source) {
	case "":
		return time.Time{}
	case r.key:
		return r.began
	default:
		return now
	}
}

// looked notes at a pass's start that the last apply has arrived. The apply's own time would be too early.
func (r *routing) looked(now time.Time) {
	if r.key != r.held {
		r.key, r.began = r.held, now
	}
}

// applying notes that a routing is about to be applied. Even a failed apply ends another former routing.
func (r *routing) applying(key string) {
	if key != r.held {
		*r = routing{}
	}
}
