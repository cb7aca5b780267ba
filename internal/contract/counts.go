package contract

import (
	"fmt"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// CloneSets tests OpenKruise's controller of CloneSets, or a model of this controller. It tests only behaviour on which releases depend.
func CloneSets(t *testing.T, open func(t *testing.T) Cluster) {
	c := open(t)
	counts(&clusterTest{T: t, Cluster: c, app: "contract-" + c.Namespace()})
}

// clones returns a CloneSet with the given version, n replicas and the given partition. If partition is nil, the field is not set.
func (c *clusterTest) clones(version string, n int, partition any) rollout.Object {
	o := c.deployment("web", version, n)
	o["apiVersion"], o["kind"] = "apps.kruise.io/v1alpha1", "CloneSet"
	spec := o.Map("spec")
	delete(spec, "strategy")
	spec["revisionHistoryLimit"] = int64(10)
	spec["updateStrategy"] = map[string]any{"type": "ReCreate", "maxUnavailable": int64(1)}
	if partition != nil {
		spec["updateStrategy"].(map[string]any)["partition"] = partition
	}
	o.Map("spec", "template", "spec")["terminationGracePeriodSeconds"] = int64(1)
	return o
}

func (c *clusterTest) clone() rollout.ObservedWorkload {
	return c.observe("CloneSet.apps.kruise.io", "web")
}

// awaitClones waits until each version has the wanted number of ready pods, and no other pod is desired.
func (c *clusterTest) awaitClones(want string, complete bool) (live rollout.ObservedWorkload) {
	c.Helper()
	c.Await(c.T, fmt.Sprintf("%s, complete %t", want, complete), func() bool {
		live = c.clone()
		asked := 0
		for _, r := range live.Revisions {
			asked += r.Desired
		}
		return live.Synced && pods(live) == want && live.Complete == complete && asked == live.Replicas
	})
	return live
}

// counts tests how a CloneSet's partition divides the pods between two versions.
func counts(c *clusterTest) {
	c.apply(c.clones("v1", 4, nil))
	one := c.awaitClones("v1 4", true).Revisions[0]
	if !one.Base || !one.Current || one.Hash != "h1-v1" || one.Pin != (rollout.Pin{Label: rollout.LabelRevision, Value: one.Name}) {
		c.Errorf("at rest its revision is %+v", one)
	}
	c.apply(c.clones("v2", 4, int64(3)))
	if live := c.clone(); live.Hash != "h1-v2" || live.Complete {
		c.Errorf("right after Apply it is %+v", live)
	}
	live := c.awaitClones("v1 3, v2 1", false)
	fresh, _ := live.Find("h1-v2")
	stable, _ := live.Find("h1-v1")
	if !fresh.Current || fresh.Base || stable.Current || !stable.Base || len(fresh.Members) != 1 {
		c.Errorf("at the partition 3 it is %+v", live)
	}
	c.apply(c.clones("v2", 8, "75%")) // the new version keeps its share while the replicas grow
	c.awaitClones("v1 6, v2 2", false)
	c.apply(c.clones("v2", 8, int64(7))) // a larger partition moves no pod back to v1
	c.awaitClones("v1 6, v2 2", false)
	c.apply(c.clones("v2", 4, "75%"))
	c.awaitClones("v1 3, v2 1", false)
	c.apply(c.clones("v1", 4, nil))
	back := c.awaitClones("v1 4", true)
	if r, _ := back.Find("h1-v1"); r.Pin != one.Pin || !r.Base {
		c.Errorf("back at v1 it is %+v, it was %+v", r, one)
	}
	c.apply(c.clones("v3-neverready", 4, int64(3)))
	c.Await(c.T, "the broken pod", func() bool { return len(membersOf(c.clone(), "v3-neverready")) == 1 })
	c.apply(c.clones("v1", 4, nil)) // the unready pod of v3 does not block the update to v1
	c.awaitClones("v1 4", true)
	c.apply(c.clones("v2", 4, nil))
	if r := c.awaitClones("v2 4", true).Revisions[0]; r.Hash != "h1-v2" || !r.Base {
		c.Errorf("at the end the newest revision is %+v", r)
	}
	c.apply(c.clones("v1", 0, int64(2))) // without pods, the CloneSet's template becomes stable at any partition
	c.Await(c.T, "no pod", func() bool {
		r, _ := c.clone().Find("h1-v1")
		return r.Base && pods(c.clone()) == ""
	})
	c.apply(c.clones("v1", 3, int64(2)))
	c.awaitClones("v1 3", true)
}
