package reconciler

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// routing is the routing of an app that this process knows to be applied.
type routing struct {
	held  string    // the routing of the last apply without an error
	key   string    // the routing at the last pass
	began time.Time // the first pass after key was applied
}

// since returns when proxies could first learn a state's routing: at the first pass after the routing was applied. If
// the routing is not applied, or after a restart, since returns now. Without routing it returns zero.
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

// looked dates a newly applied routing at the start of the next pass. The time of the apply itself would be too early.
func (r *routing) looked(now time.Time) {
	if r.key != r.held {
		r.key, r.began = r.held, now
	}
}

// applying notes that a routing is about to be applied. Even a failed apply may have replaced the former routing.
func (r *routing) applying(key string) {
	if key != r.held {
		*r = routing{}
	}
}
