package propose

import (
	"bytes"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Mergeable reports whether merging the commit on the branch of a promotion does what gitrollout proposes about an app
// as it is now, and nothing else: anybody may have written to the branch.
func Mergeable(cluster string, in strategies.Input, m rollout.Merge) bool {
	key := strategies.Key(in)
	return key != nil && m.Does(Promotion(cluster, in.State, key).Edits)
}

// Restores reports whether a merge into the head makes files what a reversion to an older commit would make of them,
// and nothing else. Files are those that the app is built from in either.
func Restores(m rollout.Merge, head, old Tree, files []string) bool {
	wanted, err := differing(head, old, files)
	for path, content := range m.Edits {
		then, found := wanted[path]
		if !found || (then == nil) != (content == nil) || !bytes.Equal(then, content) {
			return false
		}
	}
	return err == nil && m.Clean
}
