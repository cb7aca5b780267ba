package reconciler

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// routing stores this process's routing, and since when proxies may have loaded it.
type routing struct {
	held  string    // of the last successful apply
	key   string    // applied before the last pass
	began time.Time // first pass after key's apply
}

// since returns the first pass after a routing's apply. It returns now for an unapplied routing, and zero without a
// routing.
func (r *routing) since(s rollout.State, source *rollout.Render, now time.Time) time.Time {
	if source == nil {
		return time.Time{}
	}
	switch strategies.Routing(s, source) {
	case "":
		return time.Time{}
	case r.key:
		return r.began
	}
	return now
}

// looked stores the first pass after the apply. The apply's own time would be too early.
func (r *routing) looked(now time.Time) {
	if r.key != r.held {
		r.key, r.began = r.held, now
	}
}

// applying forgets the routing, because a failed apply may change it.
func (r *routing) applying(key string) {
	if key != r.held {
		*r = routing{}
	}
}
