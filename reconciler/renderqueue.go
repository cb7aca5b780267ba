package reconciler

import (
	"context"
	"runtime/debug"
	"slices"

	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

type what struct {
	app    rollout.App
	commit string
	head   bool
}

// job is one render to do, with the commit's tree if it is the head.
type job struct {
	what
	tree Snapshot
	line []Snapshot // leads to it from the former head
}

// work renders until close. Several may run, each on another app.
func (p *renderCache) work() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.ended {
		if !p.next() {
			p.news.Wait()
		}
	}
}

// drain renders all queued jobs in the caller's goroutine, and reports whether there were any.
func (p *renderCache) drain() (any bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.next() {
		any = true
	}
	return any
}

// next does the first job of an app without a worker, and reports whether there was one.
func (p *renderCache) next() bool {
	for _, from := range []*[]job{&p.first, &p.jobs} {
		i := slices.IndexFunc(*from, func(j job) bool { return !p.busy[j.app.Name] })
		if i < 0 {
			continue
		}
		j := (*from)[i]
		copy((*from)[1:i+1], (*from)[:i])
		*from = (*from)[1:]
		delete(p.known, j.what)
		p.busy[j.app.Name] = true
		p.mu.Unlock()
		p.do(j)
		p.mu.Lock()
		delete(p.busy, j.app.Name)
		return true
	}
	return false
}

func (p *renderCache) close() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.news.Broadcast()
}

func (p *renderCache) do(j job) {
	tree := j.tree
	if tree == nil {
		var held bool
		if tree, held = p.held(j.commit); !held { // the mirror has been renewed since
			p.mu.Lock()
			p.want(j)
			p.mu.Unlock()
			return
		}
	}
	policy := p.reader.Policy.Load() // a later policy checks the app again
	_, end := p.begin(context.Background(), report.PartRender, j.app.Name)
	made := p.build(j, tree)
	end(made.Err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.head {
		p.headIs(j, made, policy)
		return
	}
	p.keep(j.app.Name, built{j.commit, made.Render, made.Err})
	p.touch(j.app.Name)
}

// keep adds a render of an older commit, and drops the least recently used.
func (p *renderCache) keep(app string, b built) {
	all := slices.Insert(p.at[app], 0, b)
	p.at[app] = all[:min(len(all), kept)]
}

// build renders a job. A panic becomes an error of its app alone.
func (p *renderCache) build(j job, tree Snapshot) (made strategies.Head) {
	made.Commit = tree.Commit()
	defer func() {
		if problem := recover(); problem != nil {
			p.panics(j.app.Name, problem, debug.Stack())
			made.Render, made.Err = nil, panicked("render "+made.Commit.Short(), problem)
		}
	}()
	if !j.head {
		made.Render, made.Err = p.orSealed(tree, j.app)
		return made
	}
	made.Render, made.Err = p.reader.RenderHead(tree, j.app)
	switch reason := rollout.ReasonOf(made.Err); reason {
	case rollout.HeldForbidden, rollout.HeldPolicy, rollout.HeldUndecryptable:
		if back := p.rollbackRender(tree, j.app, reason); back != nil {
			made.Render, made.Err = back, nil
		}
	}
	return p.blame(j, made)
}

// headIs stores a head. An app with unchanged objects keeps the former one, with the commit that last changed it.
func (p *renderCache) headIs(j job, made strategies.Head, policy *rollout.Policy) {
	h := p.heads[j.app.Name]
	if h == nil || h.want != j.commit {
		return // forgotten meanwhile, or superseded by a newer head
	}
	traced := h.isUnblamed && h.of == j.commit && len(j.line) > 0
	was, same := h.head, h.of != "" && h.app == j.app && !traced
	switch {
	case same && made.Err != nil && was.Err != nil && was.Err.Error() == made.Err.Error():
	case same && made.Err == nil && was.Render != nil && was.Render.Digest == made.Render.Digest:
		again := *made.Render // but perhaps from other files
		again.Commit = was.Render.Commit
		h.head.Render = &again
	default:
		same = false
		if was.Render != nil { // the app stays at the old head until it follows
			p.keep(j.app.Name, built{commit: was.Render.Commit.ID, render: was.Render})
		}
		h.head, h.isUnblamed = made, len(j.line) == 0
	}
	h.of, h.app, h.policy, h.line = j.commit, j.app, policy, nil
	p.updateOwners(j.app.Name, was.Render, h.head.Render)
	if h.missed || !same {
		h.missed = false
		p.touch(j.app.Name)
	}
}
