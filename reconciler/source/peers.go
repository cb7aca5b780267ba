package source

import "gitrollout.dev/gitrollout/rollout"

// Peers reads the records of other clusters. While the state branch is being fetched, the error of States wraps
// ErrNotReady. Any other error is for users, and no record of that cluster counts.
type Peers interface {
	States(cluster string) (record func(app string) (rollout.State, bool), err error)
}
