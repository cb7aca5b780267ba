package strategies

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Inventory returns the state's inventory: listed references and desired objects'. Prunable returns undesired ones.
func Inventory(s rollout.State, desired []rollout.Object) []rollout.Ref {
	return sorted(slices.Concat(s.Inventory, rollout.Mapped(desired, rollout.Object.Ref)))
}

// Generated returns the references of the release's objects that are not in Git, listed or desired now.
func Generated(s rollout.State, desired []rollout.Object) []rollout.Ref {
	if reopened(s).Release == nil {
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
