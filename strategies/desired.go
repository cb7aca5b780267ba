package strategies

import (
	"fmt"
	"reflect"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/routes"
	"gitrollout.dev/gitrollout/strategies/workloads"
	"gitrollout.dev/gitrollout/traffic"
)

// Desired returns v.Source's objects, changed as the state requires. It fails only for routers that package render
// refuses.
func Desired(s rollout.State, v workloads.View) ([]rollout.Object, error) {
	v.Plans, s = v.Plans.OrNew(), workloads.Reopened(s)
	pins := routes.Pins(s, v)
	objects := make([]rollout.Object, 0, len(v.Source.Objects))
	for _, o := range v.Source.Objects {
		ref := o.Ref()
		if hook.Is(o) {
			continue // hooks run with a release and are not applied
		}
		if w, is := v.Source.Workload(ref); is {
			if o = workloads.Desired(s, v, w, o); o == nil {
				continue
			}
		} else if pin := pins[ref]; pin.Value != "" {
			o = o.Copy()
			o.Set(pin.Value, "spec", "selector", pin.Label)
		} else {
			o = workloads.WithSize(s, o)
		}
		objects = append(objects, o)
	}
	objects, err := routes.Overlay(s, v, objects)
	return append(objects, experimentObjects(s, v)...), err
}

// NeedsStable reports whether Desired needs the stable commit's objects, for an experiment or a stable pod template.
func NeedsStable(s rollout.State, v workloads.View) bool {
	s = workloads.Reopened(s)
	if !workloads.IsHeld(s) {
		return false
	}
	v.Plans = v.Plans.OrNew()
	return slices.ContainsFunc(v.Workloads(s), func(m workloads.Staged) bool {
		f, starts := workloads.LimitsOf(m, v)
		_, tries := experimentAt(s, m)
		return !starts || f.Back || tries
	})
}

// Inventory returns the state's inventory plus the desired objects' references.
func Inventory(s rollout.State, desired []rollout.Object) []rollout.Ref {
	return sorted(slices.Concat(s.Inventory, rollout.Mapped(desired, rollout.Object.Ref)))
}

// Generated returns the references of all recorded and all desired generated objects, or nil without a release.
func Generated(s rollout.State, desired []rollout.Object) []rollout.Ref {
	if workloads.Reopened(s).Release == nil {
		return nil
	}
	inGit := func(o rollout.Object) bool { return o.Annotation(rollout.AnnotationGenerated) == "" }
	made := slices.DeleteFunc(slices.Clone(desired), inGit)
	return sorted(slices.Concat(s.Generated, rollout.Mapped(made, rollout.Object.Ref)))
}

// Leftover returns the recorded generated objects that are no longer desired. gitrollout prunes these even during a
// release, because some may be routes.
func Leftover(s rollout.State, desired []rollout.Object) []rollout.Ref {
	return without(s.Generated, desired)
}

// Prunable returns the inventory's objects that are no longer desired. A held app has no prunable objects. During a
// release, only autoscalers are prunable, because autoscalers change replicas, and the old version may use the other
// objects.
func Prunable(s rollout.State, desired []rollout.Object) []rollout.Ref {
	left := without(s.Inventory, desired)
	switch {
	case s.Held != nil:
		return nil
	case s.Release != nil || s.Draining != nil:
		return slices.DeleteFunc(left, func(ref rollout.Ref) bool { return !ref.Autoscales() })
	}
	return left
}

func without(refs []rollout.Ref, desired []rollout.Object) []rollout.Ref {
	keep := map[rollout.Ref]bool{}
	for _, o := range desired {
		keep[o.Ref()] = true
	}
	return sorted(slices.DeleteFunc(slices.Clone(refs), func(r rollout.Ref) bool { return keep[r] }))
}

func sorted(refs []rollout.Ref) []rollout.Ref {
	if len(refs) == 0 {
		return nil
	}
	slices.SortFunc(refs, rollout.Ref.Compare)
	return slices.Compact(refs)
}

// Watched returns the objects whose status shows whether routers accept the routes.
func Watched(r *rollout.Render) (refs []rollout.Ref) {
	for _, spec := range r.Specs {
		if t := plan.Compile(spec).Routing; t != nil {
			refs = append(refs, traffic.Watched(t.Routers, spec.Workload.Namespace)...)
		}
	}
	return refs
}

// Ahead returns objects that only later steps apply: experiments, routers' objects, and workloads with the new
// template. The API server can check these objects early.
func Ahead(r *rollout.Render, now []rollout.Object) ([]rollout.Object, error) {
	known := plan.Cache{}
	all := experimentsAhead(r, known)
	for _, spec := range r.Specs {
		own, found := workloads.WorkloadOf(r, spec.Workload)
		isAsked := func(o rollout.Object) bool {
			return o.Ref() == spec.Workload.Ref() && reflect.DeepEqual(o.Map("spec")["template"], own.Map("spec")["template"])
		}
		if found && !slices.ContainsFunc(now, isAsked) {
			all = append(all, own)
		}
	}
	for _, spec := range r.Specs {
		p := known.Of(spec)
		if p.Routing == nil {
			continue
		}
		for _, route := range traffic.Stages(spec) {
			laid := traffic.NewObjects(r.Objects)
			if err := traffic.Overlay(laid, p.Routing.Routers, route); err != nil {
				return nil, fmt.Errorf("route requests of %s: %w", spec.Workload, err)
			}
			for _, object := range laid.List() {
				is := func(o rollout.Object) bool { return o.Ref() == object.Ref() && reflect.DeepEqual(o, object) }
				if !slices.ContainsFunc(r.Objects, is) && !slices.ContainsFunc(all, is) {
					all = append(all, object)
				}
			}
		}
	}
	return all, nil
}

// Routing returns a text that identifies a state's routes and Service switches. The settle time begins at the first
// pass after an apply with a new text.
func Routing(s rollout.State, source *rollout.Render) string {
	text := ""
	s = workloads.Reopened(s)
	for _, m := range workloads.All(s, source.Specs, rollout.Observed{}, nil) {
		if m.Routing != nil && m.Routed != nil {
			r := m.Routed
			text += fmt.Sprintf("%s %d %d %s %t;", m.Workload, r.Step, r.Weight, r.At, m.HasSwitched(m.Step))
		}
	}
	if text != "" && s.Rollback != nil {
		text += "back " + s.Rollback.Routed.String()
	}
	return text
}
