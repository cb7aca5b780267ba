package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// Snapshot returns a snapshot of a commit. It fetches a missing commit by id. Errors: ErrNotFound (also
// fs.ErrNotExist), ErrAuth, ErrUnreachable.
func (r *Repo) Snapshot(ctx context.Context, commit string) (*Snapshot, error) {
	id, st, err := r.having(ctx, commit)
	if err != nil {
		return nil, err
	}
	return newSnapshot(st, id)
}

func (r *Repo) having(ctx context.Context, commit string) (id plumbing.Hash, st *store, err error) {
	if id, err = parseID(commit); err == nil {
		st, err = r.ensure(ctx, id)
	}
	return id, st, err
}

// Held returns a snapshot from memory, or false.
func (r *Repo) Held(commit string) (s *Snapshot, held bool) {
	id, err := parseID(commit)
	if st, held := r.held(id); held && err == nil {
		s, err = newSnapshot(st, id)
		return s, err == nil
	}
	return nil, false
}

// Bring fetches missing commits, with one request if the server has all of them. It returns the commits that the server
// does not have. Errors: ErrAuth, ErrUnreachable.
func (r *Repo) Bring(ctx context.Context, commits []string) (missing []string, err error) {
	wants, err := r.lacking(commits...)
	if err != nil || len(wants) == 0 {
		return nil, err
	}
	lost, err := r.ensureAll(ctx, wants, fmt.Sprintf("read %d commits from", len(wants)))
	return rollout.Mapped(lost, plumbing.Hash.String), err
}

func (r *Repo) ensure(ctx context.Context, id plumbing.Hash) (*store, error) {
	if st, ok := r.held(id); ok {
		return st, nil
	}
	what := "read commit " + id.String() + " from"
	lost, err := r.ensureAll(ctx, []plumbing.Hash{id}, what)
	if err != nil {
		return nil, err
	}
	st, ok := r.held(id)
	switch {
	case len(lost) > 0:
		return nil, fmt.Errorf("%s %s: commit %w (%w)", what, r.remote, ErrNotFound, fs.ErrNotExist)
	case !ok:
		return nil, fmt.Errorf("commit %s: %w", id, errMissing)
	}
	return st, nil
}

func (r *Repo) ensureAll(ctx context.Context, ids []plumbing.Hash, what string) (lost []plumbing.Hash, err error) {
	err = r.onNetwork(ctx, r.bringing, what, func(ctx context.Context) error {
		wants, main := r.wanted(ids)
		for _, at := range holders(r, ids[0]) {
			if len(wants) == 0 {
				break
			}
			if err := at.bringByID(ctx, wants); err != nil {
				return err
			}
			wants, _ = r.wanted(ids)
		}
		lost = r.taken(ids, main)
		return nil
	})
	return lost, err
}

// bringByID fetches all commits that the server has.
func (r *Repo) bringByID(ctx context.Context, ids []plumbing.Hash) error {
	v2, err := r.bringAll(ctx, ids)
	if !isMissing(err) {
		return err
	}
	if !v2 {
		return r.bringByHistory(ctx, ids)
	}
	if len(ids) == 1 {
		return nil
	}
	there, err := r.thoseThere(ctx, ids)
	if err != nil || len(there) == 0 {
		return err
	}
	if len(there) < len(ids) {
		if _, err = r.bringAll(ctx, there); !isMissing(err) {
			return err
		}
	}
	// A server may refuse commits that are on no branch. The error names at most one commit, so each half of the
	// commits is fetched separately.
	for half := range slices.Chunk(there, (len(there)+1)/2) {
		if err := r.bringByID(ctx, half); err != nil {
			return err
		}
	}
	return nil
}

func isMissing(err error) bool { return wire.IsMissing(err) || errors.Is(err, errMissing) }

func (r *Repo) bringAll(ctx context.Context, ids []plumbing.Hash) (v2 bool, err error) {
	s, err := r.server.ToFetch(ctx)
	if err != nil {
		return false, err
	}
	defer s.Close()
	return s.V2, r.bring(ctx, s, ids, false)
}

// thoseThere returns the commits that the server has. If the server cannot tell, it returns all commits.
func (r *Repo) thoseThere(ctx context.Context, ids []plumbing.Hash) ([]plumbing.Hash, error) {
	r.mu.Lock()
	main := plumbing.NewHash(r.heads.Main)
	r.mu.Unlock()
	if main.IsZero() {
		return ids, nil
	}
	s, err := r.server.ToFetch(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	there, err := s.Common(ctx, main, ids)
	if wire.IsMissing(err) {
		return ids, nil
	}
	return there, err
}

// bringByHistory fetches the whole history of the users' and state branches, because some servers refuse requests by
// id.
func (r *Repo) bringByHistory(ctx context.Context, ids []plumbing.Hash) error {
	s, err := r.server.ToFetch(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	var tips []plumbing.Hash
	for name, tip := range s.Refs {
		if name == "HEAD" || name == r.refs+r.Branch() || name == r.refs+r.StateBranch() {
			tips = append(tips, plumbing.NewHash(tip))
		}
	}
	if len(tips) == 0 {
		return nil
	}
	all := newStore()
	if err := r.downloadWhole(ctx, s, all, wire.Question{Wants: tips, Depth: wire.Full}); err != nil {
		return err
	}
	st, done := r.filling()
	defer done()
	for _, id := range ids {
		if all.verify(id) != nil {
			continue
		}
		if err := all.reach(id, st); err != nil {
			return err
		}
		if err := st.verify(id); err != nil {
			return err
		}
	}
	return nil
}
