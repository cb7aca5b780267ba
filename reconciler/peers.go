package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// peers holds the records of other clusters while apps wait for these records. Passes only ask; refresh reads Git.
type peers struct {
	*Options
	current func() *gitView
	touch   func(app string)
	wanted  chan struct{} // a refresh

	mu       sync.Mutex
	clusters map[string]*peer
	asked    map[string][]peerRecord // by waiting app
}

type peerRecord struct{ cluster, app string }

// peer is another cluster's state branch.
type peer struct {
	reader       *source.Reader
	branch, head string
	tree         Snapshot // nil with err
	err          error    // source.ErrNotReady before the first refresh
	owner        rollout.Cluster
	states       map[string]peerState // by app, as last read
}

type peerState struct {
	id    string // blob id; "" without a state file
	state rollout.State
	err   error
}

// of returns the records of other clusters for one app, whose earlier questions it drops. When a record changes that
// the app has read, the app becomes due.
func (p *peers) of(app string) source.Peers {
	p.forget(app)
	return recordsFor{p, app}
}

func (p *peers) forget(app string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.asked, app)
}

type recordsFor struct {
	*peers
	app string
}

// States implements source.Peers. It also returns an error if the record of this app is unreadable.
func (r recordsFor) States(cluster string) (func(app string) (rollout.State, bool), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Options.Peers == nil {
		return nil, errors.New("this process reads no state branches of other clusters")
	}
	k := r.clusters[cluster]
	if k == nil {
		k = &peer{
			reader: source.NewReader(cluster, nil), states: map[string]peerState{},
			err: fmt.Errorf("the state branch of cluster %s %w", cluster, source.ErrNotReady),
		}
		r.clusters[cluster] = k
		offer(r.wanted, struct{}{})
	}
	own := r.ask(k, peerRecord{cluster, r.app})
	if err := errors.Join(k.err, own.err); err != nil {
		return nil, err
	}
	return func(app string) (rollout.State, bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		s := r.ask(k, peerRecord{cluster, app})
		if s.err != nil || k.err != nil {
			return rollout.State{App: app}, true // "false" would mean that the cluster lacks the app
		}
		return s.state, s.id != ""
	}, nil
}

func (r recordsFor) ask(k *peer, of peerRecord) peerState {
	if !slices.Contains(r.asked[r.app], of) {
		r.asked[r.app] = append(r.asked[r.app], of)
	}
	if k.err == nil {
		k.states[of.app] = k.read(of.app)
	}
	return k.states[of.app]
}

// read parses a state file again only after a change.
func (k *peer) read(app string) peerState {
	was := k.states[app]
	file := rollout.StatePath(app)
	entry, found, err := k.tree.Lookup(file)
	next := peerState{id: entry.ID}
	switch {
	case err == nil && was.err == nil && (!found || was.id == entry.ID):
		if !found {
			return next
		}
		return was
	case err == nil && !found:
		return next
	case err == nil:
		var data []byte
		if data, err = k.tree.ReadBlob(entry.ID); err == nil {
			next.state, err = stateIn(file, data)
		}
	}
	switch {
	case err != nil:
		next.state, next.err = was.state, k.problem(err.Error(), "")
	case next.state.Serial < was.state.Serial:
		next.state, next.err = was.state, k.rewritten(fmt.Sprintf("the serial of %s was %d and is %d", app,
			was.state.Serial, next.state.Serial))
	}
	return next
}

func stateIn(file string, data []byte) (rollout.State, error) {
	s, err := rollout.ParseState(file, data)
	if err != nil {
		return rollout.State{}, err
	}
	return *s, nil
}

func (k *peer) problem(what, fix string) error {
	return &rollout.InvalidError{File: "state branch " + k.branch, Msg: what, Fix: fix}
}

func (k *peer) rewritten(how string) error {
	return k.problem("was rewritten: "+how, "restore commit "+k.head+" with git push --force, or restart this gitrollout")
}

