package reconciler

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// routing holds an app's routing, as far as this process has applied it.
type routing struct {
	held  string    // the routing that was last applied without an error
	key   string    // the routing at the last pass
	began time.Time // the first pass after key was applied
}

// since returns when proxies could begin to learn a state's routing: at the first pass after the apply. It returns now
// if this process has not applied the routing, and zero if there is no routing.
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

// looked sets when a new routing began: at the start of the next pass, because the apply itself is too early.
func (r *routing) looked(now time.Time) {
	if r.key != r.held {
		r.key, r.began = r.held, now
	}
}

// applying notes that a routing gets applied. Even a failed apply may have replaced the former routing.
func (r *routing) applying(key string) {
	if key != r.held {
		*r = routing{}
	}
}
