package cluster

import (
	"cmp"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

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

// Applied is an applied workload with its labels and annotations.
type Applied struct {
	App       string // rollout.LabelApp
	Cluster   string // rollout.AnnotationCluster
	Workload  rollout.Workload
	Commit    string // rollout.AnnotationCommit
	Status    string // rollout.AnnotationStatus; "" unless a release waits at a step
	Live      rollout.ObservedWorkload
	Generated bool // runs an experiment; deleted at the end of the step
}

// Applied lists the cached applied workloads, sorted by app and name, each once, even if watched in two versions.
func (c *Client) Applied() []Applied {
	var all []Applied
	for _, k := range c.workloads.all() {
		objects := k.objects.Load()
		if objects == nil {
			continue
		}
		for _, l := range slices.Collect(objects.live.each) {
			if l.app == "" || l.cluster == "" || l.workload == nil {
				continue
			}
			workload, _ := rollout.WorkloadOf(l.ref)
			all = append(all, Applied{
				App: l.app, Cluster: l.cluster, Workload: workload, Generated: l.workload.generated,
				Commit: l.workload.commit, Status: l.workload.status, Live: c.workloads.observe(k, l),
			})
		}
	}
	slices.SortFunc(all, func(a, b Applied) int {
		return cmp.Or(cmp.Compare(a.App, b.App), a.Workload.Compare(b.Workload))
	})
	return slices.CompactFunc(all, func(a, b Applied) bool { return a.Workload == b.Workload })
}