// refresh looks up the state branches for which apps wait, in one request, and makes apps due whose answers changed.
// Only one goroutine calls refresh.
func (p *peers) refresh(ctx context.Context) error {
	v := p.current()
	known := p.known(v)
	if len(known) == 0 {
		return nil
	}
	branches := map[string]string{}
	for _, k := range known {
		if k.branch != "" {
			branches[k.branch] = k.head
		}
	}
	heads, err := p.Options.Peers.Branches(ctx, branches)
	Heartbeat(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cluster := range sortedKeys(known) {
		k, was := p.clusters[cluster], *p.clusters[cluster]
		k.tree, k.err = nil, known[cluster].err
		if k.branch = known[cluster].branch; k.err == nil {
			k.err = p.take(cluster, k, heads[k.branch], err)
		}
		p.wake(cluster, was, k)
	}
	return err
}

// known drops clusters for which no app waits, and returns copies of the others with their branches' names.
func (p *peers) known(v *gitView) map[string]peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	waited := map[string]bool{}
	for _, asked := range p.asked {
		for _, of := range asked {
			waited[of.cluster] = true
		}
	}
	known := map[string]peer{}
	for cluster, k := range p.clusters {
		if !waited[cluster] {
			delete(p.clusters, cluster)
			continue
		}
		next := *k
		config, err := k.reader.ConfigAt(v.branch.Tree)
		if next.branch, next.err = "", err; err == nil {
			next.branch = config.StateBranch
		}
		known[cluster] = next
	}
	return known
}

// take checks a state branch's head. unread is the error of the look-up.
func (p *peers) take(cluster string, k *peer, head string, unread error) error {
	if unread != nil {
		return fmt.Errorf("state branch %s cannot be read: %w", k.branch, unread)
	}
	if head == "" {
		return k.problem("does not exist", "run gitrollout in cluster "+cluster+", or take the cluster out of its stage")
	}
	tree, held := p.Options.Peers.Held(head)
	if !held {
		return k.problem("commit "+rollout.ShortID(head)+" was fetched, but the mirror lacks it", "")
	}
	if p.BelievePeer != nil {
		if err := p.BelievePeer(cluster, tree); err != nil {
			return k.problem(fmt.Sprintf("commit %s is not signed by cluster %s: %v", rollout.ShortID(head), cluster, err),
				"run gitrollout in that cluster with --signing-key and --verify-state, and add its key to the file of --verify-fleet")
		}
	}
	states, err := source.ReadStates(tree)
	if err != nil {
		return k.problem(err.Error(), "")
	}
	switch owner := states.Cluster; {
	case owner == nil:
		return k.problem("has no "+rollout.ClusterPath, "")
	case owner.Cluster != cluster:
		return k.problem("belongs to cluster "+owner.Cluster+", not "+cluster, "set stateBranch in "+rollout.ConfigPath(cluster))
	case owner.UID != k.owner.UID:
		clear(k.states) // another cluster under this name counts its serials anew
	case owner.Writer.Epoch < k.owner.Writer.Epoch:
		return k.rewritten(fmt.Sprintf("the writer's epoch was %d and is %d", k.owner.Writer.Epoch, owner.Writer.Epoch))
	}
	k.head, k.tree, k.owner = head, tree, *states.Cluster
	return nil
}

// wake makes the apps due that have read another answer.
func (p *peers) wake(cluster string, was peer, k *peer) {
	isSame := (was.err == nil) == (k.err == nil) && (k.err == nil || rollout.SameText(was.err.Error(), k.err.Error()))
	if isSame && k.err != nil {
		k.err = was.err // the server's message changes with each try
	}
	if isSame && was.head == k.head {
		return
	}
	for app, asked := range p.asked {
		if slices.ContainsFunc(asked, func(of peerRecord) bool {
			return of.cluster == cluster && (!isSame || k.read(of.app).id != k.states[of.app].id)
		}) {
			p.touch(app)
		}
	}
}

// poll requests a refresh if an app waits.
func (p *peers) poll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) > 0 || len(p.clusters) > 0 {
		offer(p.wanted, struct{}{})
	}
}

// pump refreshes after requests, at most once in pollSpacing.
func (p *peers) pump(ctx context.Context, during func(what string, do func(context.Context) error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wanted:
		}
		during("state branches of other clusters", p.refresh)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pollSpacing):
		}
	}
}
