package source

import "gitrollout.dev/gitrollout/rollout"

// Peers reads the records of other clusters. While the state branch is being fetched, the error of States wraps
// ErrNotReady. Any other error is shown to users, and that cluster's records do not count.
type Peers interface {
	States(cluster string) (record func(app string) (rollout.State, bool), err error)
}
