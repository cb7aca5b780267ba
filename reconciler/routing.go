package reconciler

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// routing says which routing of an app this process has applied, and when.
type routing struct {
	held  string    // the routing that was last applied without an error
	key   string    // the routing at the last pass
	began time.Time // the first pass after key was applied
}

// since returns when proxies could first load a state's routing, which is at the first pass after the apply. The result
// is now if this process has not applied the routing, and the zero time if the state has no routing.
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

// looked notes a new routing at the start of the pass after its apply. The time of the apply would be too early.
func (r *routing) looked(now time.Time) {
	if r.key != r.held {
		r.key, r.began = r.held, now
	}
}

// applying forgets the former routing before another is applied, because even a failed apply may replace the former.
func (r *routing) applying(key string) {
	if key != r.held {
		*r = routing{}
	}
}
