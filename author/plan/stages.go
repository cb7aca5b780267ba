package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

var never = time.Unix(1<<40, 0)

// Order sorts plans by stage, delays their times, and adds stages to summaries. Clusters without a stage come first. An
// app waits until it has soaked in the previous stage and, if maxUpdate requires this, in clusters of its own stage.
// Former stable versions do not wait.
func Order(all []Plan, f *rollout.Fleet) {
	order := func(p Plan) int { return f.StageOf(p.Cluster) }
	slices.SortStableFunc(all, func(a, b Plan) int { return cmp.Compare(order(a), order(b)) })
	before := map[string]time.Time{} // by app: the earliest end of the soak in the previous stage
	isUnread := func(cluster string) bool {
		return slices.ContainsFunc(all, func(p Plan) bool { return p.Cluster == cluster && p.Error != nil })
	}
	var least time.Time // earliest entry of all apps; equals never if the previous stage has an invalid configuration
	for n, s := range f.Stages {
		soaked := map[string]time.Time{}
		for app, at := range changed(all, s.Clusters) {
			var ends []time.Time // of the soaks in clusters with lower ranks; clusters without the change need no soak
			for rank, cluster := range s.Ranked(app) {
				p := at[cluster]
				if p.app == nil {
					if isUnread(cluster) {
						ends = append(ends, never)
					}
					continue
				}
				enters := p.At
				if needed := s.NeededBefore(rank) - (rank - len(ends)); p.app.waits() {
					if enters = rollout.Later(enters, rollout.Later(before[app], least)); needed > 0 {
						enters = rollout.Later(enters, slices.SortedFunc(slices.Values(ends), time.Time.Compare)[needed-1])
					}
				}
				end := p.app.enter(fmt.Sprintf("enters stage %d of %d (%s)", n+1, len(f.Stages), s.Name), s, p.At, enters)
				ends, soaked[app] = append(ends, end), rollout.Later(soaked[app], end)
			}
		}
		before, least = soaked, time.Time{}
		if slices.ContainsFunc(s.Clusters, isUnread) {
			least = never
		}
	}
}

type placed struct {
	At  time.Time
	app *App
}

func changed(all []Plan, clusters []string) map[string]map[string]placed {
	apps := map[string]map[string]placed{}
	for _, p := range all {
		for i := range p.Apps {
			a := &p.Apps[i]
			if a.Change == Gone || !slices.Contains(clusters, p.Cluster) {
				continue
			}
			if apps[a.App] == nil {
				apps[a.App] = map[string]placed{}
			}
			apps[a.App][p.Cluster] = placed{p.At, a}
		}
	}
	return apps
}

func (a *App) waits() bool { return a.Change == First || a.Change == Release || a.Change == Apply }

func (a *App) enter(text string, s rollout.Stage, now, enters time.Time) time.Time {
	if a.Change == Invalid || a.Change == Rejected {
		return never
	}
	approval := ""
	if s.Approve == rollout.ApproveMerge && a.waits() {
		approval = ", after an approval"
	}
	end := enters.Add(time.Duration(a.AtLeast) + s.Soak)
	if !enters.Before(never) {
		enters, end = time.Time{}, never
	}
	a.Enters, a.Summary = enters, fmt.Sprintf("%s, earliest: %s%s; %s", text, Moment(enters, now), approval, a.Summary)
	a.delay(enters)
	return end
}

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
