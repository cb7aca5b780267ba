package reconciler

import (
	"context"
	"time"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// The tests of package reconciler_test use these names to access a reconciler's fields.

func (r *Reconciler) Apps() []string { return r.states.names() } // returns the names of the apps on record

// StateOf returns an app's recorded state. It does not read Git.
func (r *Reconciler) StateOf(app string) rollout.State { s, _ := r.states.of(app); return s.state }

func (r *Reconciler) Due(now time.Time) []string { return r.queue.due(now) } // takes the apps that are due, as a pass does

// IsFailing reports whether an app's last pass failed.
func (r *Reconciler) IsFailing(app string) bool { return !r.caches[app].failing.IsZero() }

func (r *Reconciler) Pushing() int                   { return len(r.out.pushing) } // returns the number of apps in a push
func (r *Reconciler) Look(ctx context.Context) error { return r.in.look(ctx) }     // fetches Git without a pass

// See sets the users' branch and its apps, as a fetch does.
func (r *Reconciler) See(branch *source.Branch, apps ...string) {
	v := &gitView{branch: branch, apps: map[string]*appView{}}
	for _, name := range apps {
		v.apps[name] = &appView{}
	}
	r.in.seen.Store(v)
}

// Changes reports whether a refused commit changes an app. The last three arguments are the app's present promotion file, render and error.
func Changes(reader *source.Reader, tree Snapshot, app rollout.App, p source.Promotion, at *rollout.Render, held error) bool {
	l := &poller{Options: &Options{Cluster: "prod"}, reader: reader}
	return l.changes(tree, &appView{App: app, promotion: p}, at, held)
}

var ApplyEach = applyEach // applies objects one by one

// Peers reads other clusters' records.
type Peers = peers

// NewPeers returns Peers of a users' branch.
func NewPeers(o *Options, touch func(app string), main func() Snapshot) *Peers {
	current := func() *gitView { return &gitView{branch: &source.Branch{Tree: main()}} }
	return &peers{Options: o, touch: touch, current: current,
		wanted: make(chan struct{}, 1), clusters: map[string]*peer{}, asked: map[string][]peerRecord{}}
}

func (p *peers) Of(app string) source.Peers        { return p.of(app) }      // returns the records for a new pass of an app
func (p *peers) Refresh(ctx context.Context) error { return p.refresh(ctx) } // reads Git
func (r *Reconciler) Peers() *Peers                { return r.peers }        // returns the loop's Peers

// PumpPeers runs the goroutine that reads other clusters' records. It calls touch for each app that becomes due.
func (r *Reconciler) PumpPeers(ctx context.Context, touch func(app string)) {
	r.peers.touch = touch
	r.pumpPeers(ctx)
}

// WrapPeers changes the records that a stage's gate reads. Mutation tests use it to add a defect.
func (r *Reconciler) WrapPeers(wrap func(source.Peers) source.Peers) {
	r.in.stages.peersOf = func(app string) source.Peers { return wrap(r.peers.of(app)) }
}

// Contents converts files to the edits of a commit. Content "" removes a file.
func Contents(files map[string]string) map[string][]byte {
	edits := map[string][]byte{}
	for name, content := range files {
		if edits[name] = []byte(content); content == "" {
			edits[name] = nil
		}
	}
	return edits
}
