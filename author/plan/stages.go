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
	type place struct {
		stage int
		app   string
	}
	soaked := map[place]time.Time{} // earliest; zero if a cluster cannot take the change
	for _, p := range all {
		for i, a := range p.Apps {
			n := order(p)
			if n == 0 || a.Change == Gone {
				continue
			}
			s, enters, ends := f.Stages[n-1], p.At, time.Time{}
			waits := a.Change == First || a.Change == Release || a.Change == Apply
			if at, changes := soaked[place{n - 1, a.App}]; changes && waits {
				enters = at
			}
			if a.Change != Invalid && a.Change != Rejected {
				p.Apps[i].Enters = enters
				p.Apps[i].Summary += fmt.Sprintf("; enters stage %d of %d (%s) %s", n, len(f.Stages), s.Name, entry(enters, p.At))
				if waits && s.Approve == rollout.ApproveMerge {
					p.Apps[i].Summary += ", after an approval"
				}
				if !enters.IsZero() {
					ends = enters.Add(time.Duration(a.AtLeast) + s.Soak)
				}
			}
			here := place{n, a.App}
			if was, known := soaked[here]; !known || ends.IsZero() || !was.IsZero() && ends.After(was) {
				soaked[here] = ends
			}
		}
	}
}

func entry(at, now time.Time) string {
	switch {
	case at.IsZero():
		return "once the stage before takes the change"
	case at.After(now):
		return "not before " + Moment(at, now)
	}
	return Moment(at, now)
}
