package propose_test

import (
	"testing"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
)

func TestCalculate(t *testing.T) {
	edits := map[string][]byte{"a": []byte("1")}
	wanted := &propose.Change{Edits: edits}
	same, other := &rollout.Merge{Edits: edits, Clean: true}, &rollout.Merge{Clean: true}
	for name, c := range map[string]struct {
		plan propose.Plan
		want propose.Step
	}{
		"not wanted":                  {propose.Plan{}, propose.Leave},
		"no longer wanted":            {propose.Plan{Existing: "c1"}, propose.Delete},
		"a forge may be merging it":   {propose.Plan{Existing: "c1", IsKept: true}, propose.Leave},
		"new":                         {propose.Plan{Wanted: wanted, IsNew: true}, propose.Push},
		"removed by a user":           {propose.Plan{Wanted: wanted}, propose.Leave},
		"in place":                    {propose.Plan{Existing: "c1", Wanted: wanted, Merge: same}, propose.Leave},
		"in place, for a new reason":  {propose.Plan{Existing: "c1", Wanted: wanted, IsNew: true, Merge: same}, propose.Leave},
		"outdated":                    {propose.Plan{Existing: "c1", Wanted: wanted, Merge: other}, propose.Push},
		"in conflict with the head":   {propose.Plan{Existing: "c1", Wanted: wanted, Merge: &rollout.Merge{Edits: edits}}, propose.Push},
		"unreadable":                  {propose.Plan{Existing: "c1", Wanted: wanted}, propose.Leave},
		"unreadable, of a new reason": {propose.Plan{Existing: "c1", Wanted: wanted, IsNew: true}, propose.Push},
	} {
		if step, why := c.plan.Calculate(); step != c.want || step != propose.Leave && why == "" {
			t.Errorf("%s: step %d (%q), want %d", name, step, why, c.want)
		}
	}
}
