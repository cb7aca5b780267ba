package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// Effect is an action on Git or on the cluster.
type Effect struct {
	Verb   string // fetch, read, push, ask, check, compare, apply, evict, label, unannotate, prune, make or delete
	Object string // or app, branch, commit
}

// String returns the verb and the object.
func (e Effect) String() string { return strings.TrimSuffix(e.Verb+" "+e.Object, " ") }

// Outcome is an effect's result. The zero Outcome means success.
type Outcome struct {
	Err   error // received by the process
	After bool  // the effect happens despite Err
}

// Gate is called before each effect, and may block the process.
type Gate func(Effect) Outcome

// Clone is a process's mirror with only the fetched commits.
type Clone struct {
	server  *Git
	name    string
	branch  string
	cluster string
	gate    Gate
	local   map[string]bool
	state   string // in the newest readable configuration
	main    string // at the last fetch
}

// Clone returns a mirror without commits.
func (g *Git) Clone(name, branch, cluster string, gate Gate) *Clone {
	return &Clone{
		server: g, name: name, branch: branch, cluster: cluster, gate: gate,
		local: map[string]bool{}, state: rollout.StateBranch(cluster),
	}
}

// Fetch implements reconciler.Repository.
func (c *Clone) Fetch(context.Context) (rollout.Heads, error) {
	outcome := c.gate(Effect{Verb: "fetch"})
	if outcome.Err != nil {
		return rollout.Heads{}, outcome.Err
	}
	main := c.server.refs[c.branch]
	if main == "" {
		return rollout.Heads{}, fmt.Errorf("branch %s does not exist", c.branch)
	}
	if c.main != main {
		c.main = main
		path := rollout.ConfigPath(c.cluster)
		config, err := rollout.ParseConfig(path, []byte(c.server.commits[main].files[path].content))
		if err == nil {
			c.state = config.StateBranch
		}
	}
	heads := rollout.Heads{Main: main, State: c.server.refs[c.state], Proposals: map[string]string{}}
	c.local[heads.Main], c.local[heads.State] = true, true
	for _, prefix := range rollout.ProposalBranches(c.cluster, "") {
		for _, name := range c.server.Branches(prefix) {
			heads.Proposals[name] = c.server.refs[name]
		}
	}
	return heads, nil
}

// Held implements reconciler.Repository.
func (c *Clone) Held(id string) (reconciler.Snapshot, bool) {
	found := c.server.commits[id]
	if found == nil || !c.local[id] {
		return nil, false
	}
	return snapshot{found}, true
}

// Bring implements reconciler.Repository.
func (c *Clone) Bring(_ context.Context, ids []string) (gone []string, err error) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return c.local[id] })
	if len(ids) == 0 {
		return nil, nil
	}
	if outcome := c.gate(Effect{Verb: "read", Object: rollout.ShortID(ids[0])}); outcome.Err != nil {
		return nil, outcome.Err
	}
	for _, id := range ids {
		if c.server.commits[id] == nil {
			gone = append(gone, id)
			continue
		}
		c.local[id] = true
	}
	return gone, nil
}

// Push implements reconciler.Repository. All branches move, or none.
func (c *Clone) Push(_ context.Context, updates []rollout.Update) (map[string]string, error) {
	made := make(map[string]string, len(updates))
	var moves []move
	for _, u := range updates {
		m, err := c.prepare(u)
		if err != nil {
			return nil, err
		}
		switch {
		case m.to != "" && m.to != u.Old:
			made[u.Branch] = m.to
			moves = append(moves, m)
		case u.Delete && u.Old != "":
			moves = append(moves, m)
		case !u.Delete:
			made[u.Branch] = u.Old
		}
	}
	if len(moves) == 0 {
		return made, nil
	}
	outcome := c.gate(Effect{Verb: "push", Object: moves[len(moves)-1].branch})
	if outcome.Err != nil && !outcome.After {
		return nil, outcome.Err
	}
	if err := c.server.receive(c.name, moves); err != nil {
		return nil, err
	}
	if outcome.Err != nil {
		return nil, outcome.Err
	}
	for _, m := range moves {
		if m.to != "" {
			c.local[m.to] = true
		}
	}
	return made, nil
}

