package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Order sorts the plans of all clusters by stage, after clusters without a stage, and adds stages to the summaries. A
// stage waits for the release and the soak of each app in the stage before. Versions that served before do not wait.
func Order(all []Plan, f *rollout.Fleet) {
	order := func(p Plan) int { return f.StageOf(p.Cluster) + 1 } // 0 without a stage
	slices.SortStableFunc(all, func(a, b Plan) int { return cmp.Compare(order(a), order(b)) })
	soaked := map[string]time.Time{} // earliest, by stage and app; zero if a cluster cannot take the change
	for _, p := range all {
		for i, a := range p.Apps {
			n := order(p)
			if n == 0 || a.Change == Gone {
				continue
			}
			s, enters, ends, approval := f.Stages[n-1], p.At, time.Time{}, ""
			if a.Change == First || a.Change == Release || a.Change == Apply {
				if at, changes := soaked[fmt.Sprint(n-1, " ", a.App)]; changes {
					enters = at
				}
				if s.Approve == rollout.ApproveMerge {
					approval = ", after an approval"
				}
			}
			if a.Change != Invalid && a.Change != Rejected {
				p.Apps[i].Enters, p.Apps[i].Summary = enters, fmt.Sprintf("enters stage %d of %d (%s), earliest: %s%s; %s", n,
					len(f.Stages), s.Name, Moment(enters, p.At), approval, a.Summary)
				p.Apps[i].delay(enters)
				if !enters.IsZero() {
					ends = enters.Add(time.Duration(a.AtLeast) + s.Soak)
				}
			}
			here := fmt.Sprint(n, " ", a.App)
			if was, known := soaked[here]; !known || ends.IsZero() || !was.IsZero() && ends.After(was) {
				soaked[here] = ends
			}
		}
	}
}

// delay moves an app's earliest times to the entry into the stage, or makes the times unknown.
func (a *App) delay(enters time.Time) {
	later := func(t *time.Time, least time.Time) {
		if *t = rollout.Later(*t, least); enters.IsZero() {
			*t = time.Time{}
		}
	}
	for _, w := range a.Workloads {
		at := enters
		for i := range w.Stages {
			if s := &w.Stages[i]; !s.Enters.IsZero() {
				later(&s.Enters, at)
				at = at.Add(time.Duration(s.AtLeast))
			}
		}
	}
	if !a.Ends.IsZero() {
		later(&a.Begins, enters)
		later(&a.Ends, enters.Add(time.Duration(a.AtLeast)))
	}
}
