package cluster

import "gitrollout.dev/gitrollout/rollout"

// Observe returns the state of an app's workloads from the watches. It makes no request, and includes the writes of
// earlier calls of Apply. Missing workloads and routes that are unknown or not applied yet are left out. If a watch for
// the app fails or cannot start, the state is the last one seen, and Unseen has the reason.
func (c *Client) Observe(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
	observed := rollout.Observed{
		Workloads: make(map[rollout.Workload]rollout.ObservedWorkload, len(workloads)),
		Routes:    c.observeRoutes(app, routes),
		Unseen:    c.workloads.unseen(workloads),
	}
	c.workloads.own(app, workloads)
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
			live.Serial = 0 // the object has another app's label, so its serial does not count
		}
		observed.Workloads[w] = live
	}
	return observed
}
