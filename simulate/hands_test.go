package simulate

import (
	"fmt"
	"maps"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Objects lists what is in the cluster, sorted.
func (c *Cluster) Objects() []rollout.Ref {
	return slices.SortedFunc(maps.Keys(c.objects), rollout.Ref.Compare)
}

// Edit changes an object by hand, behind the back of whoever applied it.
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
