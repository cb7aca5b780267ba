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

// renders builds apps as of commits beside everything else, so that a visit to one app waits for no other
// app's files. What is asked for and not there is source.ErrNotReady, and the app is touched when it is.
// Commits that this process does not have are wanted: one fetch brings all of them.
type renders struct {
	reader *source.Reader
	held   func(commit string) (Snapshot, bool)
	urgent func(app string) bool   // whose renders come first
	stable func(app string) string // the commit that a release in flight goes back to, "" if none is
	touch  func(app string)
	wanted func() // told that commits are wanted
	begin  func(ctx context.Context, part report.Part, app string) (context.Context, func(error))
	panics func(app string, problem any, stack []byte)

	mu    sync.Mutex
	news  *sync.Cond // a job is queued, or closed
	heads map[string]*headRender
	vague map[string]string        // the commits that apps are at whose heads are to be traced from there on
	wrote map[string]writing       // who wrote promotions that were there at the first look, by app
	named map[rollout.Ref][]string // the apps whose heads name an object
	at    map[string][]built       // by app, the one used last first
	wants map[string][]job         // by commit that is not here
	asked map[string]bool          // of these, which somebody is bringing
	ours  map[string]bool          // commits that are, or were, part of the users' branch as it is followed
	gone  map[string]string        // commits that are not to be had, until the next look, and why
	first []job                    // that are urgent
	jobs  []job
	known map[what]bool   // that are queued
	busy  map[string]bool // apps that are being rendered: the others do not wait for an app that takes long
	ended bool
}

// headRender is what the users' branch asks for of one app.
type headRender struct {
	want   string     // the commit that is the newest
	line   []Snapshot // that leads to it from of, nil if that is not known
	of     string     // the commit that it was rendered of, "" before the first
	app    rollout.App
	policy *rollout.Policy // by which it was judged
	head   strategies.Head
	missed bool // somebody has asked and was told to wait
	looks  int  // since the last try, and how many are to be between two, while it fails for a passing reason
	pause  int
	vague  bool // it names the newest commit because the line that leads to it from another one was not known
}

// writing is who wrote a promotion file, by its blob: "" if nobody knows.
type writing struct{ file, author string }

// isOf reports whether it is known what an app is as of a commit and by a policy.
func (h *headRender) isOf(tree Snapshot, app rollout.App, policy *rollout.Policy) bool {
	return h != nil && h.of == tree.Commit().ID && h.app == app && h.policy == policy
}

// built is an app as of a commit, or why it cannot be had.
type built struct {
	commit string
	render *rollout.Render
	err    error
}

// kept is how many renders of older commits are kept for each app, those that were used last: stable, the release,
// and what superseded it. What a release goes back to is used at each visit, and so is not dropped for heads
// that came and went.
const kept = 4

// mostOurs bounds how many commits are known to be part of the users' branch. What is forgotten is looked up again.
const mostOurs = 20_000

func newRenders(o *Options, reader *source.Reader) *renders {
	p := &renders{
		reader: reader, begin: o.begin,
		heads: map[string]*headRender{}, vague: map[string]string{}, wrote: map[string]writing{},
		named: map[rollout.Ref][]string{}, at: map[string][]built{},
		wants: map[string][]job{}, asked: map[string]bool{}, ours: map[string]bool{}, gone: map[string]string{},
		known: map[what]bool{}, busy: map[string]bool{},
	}
	p.news = sync.NewCond(&p.mu)
	return p
}

// head is what the users' branch asks for of an app. It is not ready while the newest commit is still to
// be rendered: what an older one says is no reason to advance any more, nor to go back.
func (p *renders) head(v *view, app rollout.App) (head strategies.Head, ready bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tree := v.branch.Tree
	app.Formerly = "" // the head has it by its name
	h := p.heads[app.Name]
	if h.isOf(tree, app, p.reader.Policy.Load()) {
		return h.head, true
	}
	p.wantHead(tree, v.line, app).missed = true
	return strategies.Head{Commit: tree.Commit()}, false
}

