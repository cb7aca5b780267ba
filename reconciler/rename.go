package reconciler

import (
	"cmp"
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

type rename struct {
	from  string
	state rollout.State
}

// formerName returns the record of the removed app whose new name is a.Name, or nil. The app with the new name
// continues this record, even during a release.
func (p preparer) formerName(v *gitView, a *appView, before rollout.State) (former *rename) {
	if a.removed != nil || a.refused != nil || isOfSomething(before) || v.behind != nil {
		return nil
	}
	for _, name := range v.gone {
		e, _ := p.states.of(name)
		if v.apps[name].removed == nil || e.err != nil || e.state.Source == "" {
			continue
		}
		heir, _, _ := p.newName(v, e.state)
		if gone := e.state.Held != nil; heir == a.Name && (former == nil || !gone) { // prefer an app that is not held
			state := e.state
			state.App, state.Path, state.Held = a.Name, a.Path, nil
			state.Formerly = slices.Insert(slices.Clone(e.state.Formerly), 0, name)
			state.Hooks = append(rollout.Mapped(e.state.Hooks, func(run rollout.HookRun) rollout.HookRun {
				run.App = cmp.Or(run.App, name)
				return run
			}), before.Hooks...)
			state.Inventory = slices.Concat(e.state.Inventory, before.Inventory)
			state.Inventory = strategies.Inventory(state, nil)
			if former = (&rename{from: name, state: state}); !gone {
				return former
			}
		}
	}
	return former
}

// settled returns an app's view. In a removed app's view, the field "removed" lists possible new names. While the new
// name is undecided or unrecorded, settled returns ErrNotReady, so the old app stays unchanged.
func (p preparer) settled(v *gitView, a *appView, before rollout.State) (*appView, error) {
	if a.removed == nil {
		return a, nil
	}
	heir, empty, known := p.newName(v, before)
	switch {
	case !known || heir != "":
		return nil, fmt.Errorf("the new name of app %s %w", a.Name, source.ErrNotReady)
	case len(empty) > 0 && len(before.Inventory) > 0:
		named := *a
		named.removed = v.branch.Removed(a.App, empty...)
		return &named, nil
	}
	return a, nil
}

// newName returns a renamed app's new name, or "". The app with the new name has the old app's objects and no record.
// Without such an app, "known" is false until all candidates are rendered.
func (p preparer) newName(v *gitView, old rollout.State) (heir string, empty []string, known bool) {
	known = true
	for _, name := range sortedKeys(v.apps) {
		a := v.apps[name]
		if e, _ := p.states.of(name); a.removed != nil || e.err != nil || isOfSomething(e.state) {
			continue
		}
		head, ready := p.renders.head(v, a.App)
		switch {
		case !ready:
			known = false
		case head.Render == nil || len(head.Render.Objects) == 0:
			empty = append(empty, name)
		case sharesObjects(old.Inventory, head.Render.Objects):
			return name, nil, true
		}
	}
	return "", empty, known
}

func isOfSomething(s rollout.State) bool { return s.Source != "" && len(s.Inventory) > 0 }

// sharesObjects reports whether inventory and objects share a workload. If the inventory has no workload, any object
// counts. Namespaces and CustomResourceDefinitions do not count, because several apps may have them.
func sharesObjects(inventory []rollout.Ref, objects []rollout.Object) bool {
	all := slices.DeleteFunc(slices.Clone(inventory), func(ref rollout.Ref) bool {
		return ref.Kind == "Namespace" || ref.Kind == "CustomResourceDefinition"
	})
	isWorkload := func(ref rollout.Ref) bool { _, is := rollout.WorkloadOf(ref); return is }
	if slices.ContainsFunc(all, isWorkload) {
		all = slices.DeleteFunc(all, func(ref rollout.Ref) bool { return !isWorkload(ref) })
	}
	return slices.ContainsFunc(objects, func(o rollout.Object) bool { return slices.Contains(all, o.Ref()) })
}
