package reconciler

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// rename is the record of an app under its former name.
type rename struct {
	from  string
	state rollout.State
}

// renames finds apps that were renamed.
type renames struct {
	record  *stateStore
	renders *renderCache
}

// continueRecord finds the former name of an app without a record: the newest commit has its objects in this app. The
// app continues the old record, even in flight. The rename is recorded before anything else.
func (h renames) continueRecord(s *pass) {
	if s.app.removed != nil || s.app.refused != nil || isOfSomething(s.before) || s.view.behind != nil {
		return
	}
	for _, name := range h.record.names() {
		old := s.view.apps[name]
		e, _ := h.record.of(name)
		if old == nil || old.removed == nil || e.err != nil || e.state.Source == "" {
			continue
		}
		heir, _, _ := h.of(s.view, e.state)
		if gone := e.state.Held != nil; heir == s.app.Name && (s.renamedFrom == nil || !gone) { // prefer the most recent one
			state := e.state
			state.App, state.Path, state.Held = s.app.Name, s.app.Path, nil
			state.Formerly = slices.Insert(slices.Clone(e.state.Formerly), 0, name)
			state.Hooks = rollout.Mapped(e.state.Hooks, func(run rollout.HookRun) rollout.HookRun {
				run.App = cmp.Or(run.App, name)
				return run
			})
			s.renamedFrom = &rename{from: name, state: state}
			named := *s.app // older commits have the app by its old name
			named.App = state.Named(named.App)
			s.app = &named
			s.decision = strategies.Decision{
				State: state, Subject: fmt.Sprintf("%s is the new name of %s, and goes on with its record", s.app.Name, name),
			}
			if !gone {
				return
			}
		}
	}
}

// isUnsettled reports whether a removed app may have been renamed. Nothing happens to it until that is settled.
func (h renames) isUnsettled(s *pass) bool {
	if s.app.removed == nil {
		return false
	}
	heir, empty, known := h.of(s.view, s.before)
	if known && heir == "" {
		if len(empty) > 0 && len(s.before.Inventory) > 0 {
			named := *s.app
			named.removed = s.view.branch.Removed(named.App, empty...)
			s.app = &named
		}
		return false
	}
	s.err = fmt.Errorf("the new name of app %s %w", s.app.Name, source.ErrNotReady)
	s.decision = strategies.Decision{State: s.before, Requeue: s.now.Add(time.Second)}
	return true
}

// of returns the newest commit's app with an old app's objects and no record, "" if none; unknown while a candidate
// is being rendered. empty lists candidates without objects: the new name may be among them.
func (h renames) of(v *gitView, old rollout.State) (heir string, empty []string, known bool) {
	known = true
	for _, name := range sortedKeys(v.apps) {
		a := v.apps[name]
		if e, _ := h.record.of(name); a.removed != nil || e.err != nil || isOfSomething(e.state) {
			continue
		}
		head, ready := h.renders.head(v, a.App)
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

// isOfSomething reports whether a state has objects. A folder may be renamed before its objects are added.
func isOfSomething(s rollout.State) bool { return s.Source != "" && len(s.Inventory) > 0 }

// sharesObjects reports whether an app has any of another's workloads or, without any, objects. Namespaces and
// CustomResourceDefinitions, which apps may share, do not count.
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
