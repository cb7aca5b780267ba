package reconciler

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

type routing struct {
	held  string    // last applied routing
	key   string    // routing that "began" belongs to
	began time.Time // first pass after the apply
}

// since returns the time of the first pass after the state's routing was applied. Before this pass, it returns "now".
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

// looked stores the time of the first pass after an apply. Proxies need time to load a routing.
func (r *routing) looked(now time.Time) {
	if r.key != r.held {
		r.key, r.began = r.held, now
	}
}

// applying forgets the routing before another routing is applied, because even a failed apply may change the cluster.
func (r *routing) applying(key string) {
	if key != r.held {
		*r = routing{}
	}
}
