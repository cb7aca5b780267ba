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
	began time.Time // the first look after that
}

// since is from when on proxies could learn of what a state asks routers for: not before the cluster has held it. What
// is not applied yet could not be learnt of before now, and a process that has just started does not
// know. It is zero for a state that routes nothing.
func (r *routing) since(s rollout.State, source *rollout.Render, now time.Time) time.Time {
	if source == nil {
		return time.Time{}
	}
	key := strategies.Routing(s, source)
	switch key {
	case "":
		return time.Time{}
	case r.key:
		return r.began
	default:
		return now
	}
}

// looked says that it is so late, and that what was applied has been applied by now. A visit that applies something
// itself began before that, and the cluster may take its time.
func (r *routing) looked(now time.Time) {
	if r.key != r.held {
		r.key, r.began = r.held, now
	}
}

// applying says that the cluster is about to be made to route something. If it is something else than before, a part
// of it may arrive even where the rest fails: what was held before is then not held any more.
func (r *routing) applying(key string) {
	if key != r.held {
		*r = routing{}
	}
}
