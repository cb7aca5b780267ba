package propose

import (
	"bytes"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Mergeable reports whether a merge makes only the proposed edits. Users may have pushed other edits.
func Mergeable(cluster string, in strategies.Input, m rollout.Merge) bool {
	if commit := Awaits(&in.State, in.Promotion); commit != "" && in.Entry != nil {
		want, _ := entryOf(in.Entry.Release, commit).For(in.State).Encode() // texts can always be encoded
		return m.Clean && bytes.Equal(m.Edits[rollout.PromotionPath(cluster, in.App.Name)], want)
	}
	key := strategies.Key(in)
	return key != nil && m.Does(Promotion(cluster, in.State, key).Edits)
}

// Restores reports whether a merge only restores files from an older commit. "from" and "to" are the app's renders at
// the head and at the older commit.
func Restores(m rollout.Merge, head, old Tree, from, to *rollout.Render) bool {
	wanted, err := comparing(from, to).differing(head, old, slices.Concat(from.Files, to.Files))
	for path, content := range m.Edits {
		then, found := wanted[path]
		if !found || (then == nil) != (content == nil) || !bytes.Equal(then, content) {
			return false
		}
	}
	return err == nil && m.Clean
}
