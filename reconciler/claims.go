package reconciler

import (
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/strategies"
)

// One object is one app's, by Git: while the newest commit has it in two, it stays with the one that has it on record,
// whatever the cluster shows and whoever is visited first. What is never deleted, such as a Namespace, is shared.

// claim is an object that the head of an app names.
type claim struct {
	ref   rollout.Ref
	app   string
	isOld bool // the head is not of the newest commit, which may not name it any more
}

// claims notes what an app's head names, after what it named before, and touches those that name any of it, too.
func (p *renders) claims(app string, was, is *rollout.Render) {
	refs := map[rollout.Ref]bool{}
	for _, ref := range refsOf(was) {
		refs[ref] = false
	}
	for _, ref := range refsOf(is) {
		refs[ref] = true
	}
	others := map[string]bool{}
	for ref, named := range refs {
		apps := slices.DeleteFunc(p.named[ref], func(name string) bool { return name == app })
		for _, name := range apps {
			others[name] = true
		}
		if named {
			apps = append(apps, app)
		}
		if p.named[ref] = apps; len(apps) == 0 {
			delete(p.named, ref)
		}
	}
	for _, name := range sortedKeys(others) {
		p.touch(name)
	}
}

func refsOf(r *rollout.Render) (refs []rollout.Ref) {
	if r == nil {
		return nil
	}
	for _, o := range r.Objects {
		// A hook's Job has a name of its own for each run, so that two apps may have hooks of one name.
		if ref := o.Ref(); !ref.HoldsData() && !(hook.Is(o) && ref.Kind == "Job") {
			refs = append(refs, ref)
		}
	}
	return refs
}

// rivals are the claims of others to what a head names, as far as they are known.
func (p *renders) rivals(app string, head *rollout.Render, commit string) (all []claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ref := range refsOf(head) {
		for _, name := range p.named[ref] {
			if name != app {
				all = append(all, claim{ref, name, p.heads[name] == nil || p.heads[name].of != commit})
			}
		}
	}
	return all
}

// comesFirst reports whether an object is an app's rather than another one's: the one that has it on record. If both
// have, the cluster shows whose it is; of two that are new, it is the one whose name comes first.
func (r *record) comesFirst(app, other string, ref rollout.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	has := slices.Contains(r.apps[app].state.Inventory, ref)
	if slices.Contains(r.apps[other].state.Inventory, ref) != has {
		return has
	}
	return has || app < other
}

// settled is a head, with why the app may not have what it names. It is not ready while nobody knows whether another
// app still names that.
func (l *lookout) settled(v *view, app string, head strategies.Head) (settled strategies.Head, ready bool) {
	if head.Render == nil {
		return head, true
	}
	for _, rival := range l.renders.rivals(app, head.Render, v.main()) {
		other := v.apps[rival.app]
		if other == nil || other.unlisted != nil || l.record.comesFirst(app, rival.app, rival.ref) {
			continue
		}
		if rival.isOld {
			return head, false
		}
		head.Err = &rollout.InvalidError{
			Reason: rollout.HeldContested,
			Msg: fmt.Sprintf("%s %s/%s is in app %s and in app %s, which has it",
				rival.ref.Kind, rival.ref.Namespace, rival.ref.Name, app, rival.app),
			Fix: "keep it in one of them",
		}
		break
	}
	return head, true
}
