package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// blame returns a head with the commit that last changed it among several of one push. A revert undoes that commit,
// and its author is the release's. An error has no commit if that is unknown.
func (p *renderCache) blame(j job, head strategies.Head) strategies.Head {
	if head.Err != nil {
		head.Commit = rollout.Commit{}
	}
	i := len(j.line) - 2
	for i >= 0 && p.isAsBefore(j.line[i], j.app, head) {
		i--
	}
	if i < 0 {
		return head
	}
	head.Commit = j.line[i+1].Commit()
	if head.Render != nil {
		named := *head.Render
		named.Commit, head.Render = head.Commit, &named
	}
	return head
}

// isAsBefore reports whether a commit renders an app like a later head, or with the same error.
func (p *renderCache) isAsBefore(tree Snapshot, app rollout.App, head strategies.Head) bool {
	if head.Err == nil {
		before, err := p.reader.Render(tree, app)
		return err == nil && before.Digest == head.Render.Digest
	}
	_, err := p.reader.RenderHead(tree, p.reader.AppAt(tree, app))
	return err != nil && err.Error() == head.Err.Error()
}

// isBlamed reports whether an app's head names the commit that last changed it, as far as can be known. A process
// lacks commits before its first fetch: it requests them when the app follows the head or is held at it.
func (p *renderCache) isBlamed(app, from, main string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.heads[app]; h == nil || !h.isUnblamed || h.of != main {
		return true
	}
	p.unblamed[app] = from
	p.wanted()
	return false
}

// follows reports whether a decision moves an app from its commit to the head.
func (s *transition) follows() bool {
	next, head := s.decision.State.Source, s.input.Head.Render
	isNext := head != nil && next == head.Commit.ID
	return !s.decision.Rollback && s.before.Source != "" && next != s.before.Source && isNext
}

// isHeldAtHead reports whether a decision newly holds an applied app because of its head.
func (s *transition) isHeldAtHead() bool {
	held := s.decision.State.Held
	return held != nil && held != s.before.Held && s.before.Source != "" && held.Commit == s.input.Head.Commit.ID
}

// withAuthor returns an app's promotion with its author. A process that started after it reads the author from history,
// from the app's commit on. Until then there is none, and an error blocks everything but a rollback.
func (p *renderCache) withAuthor(a *appView, in strategies.Input) (*rollout.Promotion, error) {
	s, file, head := in.State, in.Promotion, in.Head.Render
	awaited := head != nil && head.Release() == file.Release && (s.Stable == nil || s.Stable.Hash != file.Release)
	if file.Author != "" || s.Source == "" || !awaited && (s.Release == nil || s.Release.Hash != file.Release) {
		return file, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if by := p.authors[a.Name]; by.file == a.promotion.ID {
		named := *file
		named.Author = by.author
		return &named, nil
	}
	p.unblamed[a.Name] = s.Source
	p.wanted()
	return file, fmt.Errorf("who wrote %s %w", a.promotion.Path, source.ErrNotReady)
}

// changed returns the newest commit of a line that changed any path, zero if none. The first commit is not examined.
func changed(line []Snapshot, paths ...string) rollout.Commit {
	for i := len(line) - 1; i > 0; i-- {
		for _, name := range paths {
			is, _, err := line[i].Lookup(name)
			was, _, errBefore := line[i-1].Lookup(name)
			if err != nil || errBefore != nil || is.ID != was.ID {
				return line[i].Commit()
			}
		}
	}
	return rollout.Commit{}
}

// readHistory reads the history for isTraced and signed, if any, and reports it. Without it the newest commit is named.
func (l *poller) readHistory(ctx context.Context, v *gitView) (any bool) {
	p := l.renders
	p.mu.Lock()
	vague := maps.Clone(p.unblamed)
	clear(p.unblamed)
	p.mu.Unlock()
	for _, app := range sortedKeys(vague) {
		line, err := l.Past.Between(ctx, vague[app], v.main())
		Heartbeat(ctx)
		if err != nil {
			line = nil
		}
		p.setHistory(app, v, line)
	}
	return len(vague) > 0
}

// setHistory sets the history that leads to an app's head and its promotion; empty if unknown.
func (p *renderCache) setHistory(app string, v *gitView, line []Snapshot) {
	tree := v.branch.Tree
	p.mu.Lock()
	defer p.mu.Unlock()
	file := v.promotionOf(app)
	p.authors[app] = authorship{file.ID, cmp.Or(changed(line, file.Path), tree.Commit()).Author}
	for _, s := range line {
		p.ours[s.Commit().ID] = true
	}
	switch h := p.heads[app]; {
	case h == nil || h.of != tree.Commit().ID || h.of != h.want: // there is a newer head
		p.touch(app)
	case len(line) == 0:
		h.isUnblamed = false
		p.touch(app)
	case !h.isUnblamed:
		p.touch(app)
	default:
		h.missed = true
		p.queue(job{what{h.app, h.of, true}, tree, line})
	}
}
