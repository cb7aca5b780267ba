package strategies

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Inventory returns the references for the state's inventory: the listed ones and the desired objects'. Prunable
// returns the listed ones that are no longer desired.
func Inventory(s rollout.State, desired []rollout.Object) []rollout.Ref {
	return sorted(slices.Concat(s.Inventory, rollout.Mapped(desired, rollout.Object.Ref)))
}

// Generated returns the references of objects made for the release in flight that are not in Git: those already listed,
// and those desired now.
func Generated(s rollout.State, desired []rollout.Object) []rollout.Ref {
	if reopened(s).Release == nil {
		return nil
	}
	inGit := func(o rollout.Object) bool { return o.Annotation(rollout.AnnotationGenerated) == "" }
	made := slices.DeleteFunc(slices.Clone(desired), inGit)
	return sorted(slices.Concat(s.Generated, rollout.Mapped(made, rollout.Object.Ref)))
}

// Leftover returns the generated objects that are not desired any more. Their deletion moves requests, so it does not
// wait for the end of the release.
func Leftover(s rollout.State, desired []rollout.Object) []rollout.Ref {
	return without(s.Generated, desired)
}

// Prunable returns the listed objects that are not desired. While a release is in flight, both versions' objects are in
// use: only an autoscaler is pruned, which would scale against the replicas that Git sets now.
func Prunable(s rollout.State, desired []rollout.Object) []rollout.Ref {
	left := without(s.Inventory, desired)
	switch {
	case s.Held != nil:
		return nil
	case s.Release != nil || s.Former != nil:
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
