package git

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// mirror is what a Repo, and those beside it, know: where the branches are, and the objects of commits. It has
// nothing to do with the network.
type mirror struct {
	cluster string // "" if it has no proposals

	mu        sync.Mutex
	stateRef  string // short name
	policyRef string // short name, "" if there is none
	branch    string // short name; "" until the server's default branch is known
	store     *store
	live      int64                             // size of the store after its last renewal
	downloads int                               // into the store, under way
	heads     rollout.Heads                     // as last known; Main "" before the first Fetch
	arrived   int                               // pushes
	pushed    map[string]pushed                 // by branch, those that a look-up under way may not know of
	uses      int                               // of commits that are not heads
	recent    map[plumbing.Hash]int             // the last use of each
	gone      map[plumbing.Hash]string          // commits that the server does not have -> Main when it said so
	parents   map[plumbing.Hash][]plumbing.Hash // of commits that were fetched, by noteParents
}

// recentBytes is how much more than the heads a renewal of the store keeps of the commits that were used last:
// those that releases in flight come back to, a thousand of them and more. Each of a thousand apps in one folder
// costs the tree of that folder, 40 KB.
const recentBytes = 64 << 20

// follow begins with nothing but the names of what matters.
func (m *mirror) follow(cluster, branch, state, policy string) error {
	if strings.Contains(cluster, "/") {
		return fmt.Errorf("cluster name %q must not contain a slash", cluster)
	}
	if state == "" && cluster != "" {
		state = rollout.StateBranch(cluster)
	}
	m.cluster, m.store = cluster, newStore()
	m.recent, m.gone, m.pushed = map[plumbing.Hash]int{}, map[plumbing.Hash]string{}, map[string]pushed{}
	m.parents = map[plumbing.Hash][]plumbing.Hash{}
	m.branch, m.stateRef = strings.TrimPrefix(branch, headsPrefix), strings.TrimPrefix(state, headsPrefix)
	m.policyRef = strings.TrimPrefix(policy, headsPrefix)
	for _, branch := range []string{m.branch, m.stateRef, m.policyRef} {
		if _, err := branchRef(branch); branch != "" && err != nil {
			return err
		}
	}
	return nil
}

// Branch is the users' branch; "" until the first Fetch when Options named none.
func (m *mirror) Branch() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.branch
}

// StateBranch is the state branch; "" when Options named none.
func (m *mirror) StateBranch() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stateRef
}

func (m *mirror) holds(id plumbing.Hash) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.store.holds(id)
}

// held finds a commit in the mirror and remembers that it is in use.
func (m *mirror) held(id plumbing.Hash) (*store, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.store.holds(id) {
		return nil, false
	}
	m.use(id)
	return m.store, true
}

// use makes a commit the last of the recent ones, which a renewal keeps. Heads are kept anyway, and are not
// worth keeping once they are superseded, unless somebody comes back to them. The caller holds mu.
func (m *mirror) use(id plumbing.Hash) {
	if name := id.String(); name != m.heads.Main && name != m.heads.State && name != m.heads.Policy {
		m.uses++
		m.recent[id] = m.uses
	}
}

// haves are the last heads: with one or two of them, the server's work does not grow with our age.
func (m *mirror) haves(st *store) []plumbing.Hash {
	m.mu.Lock()
	defer m.mu.Unlock()
	var haves []plumbing.Hash
	for _, id := range []string{m.heads.Main, m.heads.State} {
		if hash := plumbing.NewHash(id); id != "" && st.holds(hash) {
			haves = append(haves, hash)
		}
	}
	return haves
}

// lacking are those of some commits that the mirror does not hold, each once; "" is none.
func (m *mirror) lacking(commits ...string) ([]plumbing.Hash, error) {
	var wants []plumbing.Hash
	seen := map[string]bool{"": true}
	for _, id := range commits {
		if seen[id] {
			continue
		}
		seen[id] = true
		hash, err := parseID(id)
		if err != nil {
			return nil, err
		}
		if !m.holds(hash) {
			wants = append(wants, hash)
		}
	}
	return wants, nil
}

