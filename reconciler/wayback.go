package reconciler

import "gitrollout.dev/gitrollout/rollout"

// wayBack is a head that takes a release in flight back to the version that is stable, nil if it does not: no rule that
// came later is in its way.
func (p *renders) wayBack(tree Snapshot, app rollout.App) *rollout.Render {
	stable := p.stable(app.Name)
	before, held := p.held(stable)
	if stable == "" || !held {
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
