package status

import (
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Shared tells how far an app is with a change of a shared file. State is waiting, entered, rejected, or done (healthy
// with the change).
type Shared struct {
	rollout.Place
	State string `json:"state"`
}

// SharedChange counts the apps of a change by state. Place has the first waiting cohort or, if no cohort waits, any
// cohort.
type SharedChange struct {
	rollout.Place
	Apps   int            `json:"apps"`
	States map[string]int `json:"states"`
}

// String returns "base/web.yaml (5832d1e), cohort 2 of 3: 3 of 214 apps done, 1 entered, 210 waiting" or similar.
func (c SharedChange) String() string {
	text := fmt.Sprintf("%s: %d of %d apps done", c.Place, c.States["done"], c.Apps)
	for _, state := range []string{"entered", "rejected", "waiting"} {
		if n := c.States[state]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, state)
		}
	}
	return text
}

func sharedOf(in strategies.Input) *Shared {
	s, state := in.State, "entered"
	_, rejected := strategies.Rejection(in)
	switch {
	case in.Place == nil:
		return nil
	case in.Entry != nil && !in.Entry.Open:
		state = "waiting"
	case rejected:
		state = "rejected"
	case in.Entry == nil && s.Shown() == rollout.Healthy && (s.IsNewSince(s.Entered.At) || !s.Entered.Well.IsZero()):
		state = "done"
	}
	return &Shared{*in.Place, state}
}

// SharedChanges returns the changes that some app does not run yet, sorted by file.
func SharedChanges(all []*Shared) (changes []SharedChange) {
	for _, s := range all {
		if s == nil {
			continue
		}
		i := slices.IndexFunc(changes, func(c SharedChange) bool { return c.Same(s.Place) })
		if i < 0 {
			i, changes = len(changes), append(changes, SharedChange{Place: s.Place, States: map[string]int{}})
		}
		c := &changes[i]
		if s.State == "waiting" && (c.States["waiting"] == 0 || s.Cohort < c.Cohort) {
			c.Place = s.Place
		}
		c.Apps++
		c.States[s.State]++
	}
	changes = slices.DeleteFunc(changes, func(c SharedChange) bool { return c.States["done"] == c.Apps })
	slices.SortFunc(changes, func(a, b SharedChange) int { return strings.Compare(a.Place.String(), b.Place.String()) })
	return changes
}

// SetChanges counts the apps of shared changes. It omits changes that all apps run.
func (l *Listing) SetChanges() {
	l.Changes = SharedChanges(rollout.Mapped(l.Apps, func(a App) *Shared { return a.Shared }))
	for i, a := range l.Apps {
		if s := a.Shared; s != nil && !slices.ContainsFunc(l.Changes, func(c SharedChange) bool { return c.Same(s.Place) }) {
			l.Apps[i].Shared = nil
		}
	}
}
