package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// often is how many times at least each of the things that have hurt releases happens in 200 lives with people.
const often = 1

// TestWorldsHaveWhatHurts counts what people, scalers and nodes do in 200 lives: a world that loses one of these finds nothing of
// its kind any more, and says nothing.
func TestWorldsHaveWhatHurts(t *testing.T) {
	wanted := []string{
		"a slip made", "a slip mended", "a document removed", "a document put back", "a proposal replaced", "scaled to 0", "scaled to some",
		"another controller at first",
	}
	for _, m := range slices.Concat(moves, rareMoves, editMoves) {
		wanted = append(wanted, m.name)
	}
	for _, phase := range []rollout.Phase{rollout.Healthy, rollout.Progressing, rollout.Paused, rollout.Promoting, rollout.Aborting} {
		wanted = append(wanted, fmt.Sprintf("scaled while %s", phase))
	}
	for _, phase := range []rollout.Phase{rollout.Promoting, rollout.Aborting} {
		wanted = append(wanted, fmt.Sprintf("push while %s", phase))
	}
	people := slices.DeleteFunc(slices.Clone(worlds), func(w world) bool { return !w.humans })
	played := map[string]int{}
	for i := range 200 {
		w := people[i%len(people)]
		u := live(uint64(i/len(people))+1, w.chaos, mutation{}, false)
		for name, n := range u.played {
			played[name] += n
		}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(played)) {
		all = append(all, fmt.Sprintf("%s: %d", name, played[name]))
	}
	t.Log(strings.Join(all, "\n"))
	for _, name := range wanted {
		if played[name] < often {
			t.Errorf("%s: %d times in 200 lives, want %d at least", name, played[name], often)
		}
	}
}
