package reconciler

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// prune deletes recorded objects that are no longer desired. It deletes all objects of a removed app, but only if the
// app's glob sets "prune". If "left" is true, the caller removes the record.
func (k *applier) prune(ctx context.Context, t transition, desired []rollout.Object) (
	d strategies.Decision, left bool, err error,
) {
	d = t.decision
	next := &d.State
	all := next.Inventory
	switch {
	case next.Source == "":
		return k.leave(t, d)
	case t.app.removed != nil && !t.app.prunes:
		next.Kept = ""
		return d, false, nil
	case t.app.removed == nil:
		all = strategies.Prunable(*next, desired)
	}
	next.Kept = ""
	candidates := slices.DeleteFunc(slices.Clone(all), func(ref rollout.Ref) bool {
		is, why := k.isElsewhere(t.app.Name, ref, t.view)
		next.Kept = cmp.Or(next.Kept, why)
		return is
	})
	if next.Kept != "" && next.Kept != t.before.Kept {
		d.Subject = t.app.Name + " keeps what left Git: " + next.Kept
	}
	if len(candidates) < len(all) {
		d.Requeue = rollout.Soonest(d.Requeue, t.input.Now.Add(time.Minute))
	}
	if len(candidates) == 0 {
		return k.leave(t, d)
	}
	gone, err := k.remove(ctx, t, candidates)
	if len(gone) > 0 {
		next.Inventory = slices.DeleteFunc(slices.Clone(next.Inventory), func(ref rollout.Ref) bool {
			return slices.Contains(gone, ref)
		})
		d.Subject = fmt.Sprintf("%s pruned %s", t.app.Name, listed(gone))
	}
	if err != nil {
		return d, false, fmt.Errorf("prune of %w", err)
	}
	return k.leave(t, d)
}

// leave reports whether a pruned app's record can be dropped: each remaining object holds data or belongs to another
// app.
func (k *applier) leave(t transition, d strategies.Decision) (left strategies.Decision, leaves bool, err error) {
	// isOfAnother reads all records, so only passes of pruned apps may call it.
	leaves = t.app.removed != nil && t.app.prunes && !slices.ContainsFunc(d.State.Inventory, func(ref rollout.Ref) bool {
		return !ref.HoldsData() && !k.states.isOfAnother(t.app.Name, ref)
	})
	if leaves {
		d.Subject = t.app.Name + " has left Git and the cluster"
	}
	return d, leaves, nil
}

// remove deletes objects whose label has the app's present or a former name.
func (k *applier) remove(ctx context.Context, t transition, refs []rollout.Ref) (gone []rollout.Ref, err error) {
	gone = slices.Clone(refs)
	for _, name := range append([]string{t.app.Name}, strings.Fields(t.app.Formerly)...) {
		if name != t.app.Name && k.isAnother(name, t.view) {
			continue
		}
		absent, failed := k.Applier.Prune(ctx, name, refs)
		gone = slices.DeleteFunc(gone, func(ref rollout.Ref) bool { return !slices.Contains(absent, ref) })
		err = errors.Join(err, failed)
	}
	return gone, err
}

func (k *applier) isAnother(name string, v *gitView) bool {
	a := v.apps[name]
	e, _ := k.states.of(name)
	return a != nil && (a.removed == nil || e.err != nil || e.state.App != "")
}

func listed(refs []rollout.Ref) string {
	names := rollout.Mapped(refs, func(ref rollout.Ref) string { return ref.Kind + "/" + ref.Name })
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}

// Wants returns an app's object at the newest commit, or nil. If the app cannot be rendered but its record lists the
// object, Wants returns an empty object. An error means that the answer is unknown.
func (k *applier) Wants(app string, ref rollout.Ref) (rollout.Object, error) {
	v := k.current()
	if v == nil {
		return nil, errors.New("Git was not read yet")
	}
	a := v.apps[app]
	if a == nil || a.removed != nil {
		return nil, nil
	}
	head, ready := k.renders.packedHead(v, a.App)
	switch {
	case !ready:
		return nil, fmt.Errorf("commit %s is still being read", rollout.ShortID(v.main()))
	case head.Render == nil:
		if e, _ := k.states.of(app); slices.Contains(e.state.Inventory, ref) {
			return rollout.Object{}, nil
		}
		return nil, nil
	}
	return head.Render.Object(ref), nil
}

// App returns an app with its newest permissions; an unknown app has none.
func (k *applier) App(name string) rollout.App {
	if v := k.current(); v != nil && v.apps[name] != nil {
		return v.apps[name].App
	}
	return rollout.App{Name: name}
}

// MayHave returns an error unless the app's entry and its project both permit a cluster-scoped kind.
func (k *applier) MayHave(app, kind string) *rollout.InvalidError {
	if !k.App(app).MayHave(kind) {
		return &rollout.InvalidError{Reason: rollout.HeldForbidden,
			Msg: fmt.Sprintf("app %s may not have any %s", app, kind),
			Fix: "to permit that kind, add to the app's entry in the configuration: clusterResources: [" + kind + "]"}
	}
	v := k.current()
	if v == nil {
		return nil
	}
	project, _ := v.branch.Policy.ProjectOf(app)
	if project == nil || project.Bounded(rollout.App{}).MayHave(kind) {
		return nil
	}
	return &rollout.InvalidError{Reason: rollout.HeldPolicy,
		Msg: fmt.Sprintf("project %s, rule clusterResources: may have no %s", project.Name, kind),
		Fix: "remove the object, or ask for a change of the rule in " + v.branch.Policy.File}
}

// isElsewhere reports whether another app has an object. While another app is not rendered yet, the result is true. If
// that app cannot be rendered, its record and files decide, and "why" says how to correct that app.
func (k *applier) isElsewhere(app string, ref rollout.Ref, v *gitView) (is bool, why string) {
	for _, name := range sortedKeys(v.apps) {
		other := v.apps[name]
		if name == app || other.removed != nil {
			continue
		}
		head, _ := k.renders.packedHead(v, other.App)
		wanted, err := k.Wants(name, ref)
		switch {
		case err != nil, wanted != nil && head.Render != nil:
			return true, ""
		case why != "" || head.Render != nil:
		case wanted != nil || names(v.branch.Tree, ownFolder(v, other.Path), ref.Name):
			why = fmt.Sprintf("%s %s/%s is not deleted: app %s cannot be rendered, and may have this object; "+
				"correct %s, or remove it from Git", ref.Kind, ref.Namespace, ref.Name, name, other.Path)
		}
	}
	return why != "", why
}

func ownFolder(v *gitView, app string) string {
	own := app
	for up := path.Dir(app); up != "."; up = path.Dir(up) {
		for _, other := range v.apps {
			if other.Path != app && strings.HasPrefix(other.Path, up+"/") {
				return own
			}
		}
		own = up
	}
	return own
}

// names searches a folder's files for a text. An unreadable file counts as a match.
func names(tree Snapshot, dir, text string) bool {
	entries, err := source.ReadDir(tree, dir)
	if err != nil {
		return true
	}
	for _, e := range entries {
		switch e.Kind {
		case rollout.Dir:
			if names(tree, path.Join(dir, e.Name), text) {
				return true
			}
		case rollout.File:
			if data, err := tree.ReadBlob(e.ID); err != nil || bytes.Contains(data, []byte(text)) {
				return true
			}
		}
	}
	return false
}
