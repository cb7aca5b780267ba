package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"gitrollout.dev/gitrollout/rollout"
)

// others has the ConfigMap data that another field manager applied, by object. If one of several managers drops a field, the API server
// keeps the field for the other managers. Therefore, cluster.Client removes the field from the other managers, too.
type others map[rollout.Ref]map[string]string

// applied removes other managers' fields that are no longer in Git or have another value in Git. It runs before the apply of a ConfigMap.
func (m others) applied(live *object, o rollout.Object) {
	if live == nil {
		delete(m, o.Ref())
	}
	theirs, data := m[o.Ref()], o.Map("data")
	for key, value := range theirs {
		left := live != nil && live.body.Map("data")[key] != nil && data[key] == nil
		if left || data[key] != nil && data[key] != value {
			delete(theirs, key)
		}
	}
}

// data returns all fields of a ConfigMap in the cluster, from all field managers.
func (m others) data(c *Cluster, ref rollout.Ref) map[string]string {
	all := map[string]string{}
	if o := c.objects[ref]; o != nil {
		maps.Copy(all, m[ref])
		for key, value := range o.body.Map("data") {
			all[key] = value.(string)
		}
	}
	return all
}

// coOwn applies all fields of a random ConfigMap and one more field, as another field manager.
func (u *universe) coOwn() {
	refs := slices.DeleteFunc(u.cluster.Objects(), func(ref rollout.Ref) bool { return ref.Kind != "ConfigMap" })
	if len(refs) == 0 {
		return
	}
	ref := refs[u.rng.IntN(len(refs))]
	u.others[ref] = u.others.data(u.cluster, ref)
	u.others[ref]["injected"] = "by another manager"
	u.played["fields of another manager"]++
	u.note("FIELDS of %s: another manager owns %v", ref.Name, u.others[ref])
}

// checkFields checks that a ConfigMap loses each field that left Git, and keeps other managers' fields that were never in Git.
func (p *promises) checkFields(app string, o rollout.Object) {
	ref := o.Ref()
	live, git := p.u.others.data(p.u.cluster, ref), o.Map("data")
	if live["extra"] != "" && git["extra"] == nil {
		p.fail(lawOwner, "%s: ConfigMap %s has a field that left Git: %v", app, ref.Name, live)
	}
	if p.u.others[ref] != nil && live["injected"] == "" {
		p.fail(lawOwner, "%s: ConfigMap %s has lost another manager's field: %v", app, ref.Name, live)
	}
}

// sharing is a mutation that keeps a field that left Git if another field manager has also applied this field.
func sharing(ctx context.Context, p starting, app string, objects []rollout.Object) error {
	before := others{}
	for ref, fields := range p.u.others {
		before[ref] = maps.Clone(fields)
	}
	err := p.View.Apply(ctx, app, objects)
	p.u.others = before
	return err
}

// data returns the fields of the app's ConfigMap. The field "extra" exists only if a.config is even.
func (a appSource) data() map[string]any {
	data := map[string]any{"n": strconv.Itoa(a.config)}
	if a.config%2 == 0 {
		data["extra"] = "1"
	}
	return data
}

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

// learn adds the process's own write to a stale view.
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
	all[w] = live // live.Revisions stays outdated, because the seeds in tests depend on this
	v.observed.Workloads = all
}
