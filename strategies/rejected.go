package strategies

import "gitrollout.dev/gitrollout/rollout"

// Rejection returns the rejection of Git's version, with or without documents of staged workloads, unless it serves.
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

// CanRetry reports whether Git's version was rejected, is readable and can be staged with its documents.
func CanRetry(in Input) bool {
	r, is := Rejection(in)
	return is && r.Hash == in.Head.Render.Release()
}
