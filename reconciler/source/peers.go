package source

import "gitrollout.dev/gitrollout/rollout"

// Peers reads the records of other clusters. An error of States wraps ErrNotReady during the state branch's fetch. Any
// other error is for users, and no record of the cluster counts.
type Peers interface {
	States(cluster string) (record func(app string) (rollout.State, bool), err error)
}
