package reconciler

import "gitrollout.dev/gitrollout/rollout"

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
