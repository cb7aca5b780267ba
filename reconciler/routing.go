package reconciler

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// routing stores which routing this process has applied, and since when proxies may have loaded it.
type routing struct {
	held  string    // of the last successful apply
	key   string    // applied at the start of the last pass
	began time.Time // first pass after the apply of key
}

// since returns the time of the first pass after the apply of a state's routing. It returns now if this process has not
// applied the routing, and zero without a routing.
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

// looked stores the time of the first pass after the apply of a routing. The apply's own time would be too early.
func (r *routing) looked(now time.Time) {
	if r.key != r.held {
		r.key, r.began = r.held, now
	}
}

// applying forgets the applied routing before another apply, because a failed apply may change it.
func (r *routing) applying(key string) {
	if key != r.held {
		*r = routing{}
	}
}
