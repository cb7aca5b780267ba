package rollout

import "slices"

// Find returns the first element that the function accepts.
func Find[T any](all []T, is func(T) bool) (found T, exists bool) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return found, false
}

// Mapped applies a function to each element.
func Mapped[T, R any](all []T, to func(T) R) []R {
	out := make([]R, len(all))
	for i, e := range all {
		out[i] = to(e)
	}
	return out
}
