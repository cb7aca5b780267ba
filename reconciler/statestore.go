package reconciler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// stateStore holds the last read or pushed state branch. Any goroutine may use it.
type stateStore struct {
	*Options

	mu        sync.Mutex
	isKnown   bool
	head      string
	pushes    int               // number of starts and ends of pushes
	isPushing bool              // if set, a fetch may be outdated
	proposals map[string]string // by branch
	apps      map[string]appState
	failed    map[string]bool // apps with an err
	writer    rollout.Writer  // from cluster.yaml
	version   string          // from cluster.yaml
	epoch     int             // of this process; 0 before its first commit
}

type appState struct {
	state rollout.State
	id    string // blob id at the last read
	err   error  // if the file is unreadable, the app is not changed
}

func (r *stateStore) of(app string) (e appState, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.apps[app], r.isKnown
}

func (r *stateStore) isInFlight(app string) bool {
	e, _ := r.of(app)
	return e.state.Release != nil || e.state.Phase == rollout.Aborting
}

func (r *stateStore) isOfAnother(app string, ref rollout.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, e := range r.apps {
		if name != app && slices.Contains(e.state.Inventory, ref) {
			return true
		}
	}
	return false
}

func (r *stateStore) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sortedKeys(r.apps)
}

func (r *stateStore) at() (head string, pushes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.head, r.pushes
}

// proposed returns an immutable map of proposals.
func (r *stateStore) proposed() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.proposals
}

func (r *stateStore) isProposed(branch string) string { return r.proposed()[branch] }

func (r *stateStore) setProposals(updates []rollout.Update, commits map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := maps.Clone(r.proposals)
	for _, u := range updates {
		if next[u.Branch] = commits[u.Branch]; next[u.Branch] == "" {
			delete(next, u.Branch)
		}
	}
	r.proposals = next
}

// read stores the proposals and the changed state files of a fetch, and returns the changed apps. "pushes" is r.pushes
// before the fetch. If r.pushes changed or a push is running, read ignores the outdated fetch.
func (r *stateStore) read(heads rollout.Heads, pushes int, states *source.States) (touched []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pushes != pushes || r.isPushing {
		return nil, nil
	}
	if heads.Proposals != nil {
		touched = r.ownersOf(heads.Proposals, r.proposals)
		r.proposals = heads.Proposals
	}
	if states == nil {
		return touched, nil
	}
	if err := r.check(states.Cluster); err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(states.Files) {
		if r.apps[name].id != states.Files[name] && r.readState(states, name) {
			touched = append(touched, name)
		}
	}
	for _, name := range sortedKeys(r.apps) {
		if states.Files[name] == "" {
			delete(r.apps, name)
			touched = append(touched, name)
		}
	}
	r.head, r.isKnown = heads.State, true
	return touched, nil
}

// ownersOf returns the recorded apps with proposals that are new or changed since "before".
func (r *stateStore) ownersOf(proposals, before map[string]string) (apps []string) {
	if maps.Equal(proposals, before) {
		return nil
	}
	isNew := func(branch string) bool { return proposals[branch] != "" && proposals[branch] != before[branch] }
	for name, e := range r.apps {
		joint := rollout.JointBranch(r.Cluster, propose.Awaits(&e.state, nil))
		if slices.ContainsFunc(append(rollout.ProposalBranches(r.Cluster, name), joint), isNew) {
			apps = append(apps, name)
		}
	}
	return apps
}

// awaiting returns the apps that await an approval, by joint branch. For an app in "all", the transition's state
// counts, not the record.
func (r *stateStore) awaiting(v *gitView, all []transition) map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	groups, next := map[string][]string{}, map[string]*rollout.State{}
	for i := range all {
		next[all[i].app.Name] = &all[i].decision.State
	}
	for app, e := range r.apps {
		if commit := propose.Awaits(cmp.Or(next[app], &e.state), v.promotionOf(app).File); commit != "" {
			branch := rollout.JointBranch(r.Cluster, commit)
			groups[branch] = append(groups[branch], app)
		}
	}
	return groups
}

