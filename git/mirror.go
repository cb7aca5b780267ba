package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// Snapshot reads a commit, which is fetched by its id if the mirror lacks it.
//
// ErrNotFound (and fs.ErrNotExist): the server does not have the commit any more, or has never had it.
// Also ErrAuth and ErrUnreachable, when it had to be fetched.
func (r *Repo) Snapshot(ctx context.Context, commit string) (*Snapshot, error) {
	id, err := parseID(commit)
	if err != nil {
		return nil, err
	}
	st, err := r.ensure(ctx, id)
	if err != nil {
		return nil, err
	}
	return newSnapshot(st, id)
}

// EmptySnapshot has no files and no commit: what a branch holds before it exists.
func EmptySnapshot() *Snapshot { return &Snapshot{store: newStore()} }

// ensure gives a store that holds a commit in full.
func (r *Repo) ensure(ctx context.Context, id plumbing.Hash) (*store, error) {
	if st, ok := r.held(id); ok {
		return st, nil
	}
	err := r.onNetwork(ctx, "read commit "+id.String()+" from", func(ctx context.Context) error {
		if _, ok := r.held(id); ok {
			return nil
		}
		r.mu.Lock()
		st, main := r.store, r.heads.Main
		since, gone := r.gone[id]
		r.mu.Unlock()
		if gone && since == main {
			return fmt.Errorf("commit %w (%w)", ErrNotFound, fs.ErrNotExist)
		}
		err := r.bringByID(ctx, st, id)
		if isMissingObject(err) || errors.Is(err, errMissing) {
			r.forget(id, main)
			return fmt.Errorf("commit %w (%w): %w", ErrNotFound, fs.ErrNotExist, err)
		}
		if err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.use(id)
			r.renew()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	st, ok := r.held(id)
	if !ok {
		return nil, fmt.Errorf("commit %s: %w", id, errMissing)
	}
	return st, nil
}

// forget remembers that the server did not have a commit while Main was there, so that a release which names
// a lost commit does not ask for it in each pass.
func (r *Repo) forget(id plumbing.Hash, main string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.gone) >= 1000 {
		clear(r.gone)
	}
	r.gone[id] = main
}

// held finds a commit in the mirror and remembers that it is in use.
func (r *Repo) held(id plumbing.Hash) (*store, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.store.holds(id) {
		return nil, false
	}
	r.use(id)
	return r.store, true
}

// use puts a commit last among the recent ones, which a renewal keeps. Heads are kept anyway, and are not
// worth keeping once they are superseded, unless somebody comes back to them. The caller holds mu.
func (r *Repo) use(id plumbing.Hash) {
	if name := id.String(); name == r.heads.Main || name == r.heads.State {
		return
	}
	if i := slices.Index(r.recent, id); i >= 0 {
		r.recent = slices.Delete(r.recent, i, i+1)
	}
	r.recent = append(r.recent, id)
	if len(r.recent) > recentCommits {
		r.recent = r.recent[1:]
	}
}

// bringByID fetches one commit by its id, or, from a server that gives out its refs only, by reading the
// whole history of the branches.
func (r *Repo) bringByID(ctx context.Context, st *store, id plumbing.Hash) error {
	s, err := r.link.open(ctx, uploadPack)
	if err != nil {
		return err
	}
	err = r.bring(ctx, s, st, []plumbing.Hash{id})
	s.close()
	if !isMissingObject(err) || s.v2 {
		return err
	}
	if s, err = r.link.open(ctx, uploadPack); err != nil {
		return err
	}
	defer s.close()
	var tips []plumbing.Hash
	for name, tip := range s.refs {
		if name == "HEAD" || name == headsPrefix+r.Branch() || name == headsPrefix+r.stateRef {
			tips = append(tips, plumbing.NewHash(tip))
		}
	}
	if len(tips) == 0 {
		return errMissing
	}
	all := newStore()
	if err := r.downloadWhole(ctx, s, all, tips, nil, full); err != nil {
		return err
	}
	if err := all.verify(id); err != nil {
		return err
	}
	if err := all.reach(id, st); err != nil {
		return err
	}
	return st.verify(id)
}

// renew replaces the store by one with only what the heads and the recently used commits reach, once it
// has grown by a seventh. Snapshots keep the store that they were made from. The caller holds mu.
func (r *Repo) renew() {
	_, size := r.store.usage()
	if r.live > 0 && size < r.live+r.live/7+1<<20 {
		return
	}
	fresh := newStore()
	roots := append([]plumbing.Hash{plumbing.NewHash(r.heads.Main)}, r.recent...)
	if r.heads.State != "" {
		roots = append(roots, plumbing.NewHash(r.heads.State))
	}
	for _, root := range roots {
		if !r.store.holds(root) {
			continue
		}
		if err := r.store.reach(root, fresh); err != nil {
			return // keep the old store: it has all that was ever verified
		}
	}
	if r.live > 0 {
		r.stats.renewals.Add(1)
	}
	r.store = fresh
	_, r.live = fresh.usage()
}