// look has the heads of apps rendered as of a commit. An app is touched if that makes a difference to it.
func (p *renders) look(tree Snapshot, line []Snapshot, apps []rollout.App) {
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

// prepare has what apps are at rendered, so that all commits that are not here are brought by one fetch: those first on
// which users depend now.
func (p *renders) prepare(record *record, v *view, apps []string) {
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

func (p *renders) wantHead(tree Snapshot, line []Snapshot, app rollout.App) *headRender {
	h := p.heads[app.Name]
	if h == nil {
		h = &headRender{}
		p.heads[app.Name] = h
	}
	if commit := tree.Commit().ID; h.want != commit {
		if n := len(h.line); h.want != h.of && n > 0 && len(line) > 0 && line[0].Commit().ID == h.want {
			line = append(h.line[:n:n], line[1:]...) // the one before is overtaken
		}
		h.want, h.line = commit, line
	}
	p.queue(job{what{app, h.want, true}, tree, h.line})
	return h
}

// render returns an app as of a commit, as source.Gatherer's RenderAt does.
func (p *renders) render(_ context.Context, app rollout.App, commit string) (*rollout.Render, error) {
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

// want queues a job, or the wish for its commit, also of one that is here and was not seen on the users' branch.
func (p *renders) want(j job) {
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

// fetch has a commit brought of which nothing is rendered.
func (p *renders) fetch(commit string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, isWanted := p.wants[commit]; isWanted || commit == "" || p.gone[commit] != "" {
		return
	}
	p.wants[commit] = nil
	p.wanted()
}

func (p *renders) queue(j job) {
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

// missing are the commits that are to be brought, and is told of each once.
func (p *renders) missing() []string {
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

// Why a commit is not to be had.
const (
	lost    = "not in the repository any more (was the branch's history rewritten?)"
	foreign = "not part of the users' branch (was its history rewritten, or the record by somebody else?)"
)

// brought says what has become of commits that were missing: those that are neither gone nor outside are here, and of
// the users' branch. After an error nobody knows, and they are asked for again by whoever still wants them.
func (p *renders) brought(commits, gone, outside []string, err error) {
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
		case slices.Contains(outside, commit): // that a record names it, or that it is here, does not make it ours
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

// hasten has some apps rendered before all others, after a restart among a thousand that are in flight.
func (p *renders) hasten(apps map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	others := slices.DeleteFunc(slices.Clone(p.first), func(j job) bool { return apps[j.app.Name] })
	p.first = append(slices.DeleteFunc(p.first, func(j job) bool { return !apps[j.app.Name] }), others...)
}

// forget drops what is known of an app that is no more.
func (p *renders) forget(app string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.heads[app]; h != nil {
		p.claims(app, h.head.Render, nil)
	}
	delete(p.heads, app)
	delete(p.wrote, app)
	delete(p.at, app)
}

// all are the heads that could be rendered.
func (p *renders) all() []*rollout.Render {
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

// mostLooks is the most looks at Git between two tries to render an app.
const mostLooks = 32

// retry has apps rendered again whose heads could not be decrypted: the key may have come. Renders that failed for
// another reason than the content of the repository are tried again after 1, 2, 4 … looks.
func (p *renders) retry(tree Snapshot, line []Snapshot, apps []rollout.App) {
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

// orSealed renders an app as of a commit that it is at, or goes back to. Where its key is gone it is rendered without:
// its Secrets stay as they are in the cluster, and all else goes on.
func (p *renders) orSealed(tree Snapshot, app rollout.App) (*rollout.Render, error) {
	r, err := p.reader.Render(tree, app)
	if rollout.ReasonOf(err) == rollout.HeldUndecryptable {
		app.Sealed = true
		return p.reader.Render(tree, app)
	}
	return r, err
}

// wayBack is a head that takes a release in flight back to the version that is stable, nil if it does not: no rule that
// came later is in its way, and no key that has gone.
func (p *renders) wayBack(tree Snapshot, app rollout.App, held rollout.HeldReason) *rollout.Render {
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
