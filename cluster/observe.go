package cluster

import "gitrollout.dev/gitrollout/rollout"

// Observe returns an app's workloads and routes from the watch caches, which include earlier Applies. The result lacks
// missing objects and unwatched kinds. If a watch fails, the result has the last known state, and Unseen the reason.
func (c *Client) Observe(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
	observed := rollout.Observed{
		Workloads: make(map[rollout.Workload]rollout.ObservedWorkload, len(workloads)),
		Routes:    c.observeRoutes(app, routes),
		Unseen:    c.workloads.unseen(workloads),
	}
	c.workloads.mu.Lock()
	for _, w := range workloads {
		c.workloads.owners[w] = app
	}
	c.workloads.mu.Unlock()
	c.mu.Lock()
	observed.Troubled = c.troubles.of(app)
	c.mu.Unlock()
	for _, w := range workloads {
		k, l := c.workloads.get(w)
		if l == nil {
			continue
		}
		live := c.workloads.observe(k, l)
		if l.app != app {
			live.Serial, live.BreakGlass = 0, "" // the other app's
		}
		observed.Workloads[w] = live
	}
	return observed
}
