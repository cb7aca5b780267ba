package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"gitrollout.dev/gitrollout/git/wire"
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

// Held reads a commit that is here, and never goes to the network.
func (r *Repo) Held(commit string) (s *Snapshot, held bool) {
	id, err := parseID(commit)
	if err != nil {
		return nil, false
	}
	st, held := r.held(id)
	if !held {
		return nil, false
	}
	s, err = newSnapshot(st, id)
	return s, err == nil
}

// Bring fetches commits by their ids, all that are not here with one request: what all releases on record name,
// after a restart. Missing are those that the server does not have any more; they cost one or two requests more,
// however many they are, and the others are here all the same.
//
// ErrAuth and ErrUnreachable: what is here already stays.
func (r *Repo) Bring(ctx context.Context, commits []string) (missing []string, err error) {
	wants, err := r.lacking(commits...)
	if err != nil || len(wants) == 0 {
		return nil, err
	}
	lost, err := r.ensureAll(ctx, wants, fmt.Sprintf("read %d commits from", len(wants)))
	for _, id := range lost {
		missing = append(missing, id.String())
	}
	return missing, err
}

// ensure gives a store that holds a commit in full.
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

// ensureAll brings commits into the mirror, but for those that the server does not have: it returns these.
func (r *Repo) ensureAll(ctx context.Context, ids []plumbing.Hash, what string) (lost []plumbing.Hash, err error) {
	err = r.onNetwork(ctx, r.bringing, what, func(ctx context.Context) error {
		wants, main := r.wanted(ids)
		if len(wants) > 0 {
			if err := r.bringByID(ctx, wants); err != nil {
				return err
			}
		}
		lost = r.taken(ids, main)
		return nil
	})
	return lost, err
}

// wanted are those of some commits that are neither here nor known to be gone since Main was where it is.
func (r *Repo) wanted(ids []plumbing.Hash) (wants []plumbing.Hash, main string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if since, gone := r.gone[id]; !r.store.holds(id) && (!gone || since != r.heads.Main) {
			wants = append(wants, id)
		}
	}
	return wants, r.heads.Main
}

// taken keeps the commits that are here now and remembers of the others that the server did not have them
// while Main was there, so that a release which names a lost commit does not ask for it in each pass.
func (r *Repo) taken(ids []plumbing.Hash, main string) (lost []plumbing.Hash) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if r.store.holds(id) {
			r.use(id)
			continue
		}
		if lost = append(lost, id); len(r.gone) >= 1000+len(ids) {
			clear(r.gone)
		}
		r.gone[id] = main
	}
	r.renew()
	return lost
}

func (r *Repo) holds(id plumbing.Hash) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.store.holds(id)
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

// use makes a commit the last of the recent ones, which a renewal keeps. Heads are kept anyway, and are not
// worth keeping once they are superseded, unless somebody comes back to them. The caller holds mu.
func (r *Repo) use(id plumbing.Hash) {
	if name := id.String(); name != r.heads.Main && name != r.heads.State {
		r.uses++
		r.recent[id] = r.uses
	}
}

// bringByID fetches commits by their ids. Those that the server does not have are left out: git's names one of
// them and says no to all, so the next request asks which of them it has.
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
	// The server has them all, and gives out only what its branches reach: which these are, it does not say.
	for half := range slices.Chunk(there, (len(there)+1)/2) {
		if err := r.bringByID(ctx, half); err != nil {
			return err
		}
	}
	return nil
}

func isMissing(err error) bool { return wire.IsMissing(err) || errors.Is(err, errMissing) }

// bringAll fetches commits with one request, all or none, and tells which protocol the server speaks.
func (r *Repo) bringAll(ctx context.Context, ids []plumbing.Hash) (v2 bool, err error) {
	s, err := r.server.ToFetch(ctx)
	if err != nil {
		return false, err
	}
	defer s.Close()
	return s.V2(), r.bring(ctx, s, ids, false)
}

// thoseThere asks which of some commits the server has. It is all of them when that cannot be asked, as there is
// no commit that the server is known to have.
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

// bringByHistory is for a server that gives out its refs only: it reads the whole history of the branches, and
// takes from it those of the commits that are there.
func (r *Repo) bringByHistory(ctx context.Context, ids []plumbing.Hash) error {
	s, err := r.server.ToFetch(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	var tips []plumbing.Hash
	for name, tip := range s.Advertised() {
		if name == "HEAD" || name == headsPrefix+r.Branch() || name == headsPrefix+r.StateBranch() {
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

// renew replaces the store by one with only what the heads and the recently used commits reach, once it
// has grown by a seventh and nothing is being put into it. Snapshots keep the store that they were made from. The
// caller holds mu.
func (r *Repo) renew() {
	_, size := r.store.usage()
	if r.downloads > 0 || r.live > 0 && size < r.live+r.live/7+1<<20 {
		return
	}
	fresh := newStore()
	for _, head := range []string{r.heads.Main, r.heads.State} {
		if !r.moveTo(fresh, plumbing.NewHash(head)) {
			return // keep the old store: it has all that was ever verified
		}
	}
	_, most := fresh.usage()
	most += recentBytes
	recent := slices.SortedFunc(maps.Keys(r.recent), func(a, b plumbing.Hash) int { return r.recent[b] - r.recent[a] })
	for _, id := range recent {
		if _, size := fresh.usage(); size > most || !r.store.holds(id) || !r.moveTo(fresh, id) {
			delete(r.recent, id)
		}
	}
	r.store = fresh
	_, r.live = fresh.usage()
}

// moveTo puts what a commit reaches into a new store, and tells whether that is all there. The caller holds mu.
func (r *Repo) moveTo(fresh *store, id plumbing.Hash) bool {
	return !r.store.holds(id) || r.store.reach(id, fresh) == nil
}
