package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// renderCache renders apps at commits in the background, so that no pass waits for another app's files. A missing
// render returns source.ErrNotReady, and its app is touched when done. One fetch brings all missing commits.
type renderCache struct {
	reader *source.Reader
	held   func(commit string) (Snapshot, bool)
	urgent func(app string) bool   // whose renders come first
	stable func(app string) string // the commit to roll back to from the release in flight, "" without one
	touch  func(app string)
	wanted func() // called when commits are wanted
	begin  func(ctx context.Context, part report.Part, app string) (context.Context, func(error))
	panics func(app string, problem any, stack []byte)

	mu       sync.Mutex
	news     *sync.Cond // a job was queued, or close was called
	heads    map[string]*headRender
	unblamed map[string]string        // by app, the commit from which its head is to be traced
	authors  map[string]authorship    // authors of promotions that existed at the first fetch, by app
	named    map[rollout.Ref][]string // the apps whose heads name an object
	at       map[string][]built       // by app, the one used last first
	wants    map[string][]job         // by commit that is not in the mirror
	asked    map[string]bool          // wanted commits whose fetch has started
	ours     map[string]bool          // commits that are, or were, part of the followed users' branch
	gone     map[string]string        // unavailable commits, until the next fetch, with the reason
	first    []job                    // the urgent ones
	jobs     []job
	known    map[what]bool   // the queued ones
	busy     map[string]bool // apps that are being rendered: one slow app does not block the others
	ended    bool
}

// headRender is the render of one app at the head of the users' branch.
type headRender struct {
	want       string     // the newest commit
	line       []Snapshot // leads to it from of, nil if unknown
	of         string     // the rendered commit, "" before the first
	app        rollout.App
	policy     *rollout.Policy // the policy that it was checked by
	head       strategies.Head
	missed     bool // a pass asked for it and has to wait
	looks      int  // since the last try, and how many are to be between two, while it fails for a passing reason
	pause      int
	isUnblamed bool // it names the newest commit because the line from an older one was unknown
}

// authorship is the author of a promotion file, given as a blob: "" if unknown.
type authorship struct{ file, author string }

// isOf reports whether h is the render of an app at a commit under a policy.
func (h *headRender) isOf(tree Snapshot, app rollout.App, policy *rollout.Policy) bool {
	return h != nil && h.of == tree.Commit().ID && h.app == app && h.policy == policy
}

// built is an app at a commit, or the error of its render.
type built struct {
	commit string
	render *rollout.Render
	err    error
}

// kept is how many renders of older commits each app keeps, recently used first: stable, the release and the one it
// superseded. Each pass uses the render to roll back to, so newer heads do not evict it.
const kept = 4

// mostOurs bounds the known commits of the users' branch; forgotten ones are looked up again.
const mostOurs = 20_000

func newRenderCache(
	o *Options, reader *source.Reader, states *stateStore, touch func(app string), wanted func(),
	panics func(app string, problem any, stack []byte),
) *renderCache {
	p := &renderCache{
		reader: reader, begin: o.begin, urgent: states.isInFlight, stable: states.stable,
		touch: touch, wanted: wanted, panics: panics,
		held:  func(commit string) (Snapshot, bool) { return o.Repository.Held(commit) },
		heads: map[string]*headRender{}, unblamed: map[string]string{}, authors: map[string]authorship{},
		named: map[rollout.Ref][]string{}, at: map[string][]built{},
		wants: map[string][]job{}, asked: map[string]bool{}, ours: map[string]bool{}, gone: map[string]string{},
		known: map[what]bool{}, busy: map[string]bool{},
	}
	p.news = sync.NewCond(&p.mu)
	return p
}

// head returns an app at the head of the users' branch. It is not ready while that is being rendered: an older one is
// no reason to advance or roll back.
func (p *renderCache) head(v *gitView, app rollout.App) (head strategies.Head, ready bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tree := v.branch.Tree
	app.Formerly = "" // the head has the app by its present name
	h := p.heads[app.Name]
	if h.isOf(tree, app, p.reader.Policy.Load()) {
		return h.head, true
	}
	p.wantHead(tree, v.line, app).missed = true
	return strategies.Head{Commit: tree.Commit()}, false
}

