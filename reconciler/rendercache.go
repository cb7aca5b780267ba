package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

// renderCache renders in the background, so that apps do not wait for each other. A request for a missing render fails
// with source.ErrNotReady. When the render is finished, the app becomes due.
type renderCache struct {
	*Options
	reader  *source.Reader
	states  *stateStore
	blame   *blame
	log     *errorLog
	fetcher *fetcher
	queue   *renderQueue
	touch   func(app string)

	mu     sync.Mutex
	heads  map[string]*headRender
	at     map[string][]built       // by app, most recently used first
	named  map[rollout.Ref][]string // apps whose heads have the object
	failed map[string]bool          // apps with a render that failed or lacks a key; see retry
	index  cohort.Index             // files of the newest renders that succeeded
	made   int                      // number of renders, heads, forgotten apps and fetches of commits
	wake   func()                   // after each render
	inputs func(job)                // does a job for another cluster
}

type headRender struct {
	want       string          // newest commit
	line       []Snapshot      // commits from "of" to "want", nil if unknown
	of         string          // head's commit; "" before the first render
	app        *rollout.App    // of the last render; nil before
	policy     *rollout.Policy // policy of the last check
	head       strategies.Head
	missed     bool // a pass lacked the head and must be repeated
	looks      int  // fetches since the last failed try
	pause      int
	isUnblamed bool     // the commit that changed the head is unknown; the head names the newest commit
	rivals     []string // apps with an object of this app, waiting for this app's newest head
}

func (h *headRender) isOf(tree Snapshot, app rollout.App, policy *rollout.Policy) bool {
	return h != nil && h.of == tree.Commit().ID && *h.app == app && h.policy == policy
}

type built struct {
	commit string
	render *rollout.Render
	err    error
}

// kept limits each app's renders of older commits. A pass needs at most the stable, present and former releases. Each
// pass of a rollback uses the target's render, so newer renders do not evict it.
const kept = 4

// head returns an app's head. ready is false until the head is rendered: no app may advance or roll back on an older
// head.
func (c *renderCache) head(v *gitView, app rollout.App) (head strategies.Head, ready bool) {
	head, ready = c.packedHead(v, app)
	head.Render = head.Render.Unpacked()
	return head, ready
}

func (c *renderCache) packedHead(v *gitView, app rollout.App) (head strategies.Head, ready bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tree := v.branch.Tree
	app.Formerly = "" // the head has only the present name
	h := c.heads[app.Name]
	if h.isOf(tree, app, c.reader.Policy.Load()) {
		return h.head, true
	}
	c.wantHead(tree, v.line, app).missed = true
	return strategies.Head{Commit: tree.Commit()}, false
}

// look queues renders of a fetched head for apps whose files may have changed.
func (c *renderCache) look(tree Snapshot, line []Snapshot, apps []*rollout.App) {
	c.fetcher.follow(append([]Snapshot{tree}, line...))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, app := range apps {
		h, policy := c.heads[app.Name], c.reader.Policy.Load()
		switch {
		case h.isOf(tree, *app, policy) && h.of == h.want: // if h.want differs, a queued render would replace the head
		case h != nil && h.of == h.want && !h.missed && *h.app == *app && h.policy == policy && h.head.Render != nil &&
			c.reader.IsSameHead(tree, h.head.Render):
			h.want = tree.Commit().ID
			c.reach(h, h.want)
		default:
			c.wantHead(tree, line, *app)
		}
	}
}

// prepare queues renders at recorded commits, so that one fetch brings all missing commits.
func (c *renderCache) prepare(record *stateStore, v *gitView, apps []string) {
	for _, name := range apps {
		a := v.apps[name]
		if a == nil || a.unread {
			continue
		}
		e, _ := record.of(name)
		_, _ = c.packed(e.state.Named(a.App), e.state.Source)
		if e.state.Stable != nil && record.isInFlight(name) {
			_, _ = c.packed(e.state.Named(a.App), e.state.Stable.Commit)
		}
	}
}

func (c *renderCache) wantHead(tree Snapshot, line []Snapshot, app rollout.App) *headRender {
	h := cmp.Or(c.heads[app.Name], &headRender{})
	c.heads[app.Name] = h
	if commit := tree.Commit().ID; h.want != commit {
		if n := len(h.line); h.want != h.of && n > 0 && len(line) > 0 && line[0].Commit().ID == h.want {
			line = append(h.line[:n:n], line[1:]...) // keep earlier unrendered commits
		}
		h.want, h.line = commit, line
	}
	c.queue.add(job{what{app: app, commit: h.want, head: true}, tree, h.line, h.head.Render, false})
	return h
}

