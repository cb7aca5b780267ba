package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"gitrollout.dev/gitrollout/rollout"
)

// Edit changes an object by hand.
func (c *Cluster) Edit(ref rollout.Ref, change func(rollout.Object)) error {
	live := c.objects[ref]
	if live == nil {
		return fmt.Errorf("%s does not exist", ref)
	}
	edited := live.body.Copy()
	change(edited)
	if err := c.Kube.Apply(edited); err != nil {
		return err
	}
	c.objects[ref] = &object{app: live.app, digest: "by hand", body: edited}
	c.version++
	return nil
}

// learn shows the last write even while watches lag behind.
func (v *View) learn(o rollout.Object, digest string) {
	if !v.Stale {
		return
	}
	v.digests[o.Ref()] = digest
	w, is := v.cluster.Kube.WorkloadOf(o.Ref())
	d := v.cluster.Kube.Deployments[w]
	if !is || d == nil {
		return
	}
	all := maps.Clone(v.observed.Workloads)
	live := all[w]
	live.Replicas, live.Hash = d.Replicas, rollout.Hash(o.Annotation(rollout.AnnotationHash))
	live.Serial, _ = strconv.Atoi(o.Label(rollout.LabelSerial))
	if d.Observed != d.Generation {
		live.Synced, live.Complete = false, false
	}
	live.Revisions = slices.Clone(live.Revisions)
	for i, r := range live.Revisions {
		live.Revisions[i].Current = r.Hash == live.Hash
	}
	all[w] = live
	v.observed.Workloads = all
}