// Between implements reconciler.Past.
func (c *Clone) Between(_ context.Context, from, to string) (line []reconciler.Snapshot, err error) {
	for at := to; ; at = c.server.Parent(at) {
		if at == "" {
			return nil, fmt.Errorf("commit %s is not before %s", from, to)
		}
		line = append([]reconciler.Snapshot{snapshot{c.server.commits[at]}}, line...)
		if at == from {
			return line, nil
		}
	}
}

// Outside implements reconciler.Past.
func (c *Clone) Outside(_ context.Context, id string, of []string) ([]string, error) {
	return slices.DeleteFunc(slices.Clone(of), func(sought string) bool {
		at := id
		for at != "" && at != sought {
			at = c.server.Parent(at)
		}
		return at != ""
	}), nil
}

// Merge implements reconciler.Past.
func (c *Clone) Merge(ctx context.Context, commit, onto string) (rollout.Merge, error) {
	if _, err := c.Bring(ctx, []string{commit}); err != nil {
		return rollout.Merge{}, err
	}
	return c.server.Merge(commit, onto), nil
}

// Merge merges the single commit id, without earlier commits, into onto.
func (g *Git) Merge(id, onto string) rollout.Merge {
	is, was, now := g.commits[id].files, g.commits[g.Parent(id)], g.commits[onto].files
	m := rollout.Merge{Edits: map[string][]byte{}}
	for at := onto; at != "" && !m.Clean; at = g.Parent(at) {
		m.Clean = was != nil && at == was.ID
	}
	if was == nil {
		return m
	}
	for name, f := range is {
		if was.files[name] != f {
			m.Edits[name] = []byte(f.content)
		}
	}
	for name := range was.files {
		if _, stays := is[name]; !stays {
			m.Edits[name] = nil
		}
	}
	for name := range m.Edits {
		m.Clean = m.Clean && now[name] == was.files[name]
	}
	return m
}

type move struct {
	branch, from, to string // commits; to is "" for a deletion
}

// prepare returns an empty "to" if nothing changes.
func (c *Clone) prepare(u rollout.Update) (move, error) {
	m := move{branch: u.Branch, from: u.Old}
	proposal := rollout.IsProposal(u.Branch)
	switch {
	case u.Delete && !proposal:
		return m, fmt.Errorf("branch %s: only proposals may be deleted", u.Branch)
	case u.Delete:
		return m, nil
	case u.Old != "" && u.Parent != u.Old && !proposal:
		return m, fmt.Errorf("branch %s: the parent %q is not the branch's commit %q", u.Branch, u.Parent, u.Old)
	case u.Parent != "" && c.server.commits[u.Parent] == nil:
		return m, fmt.Errorf("commit %s: not found", u.Parent)
	}
	made := c.server.make(u.Parent, u.Edits, Self, u.Message, u.When)
	if parent := c.server.commits[u.Parent]; parent != nil && parent.root().id == made.root().id {
		return m, nil
	}
	c.server.add(made)
	m.to = made.ID
	return m, nil
}

// receive moves all branches, or none if one has moved. A repeated push has no effect.
func (g *Git) receive(by string, moves []move) error {
	var moved []string
	arrived := true
	for _, m := range moves {
		now := g.refs[m.branch]
		arrived = arrived && now == m.to
		if now != m.from {
			moved = append(moved, m.branch)
		}
	}
	if arrived {
		return nil
	}
	if len(moved) > 0 {
		return fmt.Errorf("%w: %s", rollout.ErrConflict, strings.Join(moved, ", "))
	}
	for _, m := range moves {
		g.Set(by, m.branch, m.to)
	}
	return nil
}
