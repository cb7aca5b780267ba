package simulate

import (
	"slices"
	"testing"
)

// TestWorldsHaveWhatHurts counts the events of users, scalers and nodes in 200 runs. A world that loses an event
// would silently find no more errors of its kind.
func TestWorldsHaveWhatHurts(t *testing.T) {
	if testing.Short() {
		t.Skip("fewer than 200 lives lack some events")
	}
	wanted := []string{
		"a slip made", "a slip mended", "a document removed", "a document put back", "a document put back with a version",
		"a proposal replaced", "another controller at first", "push while Promoting", "push while Aborting",
		"scaled to 0", "scaled to some", "scaled while Healthy", "scaled while Progressing", "scaled while Paused",
		"scaled while Promoting", "scaled while Aborting",
	}
	for _, m := range slices.Concat(moves, rareMoves, editMoves) {
		wanted = append(wanted, m.name)
	}
	var people []int
	for i, w := range worlds {
		if w.humans {
			people = append(people, i)
		}
	}
	played := map[string]int{}
	for i := range 200 {
		l := life{people[i%len(people)], uint64(i/len(people)) + 1}
		for name, n := range l.outcome().played {
			played[name] += n
		}
	}
	t.Log(played)
	for _, name := range wanted {
		if played[name] == 0 {
			t.Errorf("%s: not once in 200 lives", name)
		}
	}
}
