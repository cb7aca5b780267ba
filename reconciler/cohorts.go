package reconciler

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

// cohorts caches the answers of source.Entries for the current view, record and renders. It makes waiting apps due when
// their answers change.
type cohorts struct {
	renders *renderCache
	states  *stateStore
	fetcher *fetcher
	touch   func(app string)

	mu      sync.Mutex
	entries *source.Entries
	of      freshness
	waiting map[string]stage       // by app that was told to wait
	next    atomic.Pointer[string] // one of them, or nil
}

// freshness identifies the facts behind the answers.
type freshness struct {
	branch  *source.Branch
	record  string
	renders int
}

// stage has the parts of an answer that make the app due when they change.
type stage struct {
	isOpen, asks, isUnknown bool
	due                     time.Time
}

// entry returns whether an app may take a shared change. While this is unknown, the app waits, with an error.
func (c *cohorts) entry(
	v *gitView, a *appView, s rollout.State, head strategies.Head, p *rollout.Promotion, now time.Time,
) (*cohort.Entry, error) {
	if v.branch.Config == nil || len(v.apps) <= v.branch.Config.Shared.Over {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.refresh(v)
	e, err := c.entries.Of(a.App, s, head, p, now)
	defer c.choose(a.Name)
	if err != nil {
		c.waiting[a.Name] = stage{isUnknown: true}
		return &cohort.Entry{Waits: "the commits of other apps"}, fmt.Errorf("the apps that share a change: %w", err)
	}
	if e == nil || e.Open {
		delete(c.waiting, a.Name)
	} else {
		c.waiting[a.Name] = stage{asks: e.Asks, due: e.Due}
	}
	if changed {
		c.wakeChanged(a.Name, now)
	}
	return e, nil
}

func (c *cohorts) refresh(v *gitView) (changed bool) {
	record, _ := c.states.at()
	of := freshness{v.branch, record, c.renders.generation()}
	if of == c.of {
		return false
	}
	if c.of.branch != v.branch {
		c.entries = &source.Entries{
			Branch: v.branch, Record: c.record, Files: c.renders.files, ReadBy: c.renders.readers, Render: c.renders.cached,
			Tree:   func(commit string) (rollout.Tree, error) { return c.fetcher.tree(commit) },
			Head:   func(app string) (strategies.Head, bool) { return c.renders.newest(app, v.main()) },
			Starts: func() bool { return c.renders.count() < len(v.branch.Apps) },
		}
	}
	c.entries.Forget()
	c.of = of
	return true
}

func (c *cohorts) record(app string) rollout.State {
	e, _ := c.states.of(app)
	return e.state
}

// wakeChanged makes the other waiting apps due whose answers have changed.
func (c *cohorts) wakeChanged(app string, now time.Time) {
	for name, was := range c.waiting {
		change := c.entries.Waiting(name)
		if name == app || change == nil && !was.isUnknown {
			continue
		}
		is := stage{isOpen: true}
		if change != nil {
			e := change.Entry(name, now)
			is = stage{isOpen: e.Open, asks: e.Asks, due: e.Due}
		}
		if is != was {
			c.touch(name)
		}
	}
}

// choose selects the app that the next wake makes due, after an answer for an app.
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

// wake makes a waiting app due, because the record, the head or a render has changed. Its pass compares the answers.
func (c *cohorts) wake() {
	if app := c.next.Load(); app != nil {
		c.touch(*app)
	}
}

func (c *cohorts) forget(app string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, app)
	c.choose(app)
}
