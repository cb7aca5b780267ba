package strategies

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// Desired returns the objects that the cluster should hold: the render with the state laid over it. Between steps
// Deployments are held and Services select their version. An error, which render rules out, is a router's.
func Desired(s rollout.State, v workloads.View) ([]rollout.Object, error) {
	v.Plans, s = v.Plans.OrNew(), workloads.Reopened(s)
	pins := pinsOf(s, v)
	objects := make([]rollout.Object, 0, len(v.Source.Objects))
	for _, o := range v.Source.Objects {
		ref := o.Ref()
		if hook.Is(o) {
			continue // hooks belong to a release and are not applied
		}
		if w, is := v.Source.Workload(ref); is {
			if o = workloads.Desired(s, v, w, o); o == nil {
				continue
			}
		} else if pin := pins[ref]; pin.Value != "" {
			o = o.Copy()
			o.Set(pin.Value, "spec", "selector", pin.Label)
		}
		objects = append(objects, o)
	}
	objects, err := overlaid(s, v, objects)
	return append(objects, experimentObjects(s, v)...), err
}

// NeedsStable reports whether Desired uses the stable render: a workload has no canary pod yet, or an experiment.
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

// Inventory returns the state's inventory: listed references and desired objects'. Prunable returns undesired ones.
func Inventory(s rollout.State, desired []rollout.Object) []rollout.Ref {
	return sorted(slices.Concat(s.Inventory, rollout.Mapped(desired, rollout.Object.Ref)))
}

// Generated returns the references of the release's objects that are not in Git, listed or desired now.
func Generated(s rollout.State, desired []rollout.Object) []rollout.Ref {
	if workloads.Reopened(s).Release == nil {
		return nil
	}
	inGit := func(o rollout.Object) bool { return o.Annotation(rollout.AnnotationGenerated) == "" }
	made := slices.DeleteFunc(slices.Clone(desired), inGit)
	return sorted(slices.Concat(s.Generated, rollout.Mapped(made, rollout.Object.Ref)))
}

// Leftover returns generated objects that are not desired. Their deletion, before the release ends, moves requests.
func Leftover(s rollout.State, desired []rollout.Object) []rollout.Ref {
	return without(s.Generated, desired)
}

// Prunable returns listed objects that are not desired. In flight only an autoscaler is pruned, which would fight
// Git's replicas: both versions use the rest.
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

// sorted sorts the caller's slice in place and removes duplicates; nil for an empty one.
func sorted(refs []rollout.Ref) []rollout.Ref {
	if len(refs) == 0 {
		return nil
	}
	slices.SortFunc(refs, rollout.Ref.Compare)
	return slices.Compact(refs)
}
