package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// lane admits one network operation at a time. Each kind of operation has a lane, so a hanging operation delays only
// its kind.
type lane chan struct{}

func newLane() lane { return make(lane, 1) }

func (r *Repo) onNetwork(ctx context.Context, on lane, what string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	select {
	case on <- struct{}{}:
		defer func() { <-on }()
	case <-ctx.Done():
		return fmt.Errorf("%s %s: %w", what, r.remote, wire.Classify(ctx.Err()))
	}
	if err := do(ctx); err != nil {
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = errors.Join(ctx.Err(), err)
		}
		return fmt.Errorf("%s %s: %w", what, r.remote, wire.Classify(err))
	}
	return nil
}

// Fetch looks up all branches with one request. A second request downloads new heads, but no proposals. If the newest
// commit has no accepted signature, Main is an older accepted commit. If the configuration in Git renames or moves the
// state branch, Fetch repeats the lookup. Errors: ErrNotFound (repository or users' branch), ErrAuth, ErrUnreachable.
func (r *Repo) Fetch(ctx context.Context) (heads rollout.Heads, err error) {
	err = r.onNetwork(ctx, r.looking, "fetch", func(ctx context.Context) (err error) {
		if heads, err = r.fetch(ctx); err != nil {
			return err
		}
		if err = r.followed.judge(ctx, r, &heads); err != nil {
			return err
		}
		moved, err := r.followStateBranch(ctx, heads.Main)
		if err != nil || !moved {
			return err
		}
		again, err := r.fetch(ctx)
		heads.State, heads.Proposals = again.State, again.Proposals // Main is already checked
		return err
	})
	if err != nil {
		return rollout.Heads{}, err
	}
	return heads, nil
}

func (r *Repo) fetch(ctx context.Context) (rollout.Heads, error) {
	r.mu.Lock()
	before := r.arrived
	r.mu.Unlock()
	s, err := r.server.ToFetch(ctx)
	if err != nil {
		return rollout.Heads{}, err
	}
	defer s.Close()
	found, err := r.lookUpHeads(ctx, s)
	if err == nil {
		err = lookUpState(ctx, r, &found)
	}
	if err != nil {
		s.Stale()
		return rollout.Heads{}, err
	}
	return r.update(ctx, s, found, before)
}

func (m *mirror) lookUpHeads(ctx context.Context, s *wire.Session) (rollout.Heads, error) {
	branch, state := m.Branch(), m.StateBranch()
	main := m.refs + branch
	if branch == "" {
		main = "HEAD"
	}
	prefixes := []string{main}
	for _, name := range append([]string{state, m.policyRef}, m.proposals()...) {
		if name != "" {
			prefixes = append(prefixes, m.refs+name)
		}
	}
	found, err := s.LookUp(ctx, prefixes)
	switch {
	case err != nil:
		return rollout.Heads{}, err
	case found.IDs[main] == "" && branch == "":
		return rollout.Heads{}, fmt.Errorf(
			"%w: the repository has no default branch: it is empty, or its HEAD names a missing branch", ErrNotFound)
	case found.IDs[main] == "":
		return rollout.Heads{}, fmt.Errorf("%w: no branch %q, or the repository is empty", ErrNotFound, branch)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if branch == "" {
		m.branch = strings.TrimPrefix(found.Head, headsPrefix)
	}
	heads := rollout.Heads{Main: found.IDs[main], Proposals: map[string]string{}}
	for name, id := range found.IDs {
		if short := strings.TrimPrefix(name, m.refs); short != m.branch {
			m.place(&heads, short, id)
		}
	}
	return heads, nil
}

// update downloads and stores the heads of a lookup. If this process pushed a branch after the lookup began, the pushed
// head stays.
func (r *Repo) update(ctx context.Context, s *wire.Session, found rollout.Heads, before int) (rollout.Heads, error) {
	r.mu.Lock()
	found = r.overtaken(found, before)
	ahead := r.heads.Main != "" && (r.heads.State != "" || found.State == "") &&
		(r.heads.Policy != "" || found.Policy == "")
	r.mu.Unlock()
	wants, err := r.lacking(found.Main, found.State, found.Policy)
	if err != nil {
		return rollout.Heads{}, err
	}
	if len(wants) > 0 {
		if err := r.bring(ctx, s, wants, ahead); err != nil {
			return rollout.Heads{}, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	found = r.overtaken(found, before)
	maps.DeleteFunc(r.pushed, func(_ string, p pushed) bool { return p.number <= before })
	r.heads = found
	r.heads.Proposals = maps.Clone(found.Proposals)
	if len(wants) > 0 {
		r.renew()
	}
	return found, nil
}

// bring downloads commits in up to three attempts. If each branch has a known head (`ahead`), the first requests all
// commits since these heads. After a revert, this pack may lack files. The second requests only the new heads (80 ms of
// the server's CPU at 5,000 folders). The third names no known heads, so the server sends all files.
func (r *Repo) bring(
	ctx context.Context, s *wire.Session, wants []plumbing.Hash, ahead bool, also ...string,
) error {
	st, done := r.filling()
	defer done()
	haves := r.haves(st, also...)
	questions := []wire.Question{
		{Wants: wants, Haves: haves, Depth: wire.Full},
		{Wants: wants, Haves: haves, Depth: wire.Shallow},
		{Wants: wants, Depth: wire.Shallow},
	}
	switch {
	case len(haves) == 0:
		questions = questions[2:]
	case !ahead:
		questions = questions[1:]
	}
	for {
		err := r.downloadWhole(ctx, s, st, questions[0])
		questions = questions[1:]
		if err == nil || len(questions) == 0 || wire.IsKnown(wire.Classify(err)) || wire.IsMissing(err) || ctx.Err() != nil {
			return err
		}
		if s, err = r.server.ToFetch(ctx); err != nil {
			return err
		}
		defer s.Close()
	}
}

func (m *mirror) downloadWhole(ctx context.Context, s *wire.Session, st *store, q wire.Question) error {
	into := st
	if q.Between() { // commits between heads may lack files, so the mirror does not keep them
		into = newStore()
		into.under = st
	}
	if err := s.Fetch(ctx, into, q); err != nil {
		s.Stale()
		return err
	}
	into.forgive(len(q.Haves) == 0)
	defer into.forgive(false)
	if into != st {
		m.noteParents(into)
	}
	for _, want := range q.Wants {
		if into != st {
			if err := into.reach(want, st); err != nil {
				return err
			}
		}
		if err := st.verify(want); err != nil {
			return fmt.Errorf("the server sent an incomplete pack: %w", err)
		}
	}
	return nil
}