// look queues renders of apps at a new head. An app is touched if its render changed.
func (p *renderCache) look(tree Snapshot, line []Snapshot, apps []rollout.App) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.gone)
	if len(p.ours) > mostOurs {
		clear(p.ours)
	}
	for _, s := range append([]Snapshot{tree}, line...) {
		p.ours[s.Commit().ID] = true
	}
	for _, app := range apps {
		if !p.heads[app.Name].isOf(tree, app, p.reader.Policy.Load()) {
			p.wantHead(tree, line, app)
		}
	}
}

// prepare queues renders of apps at recorded commits, so that one fetch brings all. Callers put urgent apps first.
func (p *renderCache) prepare(record *stateStore, v *gitView, apps []string) {
	for _, name := range apps {
		a := v.apps[name]
		if a == nil || a.unread {
			continue
		}
		e, _ := record.of(name)
		commits := []string{e.state.Source}
		if e.state.Stable != nil && record.isInFlight(name) {
			commits = append(commits, e.state.Stable.Commit)
		}
		for _, commit := range commits {
			_, _ = p.render(context.Background(), e.state.Named(a.App), commit)
		}
	}
}

func (p *renderCache) wantHead(tree Snapshot, line []Snapshot, app rollout.App) *headRender {
	h := p.heads[app.Name]
	if h == nil {
		h = &headRender{}
		p.heads[app.Name] = h
	}
	if commit := tree.Commit().ID; h.want != commit {
		if n := len(h.line); h.want != h.of && n > 0 && len(line) > 0 && line[0].Commit().ID == h.want {
			line = append(h.line[:n:n], line[1:]...) // append to the line that is not rendered yet
		}
		h.want, h.line = commit, line
	}
	p.queue(job{what{app, h.want, true}, tree, h.line})
	return h
}

// render returns an app at a commit, as source.Gatherer's RenderAt does.
func (p *renderCache) render(_ context.Context, app rollout.App, commit string) (*rollout.Render, error) {
	if commit == "" {
		return nil, errors.New("no commit is recorded")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.heads[app.Name]; h != nil && h.head.Render != nil && h.head.Render.Commit.ID == commit {
		return h.head.Render, nil
	}
	for i, b := range p.at[app.Name] {
		if b.commit == commit {
			copy(p.at[app.Name][1:i+1], p.at[app.Name][:i])
			p.at[app.Name][0] = b
			return b.render, b.err
		}
	}
	if why := p.gone[commit]; why != "" {
		return nil, fmt.Errorf("commit %s is %s; commit its files again to go on from it", rollout.ShortID(commit), why)
	}
	p.want(job{what: what{app: app, commit: commit}})
	return nil, fmt.Errorf("commit %s %w", rollout.ShortID(commit), source.ErrNotReady)
}

// want queues a job, or requests its commit unless that is in the mirror and known to be on the users' branch.
func (p *renderCache) want(j job) {
	if _, held := p.held(j.commit); held && p.ours[j.commit] {
		p.queue(j)
		return
	}
	if !slices.ContainsFunc(p.wants[j.commit], func(known job) bool { return known.what == j.what }) {
		p.wants[j.commit] = append(p.wants[j.commit], j)
	}
	if !p.asked[j.commit] {
		p.wanted()
	}
}

// fetch requests a commit without queuing a render. It returns false if the commit is unavailable.
func (p *renderCache) fetch(commit string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if commit == "" || p.gone[commit] != "" {
		return false
	}
	if _, isWanted := p.wants[commit]; !isWanted {
		p.wants[commit] = nil
		p.wanted()
	}
	return true
}

func (p *renderCache) queue(j job) {
	if p.known[j.what] {
		return
	}
	p.known[j.what] = true
	if p.urgent(j.app.Name) {
		p.first = append(p.first, j)
	} else {
		p.jobs = append(p.jobs, j)
	}
	p.news.Signal()
}

// missing returns the wanted commits that are to be fetched, each once.
func (p *renderCache) missing() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var commits []string
	for commit := range p.wants {
		if !p.asked[commit] {
			p.asked[commit] = true
			commits = append(commits, commit)
		}
	}
	slices.Sort(commits)
	return commits
}

