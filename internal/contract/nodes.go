package contract

import (
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// daemon returns a DaemonSet with the given version. Its update strategy is OnDelete if byHand is true, and otherwise RollingUpdate.
func (c *clusterTest) daemon(version string, byHand bool) rollout.Object {
	o := c.deployment("agent", version, 1)
	o["kind"] = "DaemonSet"
	spec := o.Map("spec")
	delete(spec, "strategy")
	delete(spec, "replicas")
	spec["updateStrategy"] = map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": int64(1)}}
	if byHand {
		spec["updateStrategy"] = map[string]any{"type": "OnDelete"}
	}
	o.Map("spec", "template", "spec")["terminationGracePeriodSeconds"] = int64(1)
	return o
}

// all returns a function that formats the result of pods() for n pods of one version.
func all(version string) func(int) string {
	return func(n int) string { return fmt.Sprintf("%s %d", version, n) }
}

// awaitOnNodes waits until the Observer shows the current revision, and pods() equals want(n) for n desired pods.
func (c *clusterTest) awaitOnNodes(kind string, complete bool, want func(n int) string) (live rollout.ObservedWorkload) {
	c.Helper()
	c.Await(c.T, "a DaemonSet is, of 3 nodes, "+want(3), func() bool {
		live = c.observe(kind, "agent")
		current, found := live.Find(live.Hash)
		return live.Synced && live.Replicas > 0 && pods(live) == want(live.Replicas) && live.Complete == complete &&
			found && current.Current
	})
	return live
}

// isGoing checks that the Observer shows a pod as terminating immediately after the pod's eviction.
func (c *clusterTest) isGoing(kind string, evicted rollout.Pod) {
	c.Helper()
	live := c.observe(kind, "agent")
	if fresh, _ := live.Find("h1-v2"); fresh.Desired != 1 {
		c.Errorf("right after the eviction of %s, the new version has %d desired pods; want 1", evicted.Name, fresh.Desired)
	}
	for _, r := range live.Revisions {
		for _, p := range r.Members {
			if p.UID == evicted.UID && !p.Terminating {
				c.Errorf("right after it was evicted, %s is shown as %+v", p.Name, p)
			}
		}
	}
}

// evictions tests how evictions of single pods release a new version of a DaemonSet with the update strategy OnDelete.
func evictions(c *clusterTest) {
	const kind = "DaemonSet"
	c.apply(c.daemon("v1", false))
	live := c.awaitOnNodes(kind, true, all("v1"))
	one := live.Revisions[0]
	if !one.Current || one.Base || one.Pin.Label != rollout.LabelRevision || one.Pin.Value == "" || one.Desired != live.Replicas {
		c.Errorf("at rest its revision is %+v", one)
	}
	c.apply(c.daemon("v2", true))
	live = c.awaitOnNodes(kind, false, all("v1"))
	fresh, found := live.Find("h1-v2")
	if live.Hash != "h1-v2" || !found || !fresh.Current || fresh.Desired != 0 || fresh.Pin == one.Pin {
		c.Errorf("when nothing is evicted it is %+v", live)
	}
	victim := membersOf(live, "v1")[1]
	c.evict(victim)
	c.isGoing(kind, victim)
	live = c.awaitOnNodes(kind, false, func(n int) string { return fmt.Sprintf("v1 %d, v2 1", n-1) })
	stays := func(p rollout.Pod) bool { return p.Node == victim.Node }
	if news := membersOf(live, "v2"); news[0].Node != victim.Node || victim.Node == "" || slices.ContainsFunc(membersOf(live, "v1"), stays) {
		c.Errorf("%+v was evicted, and the new pods are %+v", victim, news)
	}
	nodes, err := c.Nodes(c.Context())
	if err != nil || len(nodes) != live.Replicas || nodes[victim.Node]["topology.kubernetes.io/zone"] == "" {
		c.Errorf("of %d nodes the labels are %v, %v", live.Replicas, nodes, err)
	}
	c.apply(c.daemon("v1", false)) // the revision of v1 becomes the newest again
	back := c.awaitOnNodes(kind, true, all("v1"))
	if r, _ := back.Find("h1-v1"); r.Pin != one.Pin || !r.Current || back.Hash != "h1-v1" {
		c.Errorf("back at v1 it is %+v", back)
	}
	c.apply(c.daemon("v2", false))
	c.awaitOnNodes(kind, true, all("v2"))
}
