package plan

import (
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

// Cohort has apps that take a shared change together.
type Cohort struct {
	Files  []string  `json:"files"` // files that the apps of all cohorts share
	Number int       `json:"number"`
	Of     int       `json:"of"`
	Apps   []string  `json:"apps"`
	Begins time.Time `json:"begins"` // earliest time, from minimum durations and soaks
	takes  Span
}

type sharing struct {
	cohort.Index
	tree    rollout.Tree
	members map[string]cohort.Member
	takes   map[string]Span // by app
}

func (w *sharing) ID(file string) string {
	entry, _, _ := w.tree.Lookup(file) // the file has been read
	return entry.ID
}

func (w *sharing) Member(app string) (cohort.Member, error) {
	m, changes := w.members[app]
	m.Apart = !changes
	return m, nil
}

func (p *Plan) withCohorts(s *Sides, heads []*rollout.Render) {
	settings, done := s.After.Config.Shared, map[string]bool{}
	w := &sharing{tree: s.After.Tree, members: map[string]cohort.Member{}, takes: map[string]Span{}}
	for _, r := range heads {
		if r != nil {
			w.Set(r.App.Name, r.Files)
		}
	}
	for _, a := range p.Apps {
		if a.Change == Release || a.Change == Apply && len(a.Objects) > 0 {
			app, _ := s.After.Find(a.App)
			w.members[a.App] = cohort.Member{App: a.App, Tier: s.After.Config.EntryOf(app).Tier, Changed: a.Files}
			w.takes[a.App] = a.AtLeast
		}
	}
	for _, a := range p.Apps {
		if settings.Over == 0 || done[a.App] {
			continue
		}
		change, _ := cohort.Find(settings, w, w.members[a.App]) // Find fails only for an unknown app
		if change == nil {
			continue
		}
		var all []Cohort
		for _, app := range change.Apps() {
			e := change.Entry(app, p.At)
			for len(all) < e.Cohort {
				all = append(all, Cohort{Files: change.Files(), Number: len(all) + 1, Of: e.Of})
			}
			c := &all[e.Cohort-1]
			c.Apps, c.takes, done[app] = append(c.Apps, app), max(c.takes, w.takes[app]), true
		}
		at := p.At
		for i, c := range all {
			all[i].Begins = at
			at = at.Add(time.Duration(c.takes) + settings.Soak)
		}
		p.Cohorts = append(p.Cohorts, all...)
	}
}
