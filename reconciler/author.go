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

// since is a head with the commit that made it what it is, where several were pushed at once: that is the one
// to be reverted, and its author released it.
func (p *renders) since(j job, r *rollout.Render) *rollout.Render {
	for i := len(j.line) - 2; i >= 0; i-- {
		before, err := p.reader.Render(j.line[i], j.app)
		if err == nil && before.Digest == r.Digest {
			continue
		}
		named := *r
		named.Commit = j.line[i+1].Commit()
		return &named
	}
	return r
}

// isTraced reports whether an app's head names the commit that made it what it is, or nobody can know better. What a
// process sees first has no line that leads to it: it is read, from the commit on that the app is at, once the app is
// to follow the head, and the app is touched then.
func (p *renders) isTraced(app, from string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.heads[app]; h == nil || !h.vague {
		return true
	}
	p.vague[app] = from
	p.wanted()
	return false
}

// signed is an app's promotion in the name of who wrote it. Where it concerns the release in flight, or the one that
// Git asks for, a process that has not seen it come reads who that was, from the commit on that the app is at, and
// touches the app then. Until that is known it is nobody's, with an error that holds up all but a retreat.
func (p *renders) signed(a *appView, in strategies.Input) (*rollout.Promotion, error) {
	s, file, head := in.State, in.Promotion, in.Head.Render
	awaited := head != nil && head.Release() == file.Release && s.Stable != nil && s.Stable.Hash != file.Release
	if file.Author != "" || s.Source == "" || !awaited && (s.Release == nil || s.Release.Hash != file.Release) {
		return file, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if by := p.wrote[a.Name]; by.file == a.promotion.ID {
		named := *file
		named.Author = by.author
		return &named, nil
	}
	p.vague[a.Name] = s.Source
	p.wanted()
	return file, fmt.Errorf("who wrote %s %w", a.promotion.Path, source.ErrNotReady)
}

// writer is the author of the commit that wrote a promotion file as it is, "" if no commit of a line did but perhaps
// the first.
func writer(line []Snapshot, p source.Promotion) string {
	for i := len(line) - 1; i > 0; i-- {
		if e, found, err := line[i-1].Lookup(p.Path); err != nil || !found || e.ID != p.ID {
			return line[i].Commit().Author
		}
	}
	return ""
}

// trace reads the lines that isTraced and signed wait for. Where one cannot be had, the newest commit is named. It
// reports whether there was anything to do.
func (l *lookout) trace(ctx context.Context, v *view) (any bool) {
	p := l.renders
	p.mu.Lock()
	vague := maps.Clone(p.vague)
	clear(p.vague)
	p.mu.Unlock()
	for _, app := range sortedKeys(vague) {
		line, err := l.Past.Between(ctx, vague[app], v.main())
		Beat(ctx)
		if err != nil {
			line = nil
		}
		p.leads(app, v, line)
	}
	return len(vague) > 0
}

// leads says which line leads to an app's head and its promotion; none means that nobody knows.
func (p *renders) leads(app string, v *view, line []Snapshot) {
	tree := v.branch.Tree
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrote[app] = writing{v.promotionOf(app).ID, cmp.Or(writer(line, v.promotionOf(app)), tree.Commit().Author)}
	for _, s := range line {
		p.ours[s.Commit().ID] = true
	}
	switch h := p.heads[app]; {
	case h == nil || h.of != tree.Commit().ID || h.of != h.want: // there is a newer one
		p.touch(app)
	case len(line) == 0:
		h.vague = false
		p.touch(app)
	case !h.vague:
		p.touch(app)
	default:
		h.missed = true
		p.queue(job{what{h.app, h.of, true}, tree, line})
	}
}
