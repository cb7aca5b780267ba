package source

import "gitrollout.dev/gitrollout/rollout"

// Peers returns the records of other clusters.
type Peers interface {
	// States returns an error that wraps ErrNotReady while the branch is being fetched. Any other error is text for a
	// user: the state branch is missing, unreachable, unsigned, or of another cluster.
	States(cluster string) (record func(app string) (rollout.State, bool), err error)
}
