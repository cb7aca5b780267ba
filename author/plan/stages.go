package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Entry lists apps that take the change together in a cluster of a stage.
type Entry struct {
	Stage    string    `json:"stage"`
	Number   int       `json:"number"` // of the stage, from 1
	Of       int       `json:"of"`
	Apps     []string  `json:"apps"`
	Begins   time.Time `json:"begins,omitzero"`    // earliest; zero after a stage in which an app cannot soak
	Approval bool      `json:"approval,omitempty"` // a user lets each app enter
}

// StageTexts returns "3 of 3 (prod) takes the change not before 13:05:00 UTC, after an approval: shop" or the like.
func (p Plan) StageTexts() []string {
	return rollout.Mapped(p.Stages, func(e Entry) string {
		when := Moment(e.Begins, p.At)
		switch {
		case e.Begins.IsZero():
			when = "once the apps in the stage before are corrected"
		case e.Begins.After(p.At):
			when = "not before " + when
		}
		if e.Approval {
			when += ", after an approval"
		}
		return fmt.Sprintf("%d of %d (%s) takes the change %s: %s", e.Number, e.Of, e.Stage, when, strings.Join(e.Apps, ", "))
	})
}

// Order sorts the plans of all clusters by stage, and adds the entries. A later stage waits for the release and the
// soak of each app that changes in the stage before. Rollbacks and versions that served before wait for nothing.
func Order(all []Plan, f *rollout.Fleet) {
	if f == nil {
		return
	}
	order := func(p Plan) int { return f.StageOf(p.Cluster) + 1 } // from 1; 0 without a stage
	slices.SortStableFunc(all, func(a, b Plan) int { return cmp.Compare(order(a), order(b)) })
	soaked := make([]map[string]time.Time, len(f.Stages)+1) // by stage and app: when the next stage may begin
	for i := range soaked {
		soaked[i] = map[string]time.Time{}
	}
	for i := range all {
		if n := order(all[i]); n > 0 {
			all[i].enter(f.Stages[n-1], Entry{Number: n, Of: len(f.Stages)}, soaked[n-1], soaked[n])
		}
	}
}

// enter adds the entries of a cluster. before and soaked have the ends of soaks by app, zero for an app that cannot
// soak.
func (p *Plan) enter(s rollout.Stage, e Entry, before, soaked map[string]time.Time) {
	for _, a := range p.Apps {
		e.Stage, e.Begins, e.Approval = s.Name, p.At, false
		ends := time.Time{}
		switch a.Change {
		case Gone:
			continue
		case First, Release, Apply:
			e.Approval = s.Approve == rollout.ApproveMerge
			if at, waits := before[a.App]; waits {
				e.Begins = at
			}
		}
		isStuck := a.Change == Invalid || a.Change == Rejected
		if !isStuck && !e.Begins.IsZero() {
			ends = e.Begins.Add(time.Duration(a.AtLeast) + s.Soak)
		}
		if was, known := soaked[a.App]; !known || ends.IsZero() || !was.IsZero() && ends.After(was) {
			soaked[a.App] = ends
		}
		if isStuck {
			continue
		}
		n := slices.IndexFunc(p.Stages, func(o Entry) bool { return o.Begins.Equal(e.Begins) && o.Approval == e.Approval })
		if n < 0 {
			n, p.Stages = len(p.Stages), append(p.Stages, e)
		}
		p.Stages[n].Apps = append(p.Stages[n].Apps, a.App)
	}
	slices.SortStableFunc(p.Stages, func(a, b Entry) int { return a.Begins.Compare(b.Begins) })
}
