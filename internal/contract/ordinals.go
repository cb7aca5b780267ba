package contract

import (
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// ordinals returns a StatefulSet with the given version, n replicas and the given partition.
func (c *clusterTest) ordinals(policy, version string, n, partition int) rollout.Object {
	o := c.deployment("db", version, n)
	o["kind"] = "StatefulSet"
	spec := o.Map("spec")
	delete(spec, "strategy")
	spec["serviceName"], spec["podManagementPolicy"] = "db", policy
	spec["updateStrategy"] = map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"partition": int64(partition)}}
	o.Map("spec", "template", "spec")["terminationGracePeriodSeconds"] = int64(1)
	return o
}

func (c *clusterTest) set() rollout.ObservedWorkload { return c.observe("StatefulSet", "db") }

// awaitSet waits until each version has the wanted number of ready pods, and the observed partition is the given floor.
func (c *clusterTest) awaitSet(want string, floor int, complete bool) (live rollout.ObservedWorkload) {
	c.Helper()
	c.Await(c.T, fmt.Sprintf("%s from %d on, complete %t", want, floor, complete), func() bool {
		live = c.set()
		return live.Synced && pods(live) == want && live.Floor == floor && live.Complete == complete
	})
	return live
}

func membersOf(live rollout.ObservedWorkload, version string) []rollout.Pod {
	r, _ := live.Find(rollout.Hash("h1-" + version))
	return r.Members
}

// partitions tests how a StatefulSet's partition divides the pods between two versions, with the given podManagementPolicy.
func partitions(policy string) func(*clusterTest) {
	return func(c *clusterTest) {
		c.apply(c.ordinals(policy, "v1", 3, 0))
		one := c.awaitSet("v1 3", 0, true).Revisions[0]
		if !one.Base || !one.Current || one.Pin != (rollout.Pin{Label: rollout.LabelRevision, Value: one.Name}) {
			c.Errorf("at rest its revision is %+v", one)
		}
		c.apply(c.ordinals(policy, "v2", 3, 2))
		if live := c.set(); live.Hash != "h1-v2" || live.Complete {
			c.Errorf("right after Apply it is %+v", live)
		}
		live := c.awaitSet("v1 2, v2 1", 2, false)
		fresh, _ := live.Find("h1-v2")
		stable, _ := live.Find("h1-v1")
		if !fresh.Current || fresh.Base || stable.Current || !stable.Base || fresh.Members[0].Name != "db-2" {
			c.Errorf("at the partition 2 it is %+v", live)
		}
		c.apply(c.ordinals(policy, "v2", 5, 2))
		c.awaitSet("v1 2, v2 3", 2, false)
		c.apply(c.ordinals(policy, "v2", 5, 4)) // a larger partition moves no pod back to v1
		live = c.awaitSet("v1 2, v2 3", 4, false)
		lowest := membersOf(live, "v2")[0]
		c.evict(lowest) // the replacement has the stable template
		live = c.awaitSet("v1 3, v2 2", 4, false)
		if names := membersOf(live, "v2"); lowest.Name != "db-2" || names[0].Name != "db-3" {
			c.Errorf("%s was evicted, and the pods of v2 are %+v", lowest.Name, names)
		}
		c.apply(c.ordinals(policy, "v2", 3, 2)) // scaling down removes the highest ordinals
		c.awaitSet("v1 2, v2 1", 2, false)
		c.apply(c.ordinals(policy, "v1", 3, 0))
		back := c.awaitSet("v1 3", 0, true)
		if r, _ := back.Find("h1-v1"); r.Pin != one.Pin || r.ReadySince[0].After(one.ReadySince[2].Add(1)) {
			c.Errorf("back at v1 it is %+v, it was %+v: pods were replaced", r, one)
		}
		c.empties(policy)
		c.breaks(policy)
	}
}

// empties checks that the template of a StatefulSet without pods becomes the stable template, at any
// partition. The previous template becomes stable again only after an apply of the previous version.
func (c *clusterTest) empties(policy string) {
	c.apply(c.ordinals(policy, "v2", 3, 2))
	c.awaitSet("v1 2, v2 1", 2, false)
	c.apply(c.ordinals(policy, "v2", 0, 2))
	c.Await(c.T, "the template to be the base once there are no pods", func() bool {
		fresh, _ := c.set().Find("h1-v2")
		return fresh.Base
	})
	c.apply(c.ordinals(policy, "v2", 3, 2))
	c.awaitSet("v2 3", 2, true)
	c.apply(c.ordinals(policy, "v1", 3, 0))
	live := c.awaitSet("v1 3", 0, true)
	if stable, _ := live.Find("h1-v1"); !stable.Base {
		c.Errorf("back at v1 it is %+v", live)
	}
}

// breaks checks that, with OrderedReady, the controller does not replace a pod that never becomes ready,
// even after an apply of the previous version. With other policies, the controller replaces the pod.
func (c *clusterTest) breaks(policy string) {
	c.apply(c.ordinals(policy, "v3-neverready", 3, 2))
	var broken rollout.Pod
	seen := func() bool {
		all := membersOf(c.set(), "v3-neverready")
		i := slices.IndexFunc(all, func(p rollout.Pod) bool { return !p.Ready && !p.Terminating })
		if i >= 0 {
			broken = all[i]
		}
		return i >= 0
	}
	c.Await(c.T, "the broken pod", seen)
	c.apply(c.ordinals(policy, "v1", 3, 0))
	if policy == "OrderedReady" {
		looks := 0
		c.Await(c.T, "a while", func() bool { looks++; return c.set().Synced && looks > 20 })
		if !seen() {
			c.Fatal("the broken pod was replaced, which the controller does not do")
		}
		c.evict(broken)
	}
	c.awaitSet("v1 3", 0, true)
	c.apply(c.ordinals(policy, "v2", 3, 0))
	if r := c.awaitSet("v2 3", 0, true).Revisions[0]; r.Hash != "h1-v2" || !r.Base {
		c.Errorf("at the end the newest revision is %+v", r)
	}
}
