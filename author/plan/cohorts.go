package plan

import (
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

// Cohort lists apps that take a shared change together. The earliest time assumes no other wait.
type Cohort struct {
	Files  []string  `json:"files"` // that the apps of all cohorts share
	Number int       `json:"number"`
	Of     int       `json:"of"`
	Apps   []string  `json:"apps"`
	Begins time.Time `json:"begins"` // the earliest begin
}

// sharing is a cohort.World in which no app has the change yet.
type sharing struct {
	cohort.Index
	tree    rollout.Tree
	members map[string]cohort.Member
}

// ID implements cohort.World.
func (w *sharing) ID(file string) string {
	entry, _, _ := w.tree.Lookup(file) // read before
	return entry.ID
}

// Member implements cohort.World.
func (w *sharing) Member(app string) (cohort.Member, error) {
	m, changes := w.members[app]
	m.Apart = !changes
	return m, nil
}

// withCohorts adds the cohorts of changes that many apps share.
func (p *Plan) withCohorts(s *Sides, heads []*rollout.Render) {
	settings := s.After.Config.Shared
	w := &sharing{tree: s.After.Tree, members: map[string]cohort.Member{}}
	for _, r := range heads {
		if r != nil {
			w.Set(r.App.Name, r.Files)
		}
	}
	takes := map[string]time.Duration{}
	for _, a := range p.Apps {
		if a.Change == Release || a.Change == Apply && len(a.Objects) > 0 {
			app, _ := s.After.Find(a.App)
			w.members[a.App] = cohort.Member{App: a.App, Tier: s.After.Config.EntryOf(app).Tier, Changed: a.Files}
			takes[a.App] = time.Duration(a.AtLeast)
		}
	}
	done := map[string]bool{}
	for _, a := range p.Apps {
		m, changes := w.members[a.App]
		if !changes || done[a.App] || settings.Over == 0 {
			continue
		}
		change, _ := cohort.Find(settings, w, m) // the members are known
		if change == nil {
			continue
		}
		var all []Cohort
		for _, app := range change.Apps() {
			done[app] = true
			e := change.Entry(app, p.At)
			i := slices.IndexFunc(all, func(c Cohort) bool { return c.Number == e.Cohort })
			if i < 0 {
				all, i = append(all, Cohort{Files: change.Files(), Number: e.Cohort, Of: e.Of}), len(all)
			}
			all[i].Apps = append(all[i].Apps, app)
		}
		slices.SortFunc(all, func(a, b Cohort) int { return a.Number - b.Number })
		at := p.At
		for i := range all {
			all[i].Begins = at
			longest := time.Duration(0)
			for _, app := range all[i].Apps {
				longest = max(longest, takes[app])
			}
			at = at.Add(longest + settings.Soak)
		}
		p.Cohorts = append(p.Cohorts, all...)
	}
}
