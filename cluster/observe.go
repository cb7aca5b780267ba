package cluster

import "gitrollout.dev/gitrollout/rollout"

// Observe returns what the cluster shows of the workloads of an app. It reads
// what the watches brought and sends no request; after an Apply it shows at
// least what that Apply wrote. A workload that does not exist is left out.
// While the server refuses a watch of workloads, or does not answer, all of it is
// as it was last, and Unseen says why.
//
// Routes are the objects that a router acts on; what is not known of them, or
// has not been applied yet, is left out.
func (c *Client) Observe(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
	observed := rollout.Observed{
		Workloads: make(map[rollout.Workload]rollout.ObservedWorkload, len(workloads)),
		Routes:    c.observeRoutes(app, routes),
		Unseen:    c.workloads.unseen(),
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