// wanted are those of some commits that are neither here nor known to be gone since Main was where it is.
func (m *mirror) wanted(ids []plumbing.Hash) (wants []plumbing.Hash, main string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		if since, gone := m.gone[id]; !m.store.holds(id) && (!gone || since != m.heads.Main) {
			wants = append(wants, id)
		}
	}
	return wants, m.heads.Main
}

// taken keeps the commits that are here now and remembers of the others that the server did not have them
// while Main was there, so that a release which names a lost commit does not ask for it in each pass.
func (m *mirror) taken(ids []plumbing.Hash, main string) (lost []plumbing.Hash) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		if m.store.holds(id) {
			m.use(id)
			continue
		}
		if lost = append(lost, id); len(m.gone) >= 1000+len(ids) {
			clear(m.gone)
		}
		m.gone[id] = main
	}
	m.renew()
	return lost
}

// pushed is where a push of ours has put a branch; id is "" when it removed it.
type pushed struct {
	number int // among the pushes that have arrived
	id     string
}

// arrivals counts the pushes that have arrived.
func (m *mirror) arrivals() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.arrived
}

// overtaken is what was looked up, with the branches that a push has moved since the look-up began where the push has
// put them: whether the look-up came before or after it is not known, and the next one will tell. The caller holds mu.
func (m *mirror) overtaken(found rollout.Heads, before int) rollout.Heads {
	for name, p := range m.pushed {
		if p.number > before {
			m.place(&found, name, p.id)
		}
	}
	return found
}

// place sets a branch among those that matter.
func (m *mirror) place(heads *rollout.Heads, name, id string) {
	begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	switch {
	case name == m.branch:
		heads.Main = id
	case name == m.stateRef:
		heads.State = id
	case name == m.policyRef:
		heads.Policy = id
	case !slices.ContainsFunc(m.proposals(), begins):
	case id == "":
		delete(heads.Proposals, name)
	default:
		heads.Proposals[name] = id
	}
}

// proposals are what the branches of the cluster's proposals begin with.
func (m *mirror) proposals() []string {
	if m.cluster == "" {
		return nil
	}
	return rollout.ProposalBranches(m.cluster)
}

// land takes the pushed commits into the mirror, so that the next Fetch has nothing to fetch and does not call
// them a change, nor one that is under way call them undone.
func (m *mirror) land(commands []wire.Command, made *store) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store.addAll(made)
	m.arrived++
	for _, c := range commands {
		id := ""
		if !c.New.IsZero() {
			id = c.New.String()
			// A commit of ours reaches what its parent reaches and what was made; if not, it is fetched.
			_ = m.store.verify(c.New)
		}
		m.pushed[c.Ref.Short()] = pushed{number: m.arrived, id: id}
		if m.heads.Main != "" { // else nothing was fetched yet
			m.place(&m.heads, c.Ref.Short(), id)
		}
	}
	m.renew()
}

// filling gives the store for a download, which is not renewed until done is called: the server's answer may
// lean on any object that was in it when it was asked.
func (m *mirror) filling() (st *store, done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.downloads++
	return m.store, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.downloads--
	}
}

// renew replaces the store by one with only what the heads and the recently used commits reach, once it has grown by a
// seventh and nothing is being put into it. Snapshots keep the store that they were made from. The caller holds mu.
func (m *mirror) renew() {
	_, size := m.store.usage()
	if m.downloads > 0 || m.live > 0 && size < m.live+m.live/7+1<<20 {
		return
	}
	fresh := newStore()
	for _, head := range []string{m.heads.Main, m.heads.State, m.heads.Policy} {
		if !m.moveTo(fresh, plumbing.NewHash(head)) {
			return // keep the old store: it has all that was ever verified
		}
	}
	_, most := fresh.usage()
	most += recentBytes
	recent := slices.SortedFunc(maps.Keys(m.recent), func(a, b plumbing.Hash) int { return m.recent[b] - m.recent[a] })
	for _, id := range recent {
		if _, size := fresh.usage(); size > most || !m.store.holds(id) || !m.moveTo(fresh, id) {
			delete(m.recent, id)
		}
	}
	m.store = fresh
	_, m.live = fresh.usage()
}

// moveTo puts what a commit reaches into a new store, and tells whether that is all there. The caller holds mu.
func (m *mirror) moveTo(fresh *store, id plumbing.Hash) bool {
	return !m.store.holds(id) || m.store.reach(id, fresh) == nil
}
