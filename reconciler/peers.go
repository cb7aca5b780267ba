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

// peers holds the records of other clusters for waiting apps. A pass only asks for them, and the method refresh reads
// Git.
type peers struct {
	*Options
	current func() *gitView
	touch   func(app string)
	wanted  chan struct{}

	mu       sync.Mutex
	clusters map[string]*peer
	asked    map[string][]peerRecord // by waiting app
}

type peerRecord struct{ cluster, app string }

type peer struct {
	reader       *source.Reader
	repo, branch string // repo: "" for the users' repository
	head         string
	owner        rollout.Cluster
	tree         Snapshot // nil if err is set
	err          error
	states       map[string]peerState // by app; nil while no app waits
}

type peerState struct {
	id    string // blob id; "" without a state file
	state rollout.State
	err   error
}

func unread(cluster string) error {
	return fmt.Errorf("the state branch of cluster %s %w", cluster, source.ErrNotReady)
}

// of returns other clusters' records for an app, and drops the app's earlier questions. If a record that the app reads
// changes, the app becomes due.
func (p *peers) of(app string) source.Peers {
	p.forget(app)
	return recordsFor{p, app}
}

func (p *peers) forget(app string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.asked, app)
}

func (p *peers) waiting() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return sortedKeys(p.asked)
}

type recordsFor struct {
	*peers
	app string
}

