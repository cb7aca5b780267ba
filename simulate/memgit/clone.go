package memgit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// Clone is a process's mirror with the fetched commits.
type Clone struct {
	Server *Server
	Main   string          // at the last fetch
	Local  map[string]bool // the fetched commits

	name    string
	branch  string
	cluster string
	gate    gate
	state   string // from the newest readable configuration
	config  string // its blob id
}

// gate gets the verb ("fetch", "read" or "push") and a commit or branch. If the bool is true, the server executes a
// push despite the error.
type gate func(verb, object string) (after bool, err error)

// Clone returns a mirror without commits. The mirror calls gate before each of its requests.
func (g *Server) Clone(name, branch, cluster string, gate gate) *Clone {
	return &Clone{
		Server: g, name: name, branch: branch, cluster: cluster, gate: gate,
		Local: map[string]bool{}, state: rollout.StateBranch(cluster),
	}
}

// Fetch implements reconciler.Repository.
func (c *Clone) Fetch(context.Context) (rollout.Heads, error) {
	if _, err := c.gate("fetch", ""); err != nil {
		return rollout.Heads{}, err
	}
	main := c.Server.refs[c.branch]
	if main == "" {
		return rollout.Heads{}, fmt.Errorf("branch %s does not exist", c.branch)
	}
	if c.Main != main {
		c.Main = main
		path := rollout.ConfigPath(c.cluster)
		if f := c.Server.Commits[main].files[path]; f.id != c.config {
			if config, err := rollout.ParseConfig(path, []byte(f.content)); err == nil {
				c.state, c.config = config.StateBranch, f.id
			}
		}
	}
	heads := rollout.Heads{Main: main, State: c.Server.refs[c.state], Proposals: map[string]string{}}
	c.Local[heads.Main], c.Local[heads.State] = true, true
	for _, prefix := range rollout.ProposalBranches(c.cluster, "") {
		for _, name := range c.Server.Branches(prefix) {
			heads.Proposals[name] = c.Server.refs[name]
		}
	}
	return heads, nil
}

// Held implements reconciler.Repository.
func (c *Clone) Held(id string) (source.Snapshot, bool) {
	found := c.Server.Commits[id]
	if found == nil || !c.Local[id] {
		return nil, false
	}
	return found, true
}

// Bring implements reconciler.Repository.
func (c *Clone) Bring(_ context.Context, ids []string) (gone []string, err error) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return c.Local[id] })
	if len(ids) == 0 {
		return nil, nil
	}
	if _, err := c.gate("read", rollout.ShortID(ids[0])); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if c.Server.Commits[id] == nil {
			gone = append(gone, id)
			continue
		}
		c.Local[id] = true
	}
	return gone, nil
}

// Push implements reconciler.Repository. Either all branches move or none.
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
	after, failed := c.gate("push", moves[len(moves)-1].branch)
	if failed != nil && !after {
		return nil, failed
	}
	if err := cmp.Or(c.Server.receive(c.name, moves), failed); err != nil {
		return nil, err
	}
	for _, m := range moves {
		if m.to != "" {
			c.Local[m.to] = true
		}
	}
	return made, nil
}

// Between implements reconciler.Past.
func (c *Clone) Between(_ context.Context, from, to string) (line []source.Snapshot, err error) {
	for at := to; at != ""; at = c.Server.at(at).Parent {
		line = append([]source.Snapshot{c.Server.Commits[at]}, line...)
		if at == from {
			return line, nil
		}
	}
	if from == "" {
		return append([]source.Snapshot{&Snapshot{}}, line...), nil
	}
	return line, fmt.Errorf("commit %s is not before %s", from, to)
}

// Outside implements reconciler.Past.
func (c *Clone) Outside(_ context.Context, id string, of []string) ([]string, error) {
	return slices.DeleteFunc(slices.Clone(of), func(sought string) bool {
		at := id
		for at != "" && at != sought {
			at = c.Server.at(at).Parent
		}
		return at != ""
	}), nil
}

// Merge implements reconciler.Past.
func (c *Clone) Merge(ctx context.Context, commit, onto string) (rollout.Merge, error) {
	if _, err := c.Bring(ctx, []string{commit}); err != nil {
		return rollout.Merge{}, err
	}
	return c.Server.Merge(commit, onto), nil
}

// Merge merges the changes of a single commit, without its ancestors, into another commit.
func (g *Server) Merge(id, onto string) rollout.Merge {
	is, was, now := g.Commits[id].files, g.Commits[g.at(id).Parent], g.Commits[onto].files
	m := rollout.Merge{Edits: map[string][]byte{}}
	for at := onto; at != "" && !m.Clean; at = g.at(at).Parent {
		m.Clean = was != nil && at == was.commit.ID
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
	case u.Parent != "" && c.Server.Commits[u.Parent] == nil:
		return m, fmt.Errorf("commit %s: not found", u.Parent)
	}
	made := c.Server.Make(u.Parent, Change{Author: self, Message: u.Message, When: u.When, Edits: u.Edits})
	if parent := c.Server.Commits[u.Parent]; parent == nil || parent.root().id != c.Server.Commits[made].root().id {
		m.to = made
	}
	return m, nil
}

// receive moves all branches, or none if another push moved a branch.
func (g *Server) receive(by string, moves []move) error {
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
