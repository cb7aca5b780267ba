package status

import (
	"cmp"
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Shared is an app's place in a change of a file that many apps read.
type Shared struct {
	rollout.Place
	State string `json:"state"` // waits, entered, rejected, or done: healthy with the content
}

// SharedChange counts the apps of a change that some of these apps do not run yet.
type SharedChange struct {
	rollout.Place     // the first cohort that waits, else the last
	Apps          int `json:"apps"`
	Done          int `json:"done"`
	Entered       int `json:"entered,omitempty"`
	Rejected      int `json:"rejected,omitempty"`
	Waits         int `json:"waits,omitempty"`
}

// String returns "base/web.yaml (5832d1e): 3 of 214 apps done, 1 entered, 210 wait for cohort 2 of 3" or the like.
func (c SharedChange) String() string {
	text := fmt.Sprintf("%s (%s): %d of %d apps done", c.File, c.ID, c.Done, c.Apps)
	if c.Entered > 0 {
		text += fmt.Sprintf(", %d entered", c.Entered)
	}
	if c.Rejected > 0 {
		text += fmt.Sprintf(", %d rejected", c.Rejected)
	}
	if c.Waits > 0 {
		text += fmt.Sprintf(", %d wait for cohort %d of %d", c.Waits, c.Cohort, c.Of)
	}
	return text
}

func sharedOf(in strategies.Input) *Shared {
	if in.Place == nil {
		return nil
	}
	s, state := in.State, "entered"
	_, rejected := strategies.Rejection(in)
	switch {
	case in.Entry != nil:
		state = "waits"
	case rejected:
		state = "rejected"
	case s.Shown() == rollout.Healthy && (s.IsNewSince(s.Entered.At) || !s.Entered.Well.IsZero()):
		state = "done"
	}
	return &Shared{*in.Place, state}
}

// SharedChanges returns the changes that some apps do not run yet, by file.
func SharedChanges(all []*Shared) (changes []SharedChange) {
	for _, s := range all {
		if s == nil {
			continue
		}
		i := slices.IndexFunc(changes, func(c SharedChange) bool { return c.File == s.File && c.ID == s.ID })
		if i < 0 {
			i, changes = len(changes), append(changes, SharedChange{Place: s.Place})
		}
		c := &changes[i]
		c.Apps++
		switch s.State {
		case "done":
			c.Done++
		case "rejected":
			c.Rejected++
		case "entered":
			c.Entered++
		default:
			if c.Waits++; c.Waits == 1 || s.Cohort < c.Cohort {
				c.Place = s.Place
			}
		}
	}
	changes = slices.DeleteFunc(changes, func(c SharedChange) bool { return c.Done == c.Apps })
	slices.SortFunc(changes, func(a, b SharedChange) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.ID, b.ID)) })
	return changes
}

// SetChanges counts the apps of shared changes, and forgets changes that all apps run.
func (l *Listing) SetChanges() {
	l.Changes = SharedChanges(rollout.Mapped(l.Apps, func(a App) *Shared { return a.Shared }))
	for i, a := range l.Apps {
		if a.Shared != nil && !slices.ContainsFunc(l.Changes, func(c SharedChange) bool { return c.File == a.Shared.File && c.ID == a.Shared.ID }) {
			l.Apps[i].Shared = nil
		}
	}
}
