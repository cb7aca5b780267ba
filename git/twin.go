package git

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// At returns a Repo for another repository on r's server, with r's credentials. If url is "", At returns r.
func At(r *Repo, url string) (*Repo, error) {
	if url == "" {
		return r, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if twin := r.twins[url]; twin != nil {
		return twin, nil
	}
	remote, _, err := wire.ParseRemote(url)
	if err != nil {
		return nil, err
	}
	if !remote.IsBeside(r.remote) { // another server must not get r's credentials
		return nil, fmt.Errorf("%s is not on the server of %s", remote, r.remote)
	}
	twin := r.Beside()
	twin.remote, twin.looking = remote, newLane()
	if twin.server, err = wire.Open(remote, r.opts.Auth, r.opts.MaxBytes); err != nil {
		return nil, err
	}
	r.twins[url] = twin
	return twin, nil
}

// keepStateAt makes r look for the state branch in another repository, or in r's repository if url is "".
func keepStateAt(r *Repo, url, branch string) (moved bool, err error) {
	var at *Repo
	if url != "" && r.refs == headsPrefix { // in a clone, the user has fetched the state branch into refs/remotes
		if at, err = At(r, url); err != nil {
			return false, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if moved = branch != r.stateRef || at != r.stateAt; moved {
		r.stateRef, r.stateAt, r.heads.State = branch, at, ""
	}
	return moved, nil
}

func holder(r *Repo, branch string) *Repo {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stateAt != nil && strings.TrimPrefix(branch, headsPrefix) == r.stateRef {
		return r.stateAt
	}
	return r
}

func holders(r *Repo, commit plumbing.Hash) []*Repo {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stateAt == nil || r.stateAt == r:
		return []*Repo{r}
	case commit.String() == r.heads.State:
		return []*Repo{r.stateAt, r}
	}
	return []*Repo{r, r.stateAt}
}

func lookUpState(ctx context.Context, r *Repo, found *rollout.Heads) error {
	r.mu.Lock()
	at, branch, known := r.stateAt, r.stateRef, r.heads.State
	r.mu.Unlock()
	if at == nil {
		return nil
	}
	heads, err := branchesAt(ctx, at, map[string]string{branch: known})
	if err != nil {
		return fmt.Errorf("stateRepo %s: %w", at.remote, err)
	}
	found.State = heads[branch]
	return nil
}

// Branches looks up the branches in `known` with one request, and downloads moved heads with another. It returns the
// heads of existing branches; r.Held returns their commits. `url` is as in At. `known` has each branch's head from the
// last call, or "". Errors: ErrNotFound (repository), ErrAuth, ErrUnreachable.
func Branches(ctx context.Context, r *Repo, url string, known map[string]string) (heads map[string]string, err error) {
	if r, err = At(r, url); err != nil {
		return nil, err
	}
	err = r.onNetwork(ctx, r.bringing, "read branches of", func(ctx context.Context) (err error) {
		heads, err = branchesAt(ctx, r, known)
		return err
	})
	return heads, err
}

func branchesAt(ctx context.Context, r *Repo, known map[string]string) (map[string]string, error) {
	s, err := r.server.ToFetch(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	heads, err := r.lookUpBranches(ctx, s, known)
	if err != nil {
		s.Stale()
		return nil, err
	}
	wants, err := r.lacking(slices.Collect(maps.Values(heads))...)
	if err == nil && len(wants) > 0 {
		err = r.bring(ctx, s, wants, false, slices.Collect(maps.Values(known))...)
	}
	if err == nil {
		r.replace(known, heads)
	}
	return heads, err
}

func (m *mirror) lookUpBranches(
	ctx context.Context, s *wire.Session, known map[string]string,
) (heads map[string]string, err error) {
	var names []string
	for _, branch := range slices.Sorted(maps.Keys(known)) {
		if _, err := branchRef(branch); err != nil {
			return nil, err
		}
		names = append(names, m.refs+branch)
	}
	found, err := s.LookUp(ctx, names)
	heads = map[string]string{}
	for branch := range known {
		if id := found.IDs[m.refs+branch]; id != "" {
			heads[branch] = id
		}
	}
	return heads, err
}

func (m *mirror) replace(former, heads map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range former {
		delete(m.recent, plumbing.NewHash(id))
	}
	for _, id := range heads {
		m.use(plumbing.NewHash(id))
	}
	m.renew()
}
