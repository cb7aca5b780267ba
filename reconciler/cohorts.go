package reconciler

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

type cohorts struct {
	renders *renderCache
	states  *stateStore
	fetcher *fetcher
	touch   func(app string)
	queued  func(app string, serial int) *rollout.State // decided, but not recorded yet

	mu      sync.Mutex
	view    *gitView
	entries *source.Entries
	older   map[string]*source.Entries // for older heads, by commit
	of      [3]any                     // branch, record's head and number of renders at the last refresh
	waiting map[string]*cohort.Entry   // by waiting app; nil if unknown
	next    atomic.Pointer[string]     // app that the next wake makes due
}

// entry returns an app's place in a shared change, or nil without a change. After an error, the place is unknown, so
// the app waits.
func (c *cohorts) entry(
	v *gitView, a *appView, s rollout.State, head strategies.Head, p *rollout.Promotion, now time.Time,
	isOlder bool,
) (*cohort.Entry, error) {
	if v.branch.Config == nil || len(v.apps) <= v.branch.Config.Shared.Over && c.next.Load() == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.refresh(v)
	if was, waits := c.waiting[a.Name]; waits && was == nil {
		changed = true // the last call failed, so it woke no other app
	}
	ask := func() (*cohort.Entry, error) {
		entries, err := c.entries, error(nil)
		if isOlder && head.Render != nil {
			entries, err = c.at(head.Render.Commit.ID)
		}
		if err != nil {
			return nil, err
		}
		return entries.Of(a.App, s, head, p, now)
	}
	e, err := ask()
	// The record may have changed meanwhile.
	for record, _ := c.states.at(); record != c.of[1]; record, _ = c.states.at() {
		changed = c.refresh(v)
		e, err = ask()
	}
	defer c.choose(a.Name)
	if err != nil {
		c.waiting[a.Name] = nil
		return &cohort.Entry{Waits: "the commits of other apps"}, fmt.Errorf("find apps that share a change: %w", err)
	}
	if c.waiting[a.Name] = e; e == nil || e.Open {
		delete(c.waiting, a.Name)
	}
	if changed {
		for name, was := range c.waiting {
			if name != a.Name && (was == nil || c.differs(name, *was, now)) {
				c.touch(name)
			}
		}
	}
	return e, nil
}

func (c *cohorts) at(commit string) (*source.Entries, error) {
	e := c.older[commit]
	if e == nil {
		tree, err := c.fetcher.tree(commit)
		if err != nil {
			return nil, err
		}
		branch, next := *c.entries.Branch, *c.entries
		branch.Tree, next.Branch = tree, &branch
		next.Forget()
		e, c.older[commit] = &next, &next
	}
	return e, nil
}

func (c *cohorts) refresh(v *gitView) (changed bool) {
	r, made := c.renders, 0
	record, _ := c.states.at()
	r.read(func() { made = r.made })
	was := c.of
	if c.of = [3]any{v.branch, record, made}; c.of == was {
		return false
	}
	if c.view = v; was[0] != v.branch {
		read := 0 // number of apps whose files are known
		c.entries = &source.Entries{Branch: v.branch,
			Record: func(app string) rollout.State {
				e, _ := c.states.of(app) // until a rename is pushed, only the former name has a record
				if next := c.queued(app, e.state.Serial); next != nil && e.state.App != "" {
					return *next
				}
				return e.state
			},
			Tree:   func(commit string) (rollout.Tree, error) { return c.fetcher.tree(commit) },
			Files:  func(app string) (files []string) { r.read(func() { files = r.index.Files(app) }); return files },
			ReadBy: func(file string) (apps []string) { r.read(func() { apps = r.index.Readers(file) }); return apps },
			Reads: func() bool {
				for read < len(v.branch.Apps) && c.isRead(v.branch.Apps[read].Name) {
					read++
				}
				isUnread := func(app string) bool { return !c.isRead(app) }
				return read < len(v.branch.Apps) || slices.ContainsFunc(c.view.gone, isUnread)
			},
			Render: r.packed,
			Head:   func(app rollout.App) (head strategies.Head, ready bool) { return r.packedHead(v, app) },
		}
	}
	c.entries.Forget()
	c.older = map[string]*source.Entries{}
	return true
}

// isRead reports whether the index has an app's files at the head. For a removed app or a head with an error, the
// recorded commit replaces the head.
func (c *cohorts) isRead(app string) (is bool) {
	a, r := c.view.apps[app], c.renders
	e, _ := c.states.of(app)
	isOld := false
	r.read(func() {
		h := r.heads[app]
		isOld = a.removed == nil && (h == nil || h.of != c.view.main())
		is = r.index.Files(app) != nil || e.state.Source == ""
	})
	if !isOld && !is {
		_, err := r.packed(e.state.Named(a.App), e.state.Source)
		_, gone := c.fetcher.tree(e.state.Source)
		is = err == nil || rollout.IsInvalid(err) || gone != nil && !errors.Is(gone, source.ErrNotReady)
	}
	return is && !isOld
}

func (c *cohorts) differs(app string, was cohort.Entry, now time.Time) bool {
	change, err := c.entries.Waiting(app)
	return err != nil || change == nil || change.Entry(app, now).Differs(was)
}

func (c *cohorts) choose(app string) {
	_, waits := c.waiting[app]
	switch next := c.next.Load(); {
	case waits && next == nil:
		c.next.Store(&app)
	case waits || next == nil || *next != app:
	case len(c.waiting) == 0:
		c.next.Store(nil)
	default:
		c.next.Store(&sortedKeys(c.waiting)[0])
	}
}

// wake makes one waiting app due after a change of the record, the head or a render. This app's pass wakes the waiting
// apps whose answers changed.
func (c *cohorts) wake() {
	if app := c.next.Load(); app != nil {
		c.touch(*app)
	}
}

// forget replaces c.next if c.next is the forgotten app.
func (c *cohorts) forget(app string, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.next.Load()
	delete(c.waiting, app)
	if gone {
		c.of, c.view, c.entries, c.older = [3]any{}, nil, nil, nil
	}
	if c.choose(app); c.next.Load() != was {
		c.wake()
	}
}
