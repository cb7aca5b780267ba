package reconciler

import (
	"cmp"
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

// If two apps have the same object at the newest commit, the app whose record lists the object owns it. Apps may share
// objects that are never deleted, such as Namespaces.

type claim struct {
	ref   rollout.Ref
	app   string
	isOld bool // the newest commit may lack the object
}

func (c *renderCache) updateOwners(app string, was, is *rollout.Render) {
	refs := map[rollout.Ref]bool{}
	for _, ref := range refsOf(was) {
		refs[ref] = false
	}
	for _, ref := range refsOf(is) {
		refs[ref] = true
	}
	var others []string
	for ref, named := range refs {
		apps := slices.DeleteFunc(c.named[ref], func(name string) bool { return name == app })
		others = append(others, apps...)
		if named {
			apps = append(apps, app)
			slices.Sort(apps)
		}
		if c.named[ref] = apps; len(apps) == 0 {
			delete(c.named, ref)
		}
	}
	slices.Sort(others)
	for _, name := range slices.Compact(others) {
		c.touch(name)
	}
}

func refsOf(r *rollout.Render) (refs []rollout.Ref) {
	for _, o := range cmp.Or(r.Unpacked(), &rollout.Render{}).Objects {
		// The name of a run's Job contains a hash, so apps may have hooks with the same name.
		if ref := o.Ref(); !ref.HoldsData() && !(hook.Is(o) && ref.Kind == "Job") {
			refs = append(refs, ref)
		}
	}
	return refs
}

func (c *renderCache) conflicts(app string, head *rollout.Render, commit string) (all []claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ref := range refsOf(head) {
		for _, name := range c.named[ref] {
			if name == app {
				continue
			}
			h := c.heads[name]
			all = append(all, claim{ref, name, h == nil || h.of != commit})
			if h != nil && h.of != commit && !slices.Contains(h.rivals, app) {
				h.rivals = append(h.rivals, app)
			}
		}
	}
	return all
}

// comesFirst reports whether the first app may keep an object that both apps have. This is so if the app's record lists
// the object, or if neither record does and the app's name sorts first.
func (r *stateStore) comesFirst(app, other string, ref rollout.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	has := slices.Contains(r.apps[app].state.Inventory, ref)
	if slices.Contains(r.apps[other].state.Inventory, ref) != has {
		return has
	}
	return has || app < other
}

// conflict returns an error if another app owns an object of the head. If the other app is not rendered yet, known is
// false.
func (p preparer) conflict(v *gitView, app string, head *rollout.Render) (conflict *rollout.InvalidError, known bool) {
	for _, rival := range p.renders.conflicts(app, head, v.main()) {
		other := v.apps[rival.app]
		if other == nil || other.removed != nil || p.states.comesFirst(app, rival.app, rival.ref) {
			continue
		}
		if rival.isOld {
			return nil, false
		}
		return &rollout.InvalidError{
			Reason: rollout.HeldContested,
			Msg: fmt.Sprintf("%s %s/%s is in app %s and in app %s, which owns the object",
				rival.ref.Kind, rival.ref.Namespace, rival.ref.Name, app, rival.app),
			Fix: "keep it in one app",
		}, true
	}
	return nil, true
}
