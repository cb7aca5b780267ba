package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// onNetwork runs one operation when no other is on the network, within the time limit, and says in its
// error what was done and where.
func (r *Repo) onNetwork(ctx context.Context, what string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	select {
	case r.network <- struct{}{}:
		defer func() { <-r.network }()
	case <-ctx.Done():
		return fmt.Errorf("%s %s: %w", what, r.remote, classify(ctx.Err()))
	}
	if err := do(ctx); err != nil {
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = errors.Join(ctx.Err(), err)
		}
		return fmt.Errorf("%s %s: %w", what, r.remote, classify(err))
	}
	return nil
}

// Fetch looks up the branches with one request and fetches what is new of Main and State, with a second
// one. Proposals are looked up only; Snapshot fetches one when it is asked for.
//
// ErrNotFound: no such repository, or the users' branch is not in it. Also ErrAuth and ErrUnreachable. After
// an error nothing has changed.
func (r *Repo) Fetch(ctx context.Context) (Heads, error) {
	var heads Heads
	err := r.onNetwork(ctx, "fetch", func(ctx context.Context) error {
		s, err := r.link.open(ctx, uploadPack)
		if err != nil {
			return err
		}
		defer s.close()
		found, err := r.lookUpHeads(ctx, s)
		if err != nil {
			s.stale()
			return err
		}
		heads, err = r.update(ctx, s, found)
		return err
	})
	return heads, err
}

func (r *Repo) lookUpHeads(ctx context.Context, s *session) (Heads, error) {
	branch := r.Branch()
	main := headsPrefix + branch
	if branch == "" {
		main = "HEAD"
	}
	prefixes := []string{main}
	var proposals []string
	if r.stateRef != "" {
		prefixes = append(prefixes, headsPrefix+r.stateRef)
	}
	if r.opts.Cluster != "" {
		proposals = []string{
			headsPrefix + "gitrollout/promote/" + r.opts.Cluster + "/",
			headsPrefix + "gitrollout/revert/" + r.opts.Cluster + "/",
		}
	}
	r.stats.lookups.Add(1)
	found, err := s.lookUp(ctx, append(prefixes, proposals...))
	if err != nil {
		return Heads{}, err
	}
	heads := Heads{Main: found.ids[main], Proposals: map[string]string{}}
	if heads.Main == "" && branch == "" {
		return Heads{}, fmt.Errorf("%w: the repository has no default branch: it is empty, or its HEAD names a missing branch", ErrNotFound)
	}
	if heads.Main == "" {
		return Heads{}, fmt.Errorf("%w: no branch %q, or the repository is empty", ErrNotFound, branch)
	}
	if r.stateRef != "" {
		heads.State = found.ids[headsPrefix+r.stateRef]
	}
	for name, id := range found.ids {
		if len(proposals) > 0 && hasAnyPrefix(name, proposals) {
			heads.Proposals[strings.TrimPrefix(name, headsPrefix)] = id
		}
	}
	if branch == "" {
		r.mu.Lock()
		r.branch = strings.TrimPrefix(found.head, headsPrefix)
		r.mu.Unlock()
	}
	return heads, nil
}

// update brings the mirror to what was looked up.
func (r *Repo) update(ctx context.Context, s *session, found Heads) (Heads, error) {
	r.mu.Lock()
	known, st := r.heads, r.store
	r.mu.Unlock()
	found.Changed = known.Main == "" || !known.equal(found)
	var wants []plumbing.Hash
	for _, id := range []string{found.Main, found.State} {
		if id == "" {
			continue
		}
		hash, err := parseID(id)
		if err != nil {
			return Heads{}, err
		}
		if !st.holds(hash) && !slices.Contains(wants, hash) {
			wants = append(wants, hash)
		}
	}
	if len(wants) > 0 {
		if err := r.bring(ctx, s, st, wants); err != nil {
			return Heads{}, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heads = found
	r.heads.Proposals = maps.Clone(found.Proposals)
	if len(wants) > 0 {
		r.renew()
	}
	return found, nil
}

// bring downloads commits into the store and makes sure that they are whole.
func (r *Repo) bring(ctx context.Context, s *session, st *store, wants []plumbing.Hash) error {
	haves := r.haves(st)
	err := r.downloadWhole(ctx, s, st, wants, haves, shallow)
	if err == nil || len(haves) == 0 || isSentinel(classify(err)) || isMissingObject(err) || ctx.Err() != nil {
		return err
	}
	// The server left out something that we do not have, or made deltas against it. Ask as if we had nothing.
	again, err := r.link.open(ctx, uploadPack)
	if err != nil {
		return err
	}
	defer again.close()
	return r.downloadWhole(ctx, again, st, wants, nil, shallow)
}

func (r *Repo) downloadWhole(ctx context.Context, s *session, st *store, wants, haves []plumbing.Hash, d depth) error {
	r.stats.fetches.Add(1)
	if err := s.download(ctx, st, wants, haves, d); err != nil {
		s.stale()
		return err
	}
	for _, want := range wants {
		if err := st.verify(want); err != nil {
			return fmt.Errorf("the server sent an incomplete pack: %w", err)
		}
	}
	return nil
}

// haves are the last heads: with one or two of them, the server's work does not grow with our age.
func (r *Repo) haves(st *store) []plumbing.Hash {
	r.mu.Lock()
	defer r.mu.Unlock()
	var haves []plumbing.Hash
	for _, id := range []string{r.heads.Main, r.heads.State} {
		if hash := plumbing.NewHash(id); id != "" && st.holds(hash) {
			haves = append(haves, hash)
		}
	}
	return haves
}
