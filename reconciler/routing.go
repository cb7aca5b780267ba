package reconciler

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// routing stores which routing of an app this process has applied, and since when proxies may have loaded it.
type routing struct {
	held  string    // the routing of the last apply without an error
	key   string    // the applied routing at the start of the last pass
	began time.Time // the time of the first pass after the apply of key
}

// since returns the time from which proxies may have loaded a state's routing: the first pass after the apply of this
// routing. It returns now if this process has not applied it, and the zero time if the state has no routing.
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

// looked stores the time of the first pass after the apply of a new routing. The time of the apply would be too early.
func (r *routing) looked(now time.Time) {
	if r.key != r.held {
		r.key, r.began = r.held, now
	}
}

// applying forgets the applied routing before the apply of another one, because a failed apply may have changed it.
func (r *routing) applying(key string) {
	if key != r.held {
		*r = routing{}
	}
}
