package propose

import (
	"bytes"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Mergeable reports whether merging the commit on the branch of a promotion does what gitrollout proposes about an app
// as it is now, and nothing else: anybody may have written to the branch.
func Mergeable(cluster string, in strategies.Input, m rollout.Merge) bool {
	key := strategies.Key(in)
	return key != nil && m.Does(Promotion(cluster, in.State, key).Edits)
}

// Restores reports whether a merge makes files what they were in an older commit, and nothing else: what a proposal to
// revert does. Files are those that the app is built from in either.
func Restores(m rollout.Merge, old Tree, files []string) bool {
	for path, content := range m.Edits {
		entry, found, err := old.Lookup(path)
		if err != nil || found != (content != nil) || !slices.Contains(files, path) {
			return false
		}
		if !found {
			continue
		}
		if was, err := old.ReadBlob(entry.ID); err != nil || !bytes.Equal(was, content) {
			return false
		}
	}
	return m.Clean
}
