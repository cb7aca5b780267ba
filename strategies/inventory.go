package strategies

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Inventory returns the references of objects, for the state's inventory: what the state already lists and what is
// desired now. Prunable has what is listed but no longer desired.
func Inventory(s rollout.State, desired []rollout.Object) []rollout.Ref {
	return sorted(slices.Concat(s.Inventory, rollout.Mapped(desired, rollout.Object.Ref)))
}

// Generated returns the references of what is made for the release in flight and
// is not in Git: what the state already lists, and what is desired now.
func Generated(s rollout.State, desired []rollout.Object) []rollout.Ref {
	if reopened(s).Release == nil {
		return nil
	}
	inGit := func(o rollout.Object) bool { return o.Annotation(rollout.AnnotationGenerated) == "" }
	made := slices.DeleteFunc(slices.Clone(desired), inGit)
	return sorted(slices.Concat(s.Generated, rollout.Mapped(made, rollout.Object.Ref)))
}

// Leftover returns what was made for the release and is not desired any more. To
// delete it moves requests, so it does not wait for the end of the release.
func Leftover(s rollout.State, desired []rollout.Object) []rollout.Ref {
	return without(s.Generated, desired)
}

// Prunable returns what the inventory lists and the objects lack. While a release is in flight, both versions' objects
// are in use: only an autoscaler goes, which would scale against the replicas that Git names in its place.
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

// sorted orders references that are the caller's own, each once; nil for none.
func sorted(refs []rollout.Ref) []rollout.Ref {
	if len(refs) == 0 {
		return nil
	}
	slices.SortFunc(refs, rollout.Ref.Compare)
	return slices.Compact(refs)
}