// States implements source.Peers. It also fails if the other cluster's record of r.app is unreadable.
func (r recordsFor) States(cluster string) (func(app string) (rollout.State, bool), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Options.Branches == nil {
		return nil, errors.New("this process reads no state branches of other clusters")
	}
	k := r.clusters[cluster]
	if k == nil {
		k = &peer{reader: source.NewReader(cluster, nil), err: unread(cluster)}
		r.clusters[cluster] = k
	}
	if k.states == nil {
		k.states = map[string]peerState{}
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

func (k *peer) read(app string) peerState {
	was, file := k.states[app], rollout.StatePath(app)
	entry, found, err := k.tree.Lookup(file)
	switch {
	case err == nil && !found:
		return peerState{}
	case err == nil && was.err == nil && was.id == entry.ID:
		return was
	}
	next := peerState{id: entry.ID, state: was.state}
	data, err := k.tree.ReadBlob(entry.ID)
	var is *rollout.State
	if err == nil {
		is, err = rollout.ParseState(file, data)
	}
	switch {
	case err != nil:
		next.err = k.problem(err.Error(), "")
	case is.Serial < was.state.Serial:
		next.err = k.rewritten(fmt.Sprintf("the serial of %s was %d and is %d", app, was.state.Serial, is.Serial))
	default:
		next.state = *is
	}
	return next
}

func (k *peer) problem(what, fix string) error {
	return &rollout.InvalidError{File: "state branch " + k.branch, Msg: what, Fix: fix}
}

func (k *peer) rewritten(how string) error {
	return k.problem("was rewritten: "+how, "restore its former commit with git push --force, or restart this gitrollout")
}

// refresh looks up the awaited state branches, in one request for each repository. It makes apps with changed answers
// due. Only one goroutine calls refresh.
func (p *peers) refresh(ctx context.Context) (err error) {
	known := p.known()
	branches := map[string]map[string]string{} // heads by repository and branch
	for _, k := range known {
		if k.err != nil {
			continue
		}
		if branches[k.repo] == nil {
			branches[k.repo] = map[string]string{}
		}
		branches[k.repo][k.branch] = k.head
	}
	failed := map[string]error{}
	for _, repo := range sortedKeys(branches) {
		branches[repo], failed[repo] = p.Options.Branches.Branches(ctx, repo, branches[repo])
		err = errors.Join(err, failed[repo])
		Heartbeat(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cluster := range sortedKeys(known) {
		k, was, now := p.clusters[cluster], *p.clusters[cluster], known[cluster]
		k.repo, k.branch, k.tree, k.err = now.repo, now.branch, nil, now.err
		if k.err == nil {
			k.err = p.take(cluster, k, branches[k.repo][k.branch], failed[k.repo])
		}
		p.wake(cluster, was, k)
	}
	return err
}

// known drops the records of peers that no app asks about. It returns copies of the other peers, with the repository
// and branch from each cluster's configuration.
func (p *peers) known() map[string]peer {
	v := p.current()
	p.mu.Lock()
	defer p.mu.Unlock()
	waited, known := map[string]bool{}, map[string]peer{}
	for _, asked := range p.asked {
		for _, of := range asked {
			waited[of.cluster] = true
		}
	}
	for cluster, k := range p.clusters {
		if !waited[cluster] {
			k.tree, k.states, k.owner, k.err = nil, nil, rollout.Cluster{}, unread(cluster)
			continue
		}
		if k.states == nil { // an app called the function that States returned earlier
			k.states = map[string]peerState{}
		}
		next := *k
		config, err := k.reader.ConfigAt(v.branch.Tree)
		if next.err = err; err == nil {
			next.repo, next.branch = config.StateRepo, config.StateBranch
		} else if invalid, is := errors.AsType[*rollout.InvalidError](err); is {
			invalid.Fix = "correct the file, or take cluster " + cluster + " out of its stage"
		}
		known[cluster] = next
	}
	return known
}

func (p *peers) take(cluster string, k *peer, head string, failed error) error {
	if failed != nil {
		return fmt.Errorf("state branch %s cannot be read: %w", k.branch, failed)
	}
	if head == "" {
		return fmt.Errorf("state branch %s: %w; run gitrollout in cluster %s, or take the cluster out of its stage",
			k.branch, source.ErrNoBranch, cluster)
	}
	tree, held := p.Options.Branches.Held(head)
	if !held {
		return k.problem("commit "+rollout.ShortID(head)+" was fetched, but the mirror lacks it", "")
	}
	if p.BelievePeer != nil {
		if err := p.BelievePeer(cluster, tree); err != nil {
			return k.problem(fmt.Sprintf("commit %s is not signed by cluster %s: %v", rollout.ShortID(head), cluster, err),
				"run gitrollout there with --signing-key and --verify-state, and add its key to the file of --verify-fleet")
		}
	}
	owner, err := &k.owner, error(nil)
	if head != k.head || owner.Cluster == "" {
		owner, err = source.ReadCluster(tree)
	}
	switch {
	case err != nil:
		return k.problem(err.Error(), "")
	case owner == nil:
		return k.problem("has no "+rollout.ClusterPath, "")
	case owner.Cluster != cluster:
		return k.problem("belongs to cluster "+owner.Cluster+", not "+cluster,
			"set stateBranch in "+rollout.ConfigPath(cluster))
	case owner.UID == k.owner.UID && owner.Writer.Epoch < k.owner.Writer.Epoch:
		return k.rewritten(fmt.Sprintf("the writer's epoch was %d and is %d", k.owner.Writer.Epoch, owner.Writer.Epoch))
	case owner.UID != k.owner.UID:
		clear(k.states) // a recreated cluster counts its serials from the start
		fallthrough
	default:
		k.head, k.tree, k.owner = head, tree, *owner
	}
	return nil
}

func (p *peers) wake(cluster string, was peer, k *peer) {
	isSame := (was.err == nil) == (k.err == nil) && (k.err == nil || rollout.SameText(was.err.Error(), k.err.Error()))
	switch {
	case isSame && k.err != nil:
		k.err = was.err // the server words the same problem differently each time
		return
	case isSame && was.head == k.head:
		return
	}
	for app, asked := range p.asked {
		if slices.ContainsFunc(asked, func(of peerRecord) bool {
			return of.cluster == cluster && (!isSame || k.isNew(of.app))
		}) {
			p.touch(app)
		}
	}
}

func (k *peer) isNew(app string) bool {
	entry, found, err := k.tree.Lookup(rollout.StatePath(app))
	return err != nil || found != (k.states[app].id != "") || found && entry.ID != k.states[app].id
}

func (p *peers) answer(ctx context.Context) (any bool, err error) {
	select {
	case <-p.wanted:
		return true, p.refresh(ctx)
	default:
		return false, nil
	}
}

func (r *Reconciler) pumpPeers(ctx context.Context) {
	const what = "state branches of other clusters"
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.peers.wanted:
		}
		select { // wait, so that one request looks up all branches
		case <-ctx.Done():
			return
		case <-time.After(gathering):
		}
		err := r.watchdog.during(ctx, what, r.peers.refresh)
		if ctx.Err() == nil {
			r.errorLog.about(what, err)
		}
	}
}
