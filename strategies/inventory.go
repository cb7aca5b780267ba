package strategies

import (
	"maps"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Inventory returns the references of objects, for the state's inventory: what
// the state already lists and what is desired now. What is listed but no longer
// desired is pruned when no release is in flight.
func Inventory(s rollout.State, desired []rollout.Object) []rollout.Ref {
	seen := map[rollout.Ref]bool{}
	for _, r := range s.Inventory {
		seen[r] = true
	}
	for _, o := range desired {
		seen[o.Ref()] = true
	}
	return sortedRefs(seen)
}

// Generated returns the references of what is made for the release in flight and
// is not in Git: what the state already lists, and what is desired now.
func Generated(s rollout.State, desired []rollout.Object) []rollout.Ref {
	if s.Release == nil {
		return nil
	}
	seen := map[rollout.Ref]bool{}
	for _, r := range s.Generated {
		seen[r] = true
	}
	for _, o := range desired {
		if o.Annotation(rollout.AnnotationGenerated) != "" {
			seen[o.Ref()] = true
		}
	}
	return sortedRefs(seen)
}

// Leftover returns what was made for the release and is not desired any more. To
// delete it moves requests, so it does not wait for the end of the release.
func Leftover(s rollout.State, desired []rollout.Object) []rollout.Ref {
	gone := map[rollout.Ref]bool{}
	for _, r := range s.Generated {
		gone[r] = true
	}
	for _, o := range desired {
		delete(gone, o.Ref())
	}
	return sortedRefs(gone)
}

// Prunable returns what the inventory lists and the objects lack. It is empty
// while a release is in flight: both versions' objects are in use then.
func Prunable(s rollout.State, desired []rollout.Object) []rollout.Ref {
	if s.Release != nil || s.Held != nil {
		return nil
	}
	keep := map[rollout.Ref]bool{}
	for _, o := range desired {
		keep[o.Ref()] = true
	}
	gone := map[rollout.Ref]bool{}
	for _, r := range s.Inventory {
		if !keep[r] {
			gone[r] = true
		}
	}
	return sortedRefs(gone)
}

func sortedRefs(set map[rollout.Ref]bool) []rollout.Ref {
	return slices.SortedFunc(maps.Keys(set), rollout.Ref.Compare) // nil for none
}
