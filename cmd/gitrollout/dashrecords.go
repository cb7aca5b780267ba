package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/diff"

	"gitrollout.dev/gitrollout/dashboard"
	"gitrollout.dev/gitrollout/forge"
	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/rollout"
)

// dashRecords looks into Git for the pages of the dashboard. It has a mirror of
// its own, so that whoever reads history delays no pass of a reconciler.
type dashRecords struct {
	streams
	source sourceOptions

	mu    sync.Mutex
	world *world // nil until it is needed
	state string // the commit that past is of
	past  []*git.Snapshot
}

// historyDepth is how many commits of the state branch are searched for an app's,
// and historyEvents how many of those are shown.
const (
	historyDepth  = 300
	historyEvents = 60
)

// open reads what is new in Git; the caller holds the lock.
func (r *dashRecords) open(ctx context.Context) (*world, error) {
	if r.world == nil {
		w, err := openWorld(ctx, r.source, git.Identity{}, r.streams)
		if err != nil {
			return nil, err
		}
		r.world = w
		return w, nil
	}
	_, err := r.world.refresh(ctx)
	return r.world, err
}

// Diff is dashboard.Records': from what serves to the release in flight, or to
// what was rejected.
func (r *dashRecords) Diff(ctx context.Context, name string) (dashboard.Diff, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, err := r.open(ctx)
	if err != nil {
		return dashboard.Diff{}, err
	}
	app, err := w.app(name)
	if err != nil {
		return dashboard.Diff{}, err
	}
	state, err := w.stateOf(name)
	if err != nil || state.Stable == nil {
		return dashboard.Diff{}, err
	}
	var to *rollout.Render
	switch head := w.head(app); {
	case state.Release != nil:
		if to, err = w.renderAt(ctx, app, state.Release.Commit); err != nil {
			return dashboard.Diff{}, err
		}
	case head.Render != nil && state.Phase == rollout.Degraded:
		to = head.Render
	default:
		return dashboard.Diff{}, nil
	}
	from, err := w.renderAt(ctx, app, state.Stable.Commit)
	if err != nil {
		return dashboard.Diff{}, err
	}
	return diffOf(from, to)
}

func diffOf(from, to *rollout.Render) (dashboard.Diff, error) {
	d := dashboard.Diff{From: from.Commit.ID, To: to.Commit.ID}
	before, after := objectsByRef(from), objectsByRef(to)
	for _, c := range rollout.Changes(from, to) {
		was, is := before[c.Ref], after[c.Ref]
		if c.Ref.Group == "" && c.Ref.Kind == "Secret" {
			was, is = mask(withStringData(was), withStringData(is))
		}
		old, err := document(was)
		if err != nil {
			return d, err
		}
		now, err := document(is)
		if err != nil {
			return d, err
		}
		text := string(diff.Diff("stable", old, "release", now))
		_, text, _ = strings.Cut(text, "+++ release\n")
		d.Objects = append(d.Objects, dashboard.Object{Name: c.Ref.String(), Verb: c.Verb, Text: text})
	}
	return d, nil
}

// withStringData is a Secret as the API server keeps it: what people write below
// stringData is data, and is compared and masked there.
func withStringData(o rollout.Object) rollout.Object {
	if o == nil || o.Map("stringData") == nil {
		return o
	}
	o = o.Copy()
	data := o.Map("data")
	if data == nil {
		data = map[string]any{}
		o["data"] = data
	}
	for key, value := range o.Map("stringData") {
		data[key] = value
	}
	return o
}

func objectsByRef(r *rollout.Render) map[rollout.Ref]rollout.Object {
	objects := make(map[rollout.Ref]rollout.Object, len(r.Objects))
	for _, o := range r.Objects {
		objects[o.Ref()] = o
	}
	return objects
}

// History is dashboard.Records': the commits of the state branch that are about
// the app, newest first.
func (r *dashRecords) History(ctx context.Context, name string) (dashboard.History, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, err := r.open(ctx)
	if err != nil {
		return dashboard.History{}, err
	}
	pages := forge.PagesOf(w.config.Forge, w.repo.mirror().Remote().String(), w.source.branch)
	h := dashboard.History{Links: dashboard.Links{Commit: pages.Commit, Branch: pages.Branch}}
	if w.heads.State == "" {
		return h, nil
	}
	if r.state != w.heads.State {
		past, err := w.repo.mirror().Commits(ctx, w.heads.State, historyDepth)
		if err != nil {
			return h, fmt.Errorf("the state branch's history: %w", err)
		}
		r.past, r.state = past, w.heads.State
	}
	for _, s := range r.past {
		if e, ok := eventOf(s.Commit(), name); ok && len(h.Events) < historyEvents {
			h.Events = append(h.Events, e)
		}
	}
	return h, nil
}

// eventOf reads a commit of the state branch by its trailers, one for each app:
//
//	Gitrollout-App: shop phase=Progressing release=h1-7b4e2a91d0 step=3/8 weight=40
func eventOf(c git.CommitInfo, app string) (dashboard.Event, bool) {
	e := dashboard.Event{At: c.CommitTime.UTC(), Commit: c.ID}
	apps, mine := 0, -1
	var listed []string
	for line := range strings.Lines(c.Message) {
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutPrefix(line, "- "); ok {
			listed = append(listed, text)
		}
		if source, ok := strings.CutPrefix(line, "Gitrollout-Source: "); ok {
			e.Source = source
		}
		trailer, ok := strings.CutPrefix(line, "Gitrollout-App: ")
		if !ok {
			continue
		}
		words := strings.Fields(trailer)
		if len(words) > 0 && words[0] == app {
			mine = apps
			readTrailer(&e, words[1:])
		}
		apps++
	}
	if mine < 0 {
		return e, false
	}
	// The first one's subject is the commit's, the others' are listed in order.
	_, e.Subject, _ = strings.Cut(c.Subject, ": ")
	if i := strings.LastIndex(e.Subject, " (+"); apps > 1 && i > 0 {
		e.Subject = e.Subject[:i]
	}
	if mine > 0 && mine-1 < len(listed) {
		e.Subject = listed[mine-1]
	}
	return e, true
}

func readTrailer(e *dashboard.Event, words []string) {
	for _, word := range words {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "phase":
			e.Phase = value
		case "release", "stable":
			e.Release = value
		case "step":
			e.Step = value
		case "weight":
			e.Weight = value
		}
	}
}
