package reconciler

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// routing is what this process knows of what the cluster was made to route for an app.
type routing struct {
	held  string    // what it held when objects were last applied without an error
	key   string    // what it has held since
	began time.Time // the beginning of the first visit after that
}

// since is from when on proxies could learn of what a state asks routers for: not before the cluster has held it. What
// is not applied yet could not be learnt of before now, and a process that has just started does not
// know. It is zero for a state that routes nothing.
func (r *routing) since(s rollout.State, source *rollout.Render, now time.Time) time.Time {
	if source == nil {
		return time.Time{}
	}
	key := strategies.Routing(s, source)
	switch {
	case key == "":
		return time.Time{}
	case r.key == key:
		return r.began
	case r.held == key:
		r.key, r.began = key, now
	}
	return now
}

// applying says that the cluster is about to be made to route something. If it is something else than before, a part
// of it may arrive even where the rest fails: what was held before is then not held any more.
func (r *routing) applying(key string) {
	if key != r.held {
		*r = routing{}
	}
}
