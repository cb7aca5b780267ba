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

// mirror holds the branch heads and commits' objects of a Repo and its Beside copies, without network I/O.
type mirror struct {
	cluster string // "": no proposals

	mu        sync.Mutex
	stateRef  string // short name
	policyRef string // short name; "": none
	branch    string // short name; "" until the server's default branch is known
	store     *store
	live      int64                             // size of the store after its last renewal
	downloads int                               // downloads in progress
	heads     rollout.Heads                     // latest known; Main is "" before the first Fetch
	arrived   int                               // completed pushes
	pushed    map[string]pushed                 // by branch: pushes that a lookup in progress may have missed
	uses      int                               // reads of commits other than heads
	recent    map[plumbing.Hash]int             // commit -> its last value of uses
	gone      map[plumbing.Hash]string          // commits missing on the server -> Main at that time
	parents   map[plumbing.Hash][]plumbing.Hash // of fetched commits; noteParents sets them
}

// recentBytes bounds the recent commits that renew keeps beside the heads: over a thousand in flight. With a thousand
// apps in one folder, each costs the folder's tree, 40 KB.
const recentBytes = 64 << 20

// follow initializes an empty mirror for the given cluster and branches.
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

// Branch returns the users' branch; "" before the first Fetch if Options names none.
func (m *mirror) Branch() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.branch
}

// StateBranch returns the state branch; "" if Options sets neither Cluster nor StateBranch.
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

// held returns the store if it holds the full commit, and marks that as used.
func (m *mirror) held(id plumbing.Hash) (*store, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.store.holds(id) {
		return nil, false
	}
	m.use(id)
	return m.store, true
}

// use marks a commit as most recently used, for renew; heads are kept anyway. The caller holds mu.
func (m *mirror) use(id plumbing.Hash) {
	if name := id.String(); name != m.heads.Main && name != m.heads.State && name != m.heads.Policy {
		m.uses++
		m.recent[id] = m.uses
	}
}

// haves returns the heads of the users' and state branches in st: at most two, to bound the server's negotiation.
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

// lacking returns the commits that the mirror lacks, without duplicates and "".
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

// wanted returns the commits that are neither held nor known to be missing at the current Main, and that Main.
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

// taken marks held commits as used and returns the others as lost, recorded with Main against repeated requests.
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

// pushed records where our push moved a branch; "" after a deletion.
type pushed struct {
	number int // sequence number of the push
	id     string
}

// arrivals returns the number of completed pushes.
func (m *mirror) arrivals() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.arrived
}

// overtaken merges a lookup's result with refs pushed since it began, which win: the order is unknown, and the next
// lookup corrects it. The caller holds mu.
func (m *mirror) overtaken(found rollout.Heads, before int) rollout.Heads {
	for name, p := range m.pushed {
		if p.number > before {
			m.place(&found, name, p.id)
		}
	}
	return found
}

// place sets a configured branch's id in heads; "" removes a proposal.
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

// proposals returns the cluster's prefixes of proposal branches.
func (m *mirror) proposals() []string {
	if m.cluster == "" {
		return nil
	}
	return rollout.ProposalBranches(m.cluster)
}

// land adds pushed commits to the mirror: no Fetch downloads or reports them, and one in progress keeps them.
func (m *mirror) land(commands []wire.Command, made *store) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store.addAll(made)
	m.arrived++
	for _, c := range commands {
		id := ""
		if !c.New.IsZero() {
			id = c.New.String()
			// The commit is complete if its parent's objects are here; else the next read fetches it.
			_ = m.store.verify(c.New)
		}
		m.pushed[c.Ref.Short()] = pushed{number: m.arrived, id: id}
		if m.heads.Main != "" { // else nothing was fetched yet
			m.place(&m.heads, c.Ref.Short(), id)
		}
	}
	m.renew()
}

// filling returns the store for a download. renew keeps it until done: a response may refer to any of its objects.
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

// renew replaces the store by one with only heads' and recent commits' objects, once it has grown by a seventh and 1
// MiB and no download runs. Snapshots keep their store. The caller holds mu.
func (m *mirror) renew() {
	_, size := m.store.usage()
	if m.downloads > 0 || m.live > 0 && size < m.live+m.live/7+1<<20 {
		return
	}
	fresh := newStore()
	for _, head := range []string{m.heads.Main, m.heads.State, m.heads.Policy} {
		if !m.moveTo(fresh, plumbing.NewHash(head)) {
			return // keep the old store: it has all verified objects
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

// moveTo copies a commit with its files into a new store, and reports whether nothing is missing, as if the commit is
// not held. The caller holds mu.
func (m *mirror) moveTo(fresh *store, id plumbing.Hash) bool {
	return !m.store.holds(id) || m.store.reach(id, fresh) == nil
}
