package cluster

import "gitrollout.dev/gitrollout/rollout"

// Observe returns the state of an app's workloads from the watches, without a request; after an Apply it has at least
// that Apply's writes. Workloads that do not exist, and routes that are not known or not applied yet, are left out.
// While the server refuses a watch that the app needs, or does not answer, the state is the last one, and Unseen says
// why. A kind that only other apps have does not matter.
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
			live.Serial = 0 // it comes from another app, whose records are none of this one's
		}
		observed.Workloads[w] = live
	}
	return observed
}
