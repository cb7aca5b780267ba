package reconciler

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// routing is what this process knows of what the cluster was made to route.
type routing struct {
	held  string    // what it held when objects were last applied without an error
	key   string    // what it has held since
	since time.Time // the beginning of the first pass after that
}

// routedSince is from when on proxies could learn of what a state asks routers
// for: not before the cluster has held it. What is not applied yet could not be
// learnt of before now, and a process that has just started does not know. It is
// zero for a state that routes nothing.
func (a *app) routedSince(s rollout.State, source *rollout.Render, now time.Time) time.Time {
	if source == nil {
		return time.Time{}
	}
	key := strategies.Routing(s, source)
	switch {
	case key == "":
		return time.Time{}
	case a.routing.key == key:
		return a.routing.since
	case a.routing.held == key:
		a.routing.key, a.routing.since = key, now
	}
	return now
}