func (r *stateStore) proposers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ownersOf(r.proposals, nil)
}

func (r *stateStore) readState(states *source.States, name string) bool {
	was, id := r.apps[name], states.Files[name]
	s, err := states.Of(name)
	if err != nil {
		r.apps[name], r.failed[name] = appState{was.state, id, err}, true
		r.Log.Error("app is left alone: its state cannot be read", "app", name, "error", err)
		return true
	}
	r.apps[name] = appState{state: s, id: id}
	return was.err != nil || !s.Equal(&was.state) // false if this process wrote the state
}

func (r *stateStore) check(c *rollout.Cluster) error {
	if c == nil {
		return nil
	}
	if c.Cluster != r.Cluster || c.UID != r.UID {
		return &rollout.InvalidError{File: rollout.ClusterPath, Field: "uid", Msg: fmt.Sprintf(
			"the state branch is for cluster %s (%s), but this cluster is %s (%s)", c.Cluster, c.UID, r.Cluster, r.UID),
			Fix: "choose that cluster with --context and the same --namespaces, " +
				"or, if that cluster no longer exists: gitrollout state adopt",
		}
	}
	r.version = c.APIVersion
	return r.noteWriter(c.Writer)
}

// noteWriter checks whether another process has taken over the state branch. Two writers are safe, because a push fails
// if its expected head is outdated.
func (r *stateStore) noteWriter(w rollout.Writer) error {
	taken := r.epoch > 0 && w.Epoch > r.epoch && w.ID != r.Writer
	r.writer = w
	switch {
	case !taken:
		return nil
	case r.Exclusive:
		return fmt.Errorf("%w: %s has written to the state branch since epoch %d; this process is %s with epoch %d",
			ErrDeposed, w.ID, w.Epoch, r.Writer, r.epoch)
	default:
		r.Log.Warn("another gitrollout process also writes to the state branch: run one process, "+
			"or several with --leader-elect", "writer", w.ID, "epoch", w.Epoch, "this", r.Writer)
		r.epoch = 0 // the next commit takes over again
		return nil
	}
}

// nextWriter returns this process as writer. If the last writer was another process, the epoch increases.
func (r *stateStore) nextWriter() rollout.Writer {
	switch {
	case r.epoch > 0:
		return rollout.Writer{ID: r.Writer, Epoch: r.epoch}
	case r.writer.ID == r.Writer && r.writer.Epoch > 0:
		return r.writer
	}
	return rollout.Writer{ID: r.Writer, Epoch: r.writer.Epoch + 1}
}

type draft struct {
	head    string
	writer  rollout.Writer
	version string // of cluster.yaml
}

func (r *stateStore) draft() draft {
	r.mu.Lock()
	defer r.mu.Unlock()
	return draft{head: r.head, writer: r.nextWriter(), version: r.version}
}

func (r *stateStore) begin() (end func()) {
	note := func(is bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.pushes++
		r.isPushing = is
	}
	note(true)
	return func() { note(false) }
}

func (r *stateStore) setRecorded(on draft, head string, states map[string]rollout.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.head, r.writer, r.epoch, r.version = head, on.writer, on.writer.Epoch, on.version
	for app, state := range states {
		if state.App == "" { // renamed or removed
			delete(r.apps, app)
			continue
		}
		r.apps[app] = appState{state: state} // no blob id, so that the next fetch reads the file
	}
}

func (r *stateStore) unreadable() (errs []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.failed {
		if err := r.apps[name].err; err != nil {
			errs = append(errs, fmt.Errorf("app %s: %w", name, err))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

func lastChange(s rollout.State) (last time.Time) {
	for _, release := range []*rollout.Release{s.Stable, s.Release} {
		if release != nil {
			last = rollout.Later(last, release.Since)
		}
	}
	for _, p := range s.Progress {
		last = rollout.Later(last, p.Entered)
	}
	return last
}
