package reconciler

import (
	"context"
	"maps"

	"gitrollout.dev/gitrollout/rollout"
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

// trace reads the lines that isTraced waits for. Where one cannot be had, the newest commit stays named. It reports
// whether there was anything to do.
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
		p.leads(app, v.branch.Tree, line)
	}
	return len(vague) > 0
}

// leads says which line leads to an app's head; none means that nobody knows.
func (p *renders) leads(app string, tree Snapshot, line []Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range line {
		p.ours[s.Commit().ID] = true
	}
	switch h := p.heads[app]; {
	case h == nil || h.of != tree.Commit().ID || h.of != h.want: // there is a newer one
		p.touch(app)
	case len(line) == 0:
		h.vague = false
		p.touch(app)
	default:
		h.missed = true
		p.queue(job{what{h.app, h.of, true}, tree, line})
	}
}
