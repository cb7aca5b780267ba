package source

import "gitrollout.dev/gitrollout/rollout"

// Peers reads the records of other clusters. An error of States that wraps ErrNotReady means that the state branch is
// being fetched. Any other error is a text for users, and no record of the cluster counts.
type Peers interface {
	States(cluster string) (record func(app string) (rollout.State, bool), err error)
}