func (c *renderCache) render(_ context.Context, app rollout.App, commit string) (*rollout.Render, error) {
	r, err := c.packed(app, commit)
	return r.Unpacked(), err
}

// packed returns a render without Objects.
func (c *renderCache) packed(app rollout.App, commit string) (*rollout.Render, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.heads[app.Name]; h != nil && h.head.Render != nil && h.head.Render.Commit.ID == commit {
		return h.head.Render, nil
	}
	for i, b := range c.at[app.Name] {
		if b.commit == commit {
			copy(c.at[app.Name][1:i+1], c.at[app.Name][:i])
			c.at[app.Name][0] = b
			return b.render, b.err
		}
	}
	if _, err := c.fetcher.tree(commit, job{what: what{app: app, commit: commit}}); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("commit %s %w", rollout.ShortID(commit), source.ErrNotReady)
}

func (c *renderCache) forget(app string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.heads[app]; h != nil {
		c.updateOwners(app, h.head.Render, nil)
	}
	delete(c.heads, app)
	delete(c.at, app)
	delete(c.failed, app)
	c.index.Set(app, nil)
	c.made++
}

func (c *renderCache) read(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

func (c *renderCache) all() (out []*rollout.Render) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range sortedKeys(c.heads) {
		if r := c.heads[name].head.Render; r != nil {
			out = append(out, r)
		}
	}
	return out
}

// mostLooks limits the fetches between two tries.
const mostLooks = 32

// retry queues heads that could not be decrypted, because keys may have arrived. It repeats renders of older commits
// without a key, and renders whose failure has no cause in the repository. The pauses are 1, 2, 4 … fetches.
func (c *renderCache) retry(v *gitView) {
	c.mu.Lock()
	defer c.mu.Unlock()
	passes := func(b built) bool {
		return b.err != nil && !rollout.IsInvalid(b.err) || b.render != nil && len(b.render.Unopened) > 0
	}
	for _, name := range sortedKeys(c.failed) {
		h, a := c.heads[name], v.apps[name]
		switch {
		case h == nil || a == nil || a.removed != nil || a.unread:
		case rollout.ReasonOf(h.head.Err) == rollout.HeldUndecryptable:
			c.wantHead(v.branch.Tree, v.line, a.App)
		case !passes(built{err: h.head.Err}) && !slices.ContainsFunc(c.at[name], passes):
			h.looks, h.pause = 0, 0
			delete(c.failed, name)
		case h.looks < h.pause:
			h.looks++
		default:
			h.looks, h.pause = 0, min(2*h.pause+1, mostLooks)
			c.at[name] = slices.DeleteFunc(c.at[name], passes)
			c.touch(name)
			if passes(built{err: h.head.Err}) {
				c.wantHead(v.branch.Tree, v.line, a.App)
			}
		}
	}
}

// work runs until the queue is closed, in several goroutines. One app's renders never overlap.
func (c *renderCache) work() { c.queue.run(c.do, true) }

func (c *renderCache) drain() bool { return c.queue.run(c.do, false) }

func (c *renderCache) do(j job) {
	if j.tree == nil {
		var held bool
		if j.tree, held = c.Repository.Held(j.commit); !held { // the mirror was replaced
			c.touch(j.app.Name)
			return
		}
	}
	if j.cluster != "" {
		c.inputs(j)
		return
	}
	policy := c.reader.Policy.Load() // a later change renders again
	made := c.build(&j)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.wake()
	c.made++
	if made.Err != nil || len(made.Render.Unopened) > 0 {
		c.failed[j.app.Name] = true
	}
	if j.head {
		c.headIs(j, made, policy)
		return
	}
	if h := c.heads[j.app.Name]; h == nil || h.head.Render == nil || h.head.Render.Commit.ID != j.commit {
		c.keep(j.app.Name, built{j.commit, made.Render, made.Err})
	}
	if made.Render != nil && c.index.Files(j.app.Name) == nil { // no render of the head has set the files
		c.index.Set(j.app.Name, made.Render.Files)
	}
	c.touch(j.app.Name)
}

func (c *renderCache) keep(app string, b built) {
	all := slices.Insert(c.at[app], 0, b)
	c.at[app] = all[:min(len(all), kept)]
}

