package contract

import (
	"fmt"
	"slices"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// AdvancedDaemonSets tests OpenKruise's controller of Advanced DaemonSets, or a model of this controller. It
// tests only behaviour on which a release of an Advanced DaemonSet depends.
func AdvancedDaemonSets(t *testing.T, open func(t *testing.T) Cluster) {
	c := open(t)
	nodesByPartition(&clusterTest{T: t, Cluster: c, app: "contract-" + c.Namespace()})
}

// agents returns an Advanced DaemonSet with the given version and partition.
func (c *clusterTest) agents(version string, partition int) rollout.Object {
	o := c.daemon(version, false)
	o["apiVersion"] = "apps.kruise.io/v1alpha1"
	o.Map("spec")["revisionHistoryLimit"] = int64(10)
	update := o.Map("spec", "updateStrategy", "rollingUpdate")
	update["rollingUpdateType"], update["partition"] = "Standard", int64(partition)
	return o
}

func nodesByPartition(c *clusterTest) {
	const kind = "DaemonSet.apps.kruise.io"
	split := func(format string, news int) func(int) string {
		return func(n int) string { return fmt.Sprintf(format, n-news, news) }
	}
	c.apply(c.agents("v1", 0))
	live := c.awaitOnNodes(kind, true, all("v1"))
	one, n := live.Revisions[0], live.Replicas
	if !one.Current || one.Base || one.Pin.Label != rollout.LabelRevision || one.Pin.Value == "" || one.Desired != n {
		c.Errorf("at rest its revision is %+v", one)
	}
	c.apply(c.agents("v2", n-1))
	live = c.awaitOnNodes(kind, false, split("v1 %d, v2 %d", 1))
	fresh, _ := live.Find("h1-v2")
	if live.Hash != "h1-v2" || !fresh.Current || fresh.Desired != 1 || fresh.Pin == one.Pin {
		c.Errorf("at one node it is %+v", live)
	}
	members := slices.Concat(membersOf(live, "v1"), membersOf(live, "v2"))
	last := slices.Max(rollout.Mapped(members, func(p rollout.Pod) string { return p.Node }))
	if first := membersOf(live, "v2")[0].Node; first != last {
		c.Errorf("the first node is %s, want the last one by its name, %s", first, last)
	}
	c.apply(c.agents("v2", n-2))
	c.awaitOnNodes(kind, false, split("v1 %d, v2 %d", 2))
	c.apply(c.agents("v2", n-1)) // a larger partition moves no pod back to v1
	c.awaitOnNodes(kind, false, split("v1 %d, v2 %d", 2))
	c.apply(c.agents("v1", 0)) // the revision of v1 becomes the newest again
	back := c.awaitOnNodes(kind, true, all("v1"))
	if r, _ := back.Find("h1-v1"); r.Pin != one.Pin || !r.Current || back.Hash != "h1-v1" {
		c.Errorf("back at v1 it is %+v", back)
	}
	c.apply(c.agents("v3-neverready", n-1))
	c.Await(c.T, "the broken pod", func() bool { return len(membersOf(c.observe(kind, "agent"), "v3-neverready")) == 1 })
	c.apply(c.agents("v1", 0)) // the unready pod of v3 does not block the update to v1
	c.awaitOnNodes(kind, true, all("v1"))
	c.apply(c.agents("v2", 0))
	c.awaitOnNodes(kind, true, all("v2"))
}
