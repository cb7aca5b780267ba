package propose

import (
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

func TestCalculate(t *testing.T) {
	edits := map[string][]byte{"a": []byte("1")}
	wanted := &Change{Edits: edits}
	same, other := &rollout.Merge{Edits: edits, Clean: true}, &rollout.Merge{Clean: true}
	for name, c := range map[string]struct {
		plan Plan
		want Step
	}{
		"not wanted":                  {Plan{}, Leave},
		"no longer wanted":            {Plan{Existing: "c1"}, Delete},
		"a forge may be merging it":   {Plan{Existing: "c1", IsKept: true}, Leave},
		"new":                         {Plan{Wanted: wanted, IsNew: true}, Push},
		"removed by a user":           {Plan{Wanted: wanted}, Leave},
		"in place":                    {Plan{Existing: "c1", Wanted: wanted, Merge: same}, Leave},
		"in place, for a new reason":  {Plan{Existing: "c1", Wanted: wanted, IsNew: true, Merge: same}, Leave},
		"outdated":                    {Plan{Existing: "c1", Wanted: wanted, Merge: other}, Push},
		"in conflict with the head":   {Plan{Existing: "c1", Wanted: wanted, Merge: &rollout.Merge{Edits: edits}}, Push},
		"unreadable":                  {Plan{Existing: "c1", Wanted: wanted}, Leave},
		"unreadable, of a new reason": {Plan{Existing: "c1", Wanted: wanted, IsNew: true}, Push},
	} {
		if step, why := c.plan.Calculate(); step != c.want || step != Leave && why == "" {
			t.Errorf("%s: step %d (%q), want %d", name, step, why, c.want)
		}
	}
}