// headIs stores a new head. An unchanged render keeps its commit.
func (c *renderCache) headIs(j job, made strategies.Head, policy *rollout.Policy) {
	h := c.heads[j.app.Name]
	if h == nil || h.want != j.commit {
		return // forgotten or superseded
	}
	traced := h.isUnblamed && h.of == j.commit && len(j.line) > 0
	was, same := h.head, h.of != "" && *h.app == j.app && !traced
	switch {
	case same && made.Err != nil && was.Err != nil && was.Err.Error() == made.Err.Error():
	case same && made.Err == nil && was.Render != nil && was.Render.Digest == made.Render.Digest:
		again := *made.Render // perhaps from other files
		again.Commit = was.Render.Commit
		h.head.Render = &again
	default:
		same = false
		if was.Render != nil { // the app is at the old head until it follows the new head
			c.keep(j.app.Name, built{commit: was.Render.Commit.ID, render: was.Render})
		}
		h.head, h.isUnblamed = made, len(j.line) == 0
		c.updateOwners(j.app.Name, was.Render, made.Render)
	}
	h.app, h.policy, h.line = new(j.app), policy, nil
	if r := h.head.Render; r != nil && r.App == j.app {
		h.app = &r.App // saves memory
	}
	c.reach(h, j.commit)
	if h.head.Render != nil {
		c.index.Set(j.app.Name, h.head.Render.Files)
	}
	if h.missed || !same {
		h.missed = false
		c.touch(j.app.Name)
	}
}

func (c *renderCache) reach(h *headRender, commit string) {
	for _, app := range h.rivals {
		c.touch(app)
	}
	h.of, h.rivals = commit, nil
	c.made++
}

// isBlamed reports whether the search for the commit that last changed an app is over. Before the search, as in a new
// process, it requests older commits.
func (c *renderCache) isBlamed(app, from, main string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.heads[app]; h == nil || !h.isUnblamed || h.of != main {
		return true
	}
	c.blame.want(app, from)
	return false
}

func (c *renderCache) setHistory(app string, tree Snapshot, line []Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.heads[app]; h != nil && h.isUnblamed && h.of == tree.Commit().ID && h.of == h.want {
		h.missed = true
		c.queue.add(job{what{app: *h.app, commit: h.of, head: true}, tree, line, nil, true})
		return
	}
	c.touch(app)
}

func (c *renderCache) build(j *job) (made strategies.Head) {
	made.Commit = j.tree.Commit()
	_, end := c.begin(context.Background(), report.PartRender, j.app.Name)
	defer func() {
		if problem := recover(); problem != nil {
			c.log.ofPanic(j.app.Name, problem, debug.Stack())
			made.Render, made.Err = nil, panicked("render "+made.Commit.Short(), problem)
		}
		end(made.Err)
	}()
	if !j.head {
		made.Render, made.Err = c.reader.Render(j.tree, j.app)
		if rollout.ReasonOf(made.Err) == rollout.HeldUndecryptable {
			j.app.Sealed = true // Secrets without a key are not applied
			made.Render, made.Err = c.reader.Render(j.tree, j.app)
		}
		made.Render = made.Render.Packed()
		return made
	}
	made.Render, made.Err = c.reader.RenderHead(j.tree, j.app)
	switch reason := rollout.ReasonOf(made.Err); reason {
	case rollout.HeldForbidden, rollout.HeldPolicy, rollout.HeldUndecryptable:
		if back := c.rollbackRender(j.tree, j.app, reason); back != nil {
			made.Render, made.Err = back, nil
		}
	}
	made.Render = made.Render.Packed()
	if was := j.was; was != nil && made.Err == nil && was.App == j.app && was.Digest == made.Render.Digest {
		return made // keeps the last render's commit
	}
	return c.blame.head(j, made)
}

// rollbackRender returns the render of a refused head if a release is in flight and the head equals the stable version,
// because no check may stop a rollback.
func (c *renderCache) rollbackRender(tree Snapshot, app rollout.App, held rollout.HeldReason) *rollout.Render {
	app.Sealed = held == rollout.HeldUndecryptable
	e, _ := c.states.of(app.Name)
	if e.state.Release == nil || e.state.Stable == nil {
		return nil
	}
	before, here := c.Repository.Held(e.state.Stable.Commit)
	if !here {
		return nil
	}
	was, failed := c.reader.Render(before, app)
	is, err := c.reader.Render(tree, app)
	if failed != nil || err != nil || is.Digest != was.Digest {
		return nil
	}
	forced := *is.Packed()
	forced.Files = slices.Clone(is.Files) // a new array makes IsSameHead false, so newer heads are checked
	return &forced
}