const (
	lost    = "not in the repository any more (was the branch's history rewritten?)"
	foreign = "not part of the users' branch (was its history rewritten, or the record edited?)"
)

// brought handles a fetch of missing commits. Those neither gone nor outside are in the mirror and on the users'
// branch. After an error the next passes request them again.
func (p *renderCache) brought(commits, gone, outside []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, commit := range commits {
		jobs := p.wants[commit]
		delete(p.wants, commit)
		delete(p.asked, commit)
		if err != nil {
			continue
		}
		switch {
		case slices.Contains(gone, commit):
			p.gone[commit] = lost
		case slices.Contains(outside, commit): // a record or the mirror does not make a commit ours
			p.gone[commit] = foreign
		default:
			p.ours[commit] = true
		}
		for _, j := range jobs {
			if p.gone[commit] != "" {
				p.touch(j.app.Name)
				continue
			}
			p.queue(j)
		}
	}
}

// hasten moves some apps to the front of the urgent jobs, as after a restart with a thousand apps in flight.
func (p *renderCache) hasten(apps map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	others := slices.DeleteFunc(slices.Clone(p.first), func(j job) bool { return apps[j.app.Name] })
	p.first = append(slices.DeleteFunc(p.first, func(j job) bool { return !apps[j.app.Name] }), others...)
}

func (p *renderCache) forget(app string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.heads[app]; h != nil {
		p.updateOwners(app, h.head.Render, nil)
	}
	delete(p.heads, app)
	delete(p.authors, app)
	delete(p.at, app)
}

// all returns the heads that could be rendered.
func (p *renderCache) all() []*rollout.Render {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*rollout.Render
	for _, name := range sortedKeys(p.heads) {
		if r := p.heads[name].head.Render; r != nil {
			out = append(out, r)
		}
	}
	return out
}

// mostLooks is the most fetches of Git between two tries to render an app.
const mostLooks = 32

// retry queues apps whose heads could not be decrypted: their key may have arrived. Renders that failed outside the
// repository's content are retried after 1, 2, 4 … fetches.
func (p *renderCache) retry(tree Snapshot, line []Snapshot, apps []rollout.App) {
	p.mu.Lock()
	defer p.mu.Unlock()
	passes := func(b built) bool { return b.err != nil && !rollout.IsInvalid(b.err) }
	for _, app := range apps {
		h := p.heads[app.Name]
		switch {
		case h == nil:
		case rollout.ReasonOf(h.head.Err) == rollout.HeldUndecryptable:
			p.wantHead(tree, line, app)
		case !passes(built{err: h.head.Err}) && !slices.ContainsFunc(p.at[app.Name], passes):
			h.looks, h.pause = 0, 0
		case h.looks < h.pause:
			h.looks++
		default:
			h.looks, h.pause = 0, min(2*h.pause+1, mostLooks)
			p.at[app.Name] = slices.DeleteFunc(p.at[app.Name], passes)
			p.touch(app.Name)
			if passes(built{err: h.head.Err}) {
				p.wantHead(tree, line, app)
			}
		}
	}
}

// orSealed renders an app at its current or stable commit. Without its key only its Secrets stay as they are.
func (p *renderCache) orSealed(tree Snapshot, app rollout.App) (*rollout.Render, error) {
	r, err := p.reader.Render(tree, app)
	if rollout.ReasonOf(err) == rollout.HeldUndecryptable {
		app.Sealed = true
		return p.reader.Render(tree, app)
	}
	return r, err
}

// rollbackRender returns the render of a head that rolls a release back to stable, despite new rules or lost keys; else
// nil.
func (p *renderCache) rollbackRender(tree Snapshot, app rollout.App, held rollout.HeldReason) *rollout.Render {
	app.Sealed = held == rollout.HeldUndecryptable
	stable := p.stable(app.Name)
	before, here := p.held(stable)
	if stable == "" || !here {
		return nil
	}
	was, err := p.reader.Render(before, app)
	if err != nil {
		return nil
	}
	if r, err := p.reader.Render(tree, app); err == nil && r.Digest == was.Digest {
		return r
	}
	return nil
}
