package git

import (
	"context"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"gitrollout.dev/gitrollout/git/wire"
)

// Branches looks up branches in one request, and downloads moved heads in a second. It returns existing branches'
// heads; r.Held has the commits. url is as in At. "known" has the last call's heads by branch, or "". Errors:
// ErrNotFound (repository), ErrAuth, ErrUnreachable.
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

// replace lets renew drop the former heads of branches, and marks the new heads as used.
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
