package strategies

import "gitrollout.dev/gitrollout/rollout"

// Rejection returns the rejection of what Git asks for, with its Rollout documents or without those of workloads that
// were staged so far; false if that was not rejected, or serves.
func Rejection(in Input) (rollout.Rejection, bool) {
	if in.Head.Render == nil {
		return rollout.Rejection{}, false
	}
	for _, hash := range []rollout.Hash{in.Head.Render.Release(), askedFor(in)} {
		if r, is := in.State.IsRejected(hash); is && (in.State.Stable == nil || in.State.Stable.Hash != hash) {
			return r, true
		}
	}
	return rollout.Rejection{}, false
}

// CanRetry reports whether what Git asks for can be tried again: it was rejected, and nothing keeps it from being read
// or, as a Rollout document that is gone does, from being staged.
func CanRetry(in Input) bool {
	r, is := Rejection(in)
	return is && r.Hash == in.Head.Render.Release()
}
