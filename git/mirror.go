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

// mirror holds heads and objects. It does no I/O. Copies of a Repo share a mirror.
type mirror struct {
	cluster string // "": no proposals
	refs    string

	mu        sync.Mutex
	stateRef  string           // short name
	stateAt   *Repo            // repository of the state branch; nil: the users' repository
	twins     map[string]*Repo // by URL
	policyRef string           // short name, or ""
	branch    string           // short name; "" until the server sent its default
	store     *store
	live      int64 // size of the store after the last renew
	downloads int
	heads     rollout.Heads     // latest known; Main is "" before the first Fetch
	arrived   int               // successful pushes
	pushed    map[string]pushed // by branch; pushes that the last lookup possibly missed
	uses      int
	recent    map[plumbing.Hash]int             // by commit: the counter `uses` at the last read
	gone      map[plumbing.Hash]string          // by missing commit: heads.Main at the time of the request
	parents   map[plumbing.Hash][]plumbing.Hash // by commit; see noteParents
}

// recentBytes limits the size of the recently read commits that a renewal keeps. 64 MiB suffice for 1,000 commits with
// 40 KB of trees each.
const recentBytes = 64 << 20

func (m *mirror) follow(cluster, branch, state, policy string) error {
	if strings.Contains(cluster, "/") {
		return fmt.Errorf("cluster name %q must not contain a slash", cluster)
	}
	if state == "" && cluster != "" {
		state = rollout.StateBranch(cluster)
	}
	m.cluster, m.store = cluster, newStore()
	m.recent, m.gone, m.pushed = map[plumbing.Hash]int{}, map[plumbing.Hash]string{}, map[string]pushed{}
	m.parents, m.twins = map[plumbing.Hash][]plumbing.Hash{}, map[string]*Repo{}
	m.branch, m.stateRef = strings.TrimPrefix(branch, headsPrefix), strings.TrimPrefix(state, headsPrefix)
	m.policyRef = strings.TrimPrefix(policy, headsPrefix)
	for _, branch := range []string{m.branch, m.stateRef, m.policyRef} {
		if _, err := branchRef(branch); branch != "" && err != nil {
			return err
		}
	}
	return nil
}

// Branch returns the users' branch, or "" before the first Fetch if Options.Branch is "".
func (m *mirror) Branch() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.branch
}

// StateBranch returns the state branch. If neither Options.Cluster nor StateBranch is set, it returns "".
func (m *mirror) StateBranch() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stateRef
}

// held returns the store if the store has the complete commit. It marks the commit as used.
func (m *mirror) held(id plumbing.Hash) (*store, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.store.holds(id) {
		return nil, false
	}
	m.use(id)
	return m.store, true
}

// use marks a commit as recently read. The caller holds mu.
func (m *mirror) use(id plumbing.Hash) {
	if name := id.String(); name != m.heads.Main && name != m.heads.State && name != m.heads.Policy {
		m.uses++
		m.recent[id] = m.uses
	}
}

// haves returns the heads of the users' and state branches, and `also`. It omits commits that st lacks.
func (m *mirror) haves(st *store, also ...string) (haves []plumbing.Hash) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range append([]string{m.heads.Main, m.heads.State}, also...) {
		if hash := plumbing.NewHash(id); id != "" && st.holds(hash) {
			haves = append(haves, hash)
		}
	}
	return haves
}

func (m *mirror) lacking(commits ...string) (wants []plumbing.Hash, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
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
		if !m.store.holds(hash) {
			wants = append(wants, hash)
		}
	}
	return wants, nil
}

// wanted returns heads.Main, and the commits to request. It omits held commits. If the server lacked a commit, wanted
// omits the commit until Main changes.
func (m *mirror) wanted(ids []plumbing.Hash) (wants []plumbing.Hash, main string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(ids), func(id plumbing.Hash) bool {
		since, gone := m.gone[id]
		return m.store.holds(id) || gone && since == m.heads.Main
	}), m.heads.Main
}

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

type pushed struct {
	number int
	id     string
}

// overtaken writes the heads of pushes with a number above `before` to `found`. The caller holds mu.
func (m *mirror) overtaken(found rollout.Heads, before int) rollout.Heads {
	for name, p := range m.pushed {
		if p.number > before {
			m.place(&found, name, p.id)
		}
	}
	return found
}

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

func (m *mirror) proposals() []string {
	if m.cluster == "" {
		return nil
	}
	return rollout.ProposalBranches(m.cluster, "")
}

func (m *mirror) land(commands []wire.Command, made *store) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store.addAll(made)
	m.arrived++
	for _, c := range commands {
		id := ""
		if !c.New.IsZero() {
			id = c.New.String()
			// If the store lacks an unchanged object of the commit, the next read fetches the commit.
			_ = m.store.verify(c.New)
		}
		m.pushed[c.Ref.Short()] = pushed{number: m.arrived, id: id}
		if m.heads.Main != "" {
			m.place(&m.heads, c.Ref.Short(), id)
		}
	}
	m.renew()
}

// filling returns the store for a download. Until the caller calls `done`, no renewal replaces the store.
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

// renew copies the objects of heads and recently read commits into a new store. It does nothing during a download.
// Between two renewals, the store grows by a seventh plus 1 MiB. Existing snapshots keep the old store. The caller
// holds mu.
func (m *mirror) renew() {
	_, size := m.store.usage()
	if m.downloads > 0 || m.live > 0 && size < m.live+m.live/7+1<<20 {
		return
	}
	fresh := newStore()
	for _, head := range []string{m.heads.Main, m.heads.State, m.heads.Policy} {
		if !m.moveTo(fresh, plumbing.NewHash(head)) {
			return
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

// moveTo copies a held commit's objects. If an object is missing, moveTo returns false. The caller holds mu.
func (m *mirror) moveTo(fresh *store, id plumbing.Hash) bool {
	return !m.store.holds(id) || m.store.reach(id, fresh) == nil
}
