package source

import (
	"errors"

	"gitrollout.dev/gitrollout/rollout"
)

// ErrNoBranch means that a cluster has recorded nothing yet.
var ErrNoBranch = errors.New("does not exist")

// Peers reads the records of other clusters. While the state branch is being fetched, the error of States wraps
// ErrNotReady. Without a state branch, it wraps ErrNoBranch. After any other error, the cluster's records do not count,
// and users see the error.
type Peers interface {
	States(cluster string) (record func(app string) (rollout.State, bool), err error)
}
