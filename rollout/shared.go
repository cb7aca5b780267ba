package rollout

import (
	"fmt"
	"time"
)

// SharedChanges configures changes of a file that more than Over apps read. These apps take the change cohort by
// cohort.
type SharedChanges struct {
	Over    int      `json:"over" default:"10"`
	Cohorts []Amount `json:"cohorts" default:"[1, \"10%\", \"100%\"]" max:"20" fix:"leave some out"`
	// Soak is how long a cohort must stay Healthy before the next cohort starts. After Timeout, an unfinished cohort
	// waits for a user.
	Soak    time.Duration `json:"soak" default:"10m"`
	Timeout time.Duration `json:"timeout" default:"4h" min:"1" fix:"write 4h or the like"`
}

func (s SharedChanges) check(file string) error {
	const field = "sharedChanges.cohorts"
	for i, c := range s.Cohorts {
		at, before := fmt.Sprintf("%s[%d]", field, i), s.Cohorts[max(0, i-1)]
		switch {
		case c.Value == 0 || c.Percent && c.Value > 100:
			return Invalidf(file, at, "%q is not a size of a cohort", c).WithFix("give 1 or more apps, or 1%% to 100%%")
		case c.Percent == before.Percent && c.Value <= before.Value && i > 0:
			return Invalidf(file, at, "%q is not more than the previous cohort's %q", c, before).
				WithFix("include the apps of all earlier cohorts: [1, 10%%, 100%%]")
		}
	}
	if n := len(s.Cohorts); n == 0 || s.Cohorts[n-1] != (Amount{Value: 100, Percent: true}) {
		return Invalidf(file, field, "has no last cohort of 100%%, so some apps would never get a change").
			WithFix("end with 100%%: [1, 10%%, 100%%]")
	}
	return nil
}

// Sizes returns, for n apps, each cohort's size plus the sizes of earlier cohorts. Sizes increase; the last is n.
func (s SharedChanges) Sizes(n int) (sizes []int) {
	last := 0
	for _, c := range s.Cohorts {
		if size := min(n, c.RoundUp(n)); size > last {
			sizes, last = append(sizes, size), size
		}
	}
	return sizes
}
