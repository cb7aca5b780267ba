package git

import (
	"context"
	"errors"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// Merge returns the changes of a commit with one parent, and whether these changes apply cleanly to `onto` (see
// rollout.Merge). Without exactly one parent, it returns the zero value. Errors: ErrNotFound, ErrAuth, ErrUnreachable.
func (r *Repo) Merge(ctx context.Context, commit, onto string) (rollout.Merge, error) {
	s, err := r.Snapshot(ctx, commit)
	if err != nil {
		return rollout.Merge{}, err
	}
	target, err := r.Snapshot(ctx, onto)
	if err != nil || len(s.parents) != 1 {
		return rollout.Merge{}, err
	}
	base, err := r.Snapshot(ctx, s.parents[0])
	switch {
	case errors.Is(err, ErrNotFound):
		return rollout.Merge{}, nil // the server lacks the parent, so the parent is no ancestor of onto
	case err != nil:
		return rollout.Merge{}, err
	}
	m, err := pick(base, s, target)
	if err == nil && m.Clean {
		m.Clean, err = r.descends(ctx, onto, s.parents[0])
	}
	return m, err
}

// pick sets Clean if all changes write files or delete paths, and target equals base at each changed path.
func pick(base, s, target *Snapshot) (rollout.Merge, error) {
	changes, err := Changes(base, s, "")
	m := rollout.Merge{Edits: map[string][]byte{}, Clean: err == nil}
	for _, c := range changes {
		switch c.New.Kind {
		case "":
			m.Edits[c.Path] = nil
		case rollout.File:
			if m.Edits[c.Path], err = s.ReadBlob(c.New.ID); err != nil {
				return m, err
			}
		default:
			m.Clean = false
		}
		now, _, err := target.Lookup(c.Path)
		if err != nil {
			return m, err
		}
		m.Clean = m.Clean && now == c.Old
	}
	return m, err
}

func (r *Repo) descends(ctx context.Context, commit, from string) (bool, error) {
	for _, d := range depths {
		st, err := r.history(ctx, commit, d)
		if err != nil {
			return false, err
		}
		sought := map[plumbing.Hash]bool{plumbing.NewHash(from): true}
		whole := r.lineage(st, plumbing.NewHash(commit), sought)
		if found := len(sought) == 0; found || whole {
			return found, nil
		}
	}
	return false, nil
}

// Outside returns the commits in `of` that are neither the commit nor its ancestors. A commit's id hashes its parents'
// ids, so a server cannot forge ancestors. A commit that the server's response lacks counts as outside. Errors:
// ErrNotFound, ErrAuth, ErrUnreachable.
func (r *Repo) Outside(ctx context.Context, commit string, of []string) (outside []string, err error) {
	id, st, err := r.having(ctx, commit)
	if err != nil {
		return nil, err
	}
	sought := map[plumbing.Hash]bool{}
	for _, c := range of {
		sought[plumbing.NewHash(c)] = true
	}
	whole := r.lineage(st, id, sought)
	for _, d := range []wire.Depth{1000, 30_000, wire.Full} { // a commit without its files takes 200 bytes
		if whole || len(sought) == 0 {
			break
		}
		if st, err = r.graph(ctx, id, d); err != nil {
			return nil, err
		}
		whole = r.lineage(st, id, sought)
	}
	return slices.DeleteFunc(slices.Clone(of), func(c string) bool { return !sought[plumbing.NewHash(c)] }), nil
}

func (r *Repo) graph(ctx context.Context, id plumbing.Hash, d wire.Depth) (*store, error) {
	st, done := r.filling()
	defer done()
	into := newStore()
	into.under = st
	err := r.onNetwork(ctx, r.bringing, "read the history of "+rollout.ShortID(id.String())+" from",
		func(ctx context.Context) error {
			s, err := r.server.ToFetch(ctx)
			if err != nil {
				return err
			}
			defer s.Close()
			if err = s.Fetch(ctx, into, wire.Question{Wants: []plumbing.Hash{id}, Depth: d, Bare: true}); err != nil {
				s.Stale()
			}
			return err
		})
	return into, err
}

func (m *mirror) lineage(st *store, commit plumbing.Hash, sought map[plumbing.Hash]bool) (whole bool) {
	whole = true
	seen := map[plumbing.Hash]bool{}
	for next := []plumbing.Hash{commit}; len(next) > 0 && len(sought) > 0; {
		id := next[0]
		if next = next[1:]; seen[id] {
			continue
		}
		seen[id] = true
		delete(sought, id)
		parents, known := m.parentsOf(st, id)
		whole = whole && known
		next = append(next, parents...)
	}
	return whole
}

func (m *mirror) parentsOf(st *store, id plumbing.Hash) (parents []plumbing.Hash, known bool) {
	if c, err := st.commit(id); err == nil {
		return c.ParentHashes, true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	parents, known = m.parents[id]
	return parents, known
}

func (m *mirror) noteParents(passed *store) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.parents) > 10_000 {
		clear(m.parents)
	}
	for _, id := range passed.ids() {
		if passed.get(id).kind != plumbing.CommitObject {
			continue
		}
		if c, err := passed.commit(id); err == nil {
			m.parents[id] = c.ParentHashes
		}
	}
}
