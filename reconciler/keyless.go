package reconciler

import "gitrollout.dev/gitrollout/rollout"

// retry has the heads rendered again that could not be decrypted: the key may have come.
func (p *renders) retry(tree Snapshot, line []Snapshot, apps []rollout.App) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, app := range apps {
		if h := p.heads[app.Name]; h != nil && rollout.ReasonOf(h.head.Err) == rollout.HeldUndecryptable {
			p.wantHead(tree, line, app)
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
