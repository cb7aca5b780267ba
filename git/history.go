package git

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// ErrUnapproved means that a signature is missing or refused.
var ErrUnapproved = errors.New("not signed by an allowed signer")

// depths are the numbers of commits that Introducer and Merge try, one after the other. 50 commits nearly always
// suffice.
var depths = []wire.Depth{wire.Shallow, 50, maxDepth}

const maxDepth = 1000

// Log calls visit for a commit and its ancestors along first parents. It stops after limit commits, or if visit returns
// false. whole means that visit saw all commits back to a root. Errors: ErrNotFound, ErrAuth, ErrUnreachable, and
// visit's own.
func (r *Repo) Log(
	ctx context.Context, commit string, limit int, visit func(*Snapshot) (more bool, err error),
) (whole bool, err error) {
	next, visited := commit, 0
	// A factor of about five keeps the downloads small and the requests few.
	for _, d := range []wire.Depth{wire.Shallow, 100, 500, 2500, 10_000, 40_000, 150_000} {
		st, err := r.history(ctx, commit, max(min(d, wire.Depth(limit)), wire.Shallow))
		if err != nil {
			return false, err
		}
		for visited < limit {
			s, ok, err := at(st, next)
			if err != nil {
				return false, err
			}
			if !ok {
				break
			}
			visited++
			if more, err := visit(s); err != nil || !more {
				return false, err
			}
			if len(s.parents) == 0 {
				return true, nil
			}
			next = s.parents[0]
		}
		if visited >= limit {
			return false, nil
		}
	}
	return false, nil
}

// Line lists the commits from `after` to upTo along first parents, oldest first, including both. If `after` is "", the
// list begins with an empty snapshot and the root. Errors: ErrNotFound if `after` is not one of the maxDepth commits
// before upTo, ErrAuth, ErrUnreachable.
func (r *Repo) Line(ctx context.Context, after, upTo string) (line []*Snapshot, err error) {
	there := false
	whole, err := r.Log(ctx, upTo, maxDepth+1, func(s *Snapshot) (more bool, err error) {
		line, there = append(line, s), s.commit.ID == after
		return !there, nil
	})
	switch {
	case err != nil:
		return nil, err
	case whole && after == "":
		line = append(line, EmptySnapshot())
	case !there:
		err = fmt.Errorf("commit %s: %w among the %d commits before %s", after, ErrNotFound, len(line)-1, upTo)
	}
	slices.Reverse(line)
	return line, err
}

// LastSigned returns the newest accepted commit along first parents. Errors: ErrUnapproved if none of a thousand
// commits is accepted, ErrNotFound, ErrAuth, ErrUnreachable.
func (r *Repo) LastSigned(ctx context.Context, commit string, v Verifier) (id string, err error) {
	_, err = r.Log(ctx, commit, maxDepth, func(s *Snapshot) (more bool, err error) {
		if _, err := s.SignedBy(v); err == nil {
			id = s.commit.ID
		}
		return id == "", nil
	})
	if err == nil && id == "" {
		err = fmt.Errorf("%w: no commit before %s", ErrUnapproved, rollout.ShortID(commit))
	}
	return id, err
}

// Introducer returns the signer of the commit that wrote a path's current content, or of a merge whose first parent
// lacked the content. Errors: ErrUnapproved if no such signature is accepted or the content is older than a thousand
// commits, ErrNotFound if the path does not exist, ErrAuth, ErrUnreachable. Without a Verifier, it returns the author.
func (r *Repo) Introducer(ctx context.Context, commit, path string, v Verifier) (signer string, err error) {
	for _, d := range depths {
		st, err := r.history(ctx, commit, d)
		if err != nil {
			return "", err
		}
		w := walk{store: st, path: path, verifier: v, seen: map[string]bool{}}
		if signer, err = w.from(commit); !errors.Is(err, errShallow) {
			return signer, err
		}
	}
	return "", fmt.Errorf("%w: %s is older than the last %d commits; change it once more", ErrUnapproved, path, maxDepth)
}

func (r *Repo) history(ctx context.Context, commit string, d wire.Depth) (*store, error) {
	id, st, err := r.having(ctx, commit)
	if err != nil || d == wire.Shallow {
		return st, err
	}
	what := "read the history of " + rollout.ShortID(commit) + " from"
	err = r.onNetwork(ctx, r.bringing, what, func(ctx context.Context) (err error) {
		for _, at := range holders(r, id) {
			if err = deepen(ctx, at, st, id, d); !isMissing(err) {
				break
			}
		}
		return err
	})
	return st, err
}

func deepen(ctx context.Context, r *Repo, st *store, id plumbing.Hash, d wire.Depth) error {
	s, err := r.server.ToFetch(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	tip := []plumbing.Hash{id}
	return r.downloadWhole(ctx, s, st, wire.Question{Wants: tip, Haves: tip, Depth: d})
}

func at(st *store, id string) (s *Snapshot, ok bool, err error) {
	hash, err := parseID(id)
	if err != nil || st.verify(hash) != nil {
		return nil, false, err
	}
	s, err = newSnapshot(st, hash)
	return s, err == nil, err
}

type walk struct {
	store    *store
	path     string
	verifier Verifier
	seen     map[string]bool
}

var errShallow = errors.New("the history is not deep enough")

func (w *walk) from(commit string) (signer string, err error) {
	s, ok, err := at(w.store, commit)
	if err != nil || !ok {
		return "", errors.Join(err, errShallow)
	}
	entry, ok, err := s.Lookup(w.path)
	if err == nil && !ok {
		err = fmt.Errorf("%s in %s: %w", w.path, rollout.ShortID(commit), ErrNotFound)
	}
	if err != nil {
		return "", err
	}
	return w.find(s, entry)
}

func (w *walk) find(s *Snapshot, entry rollout.Entry) (signer string, err error) {
	for {
		switch {
		case w.seen[s.commit.ID]:
			return "", fmt.Errorf("%w: commit %s", ErrUnapproved, s.commit.Short())
		case len(w.seen) > 20*maxDepth:
			return "", errShallow
		}
		w.seen[s.commit.ID] = true
		having, first, err := w.parentsWith(s, entry)
		if err != nil {
			return "", err
		}
		if !first && w.verifier == nil {
			return s.commit.Author, nil
		}
		if !first {
			if signer, err = s.SignedBy(w.verifier); err == nil {
				return signer, nil
			}
			if len(having) == 0 {
				return "", fmt.Errorf("%w: commit %s: %w", ErrUnapproved, s.commit.Short(), err)
			}
		}
		for i := 1; i < len(having) && w.verifier != nil; i++ { // an author is sought only along first parents
			if signer, err = w.find(having[i], entry); !errors.Is(err, ErrUnapproved) {
				return signer, err
			}
		}
		s = having[0]
	}
}

func (w *walk) parentsWith(s *Snapshot, entry rollout.Entry) (having []*Snapshot, first bool, err error) {
	for i, id := range s.parents {
		parent, ok, err := at(w.store, id)
		if err != nil {
			return nil, false, err
		}
		if !ok {
			return nil, false, errShallow
		}
		was, ok, err := parent.Lookup(w.path)
		if err != nil {
			return nil, false, err
		}
		if ok && was.ID == entry.ID && was.Kind == entry.Kind {
			having = append(having, parent)
			first = first || i == 0
		}
	}
	return having, first, nil
}

// Recorded lists the commits after `after` up to upTo, oldest first. Each commit has the app states that it changed;
// unreadable states are omitted.
func Recorded(ctx context.Context, in *Repo, after, upTo string) (all []rollout.StateCommit, err error) {
	line, err := in.Line(ctx, after, upTo)
	if err != nil {
		return nil, err
	}
	for i, commit := range line[1:] {
		changes, err := Changes(line[i], commit, "apps")
		if err != nil {
			return nil, err
		}
		made := rollout.StateCommit{ID: commit.commit.ID, Parent: line[i].commit.ID, When: commit.commit.When}
		for _, c := range changes {
			before, okBefore := stateAt(line[i], c.Path, c.Old)
			if state, okAfter := stateAt(commit, c.Path, c.New); okBefore && okAfter && state.App != "" {
				made.Apps = append(made.Apps, rollout.RecordedApp{App: state.App, Before: before, After: state})
			}
		}
		all = append(all, made)
	}
	return all, nil
}

func stateAt(tree *Snapshot, path string, e rollout.Entry) (rollout.State, bool) {
	if e.ID == "" {
		return rollout.State{}, true
	}
	data, err := tree.ReadBlob(e.ID)
	if err != nil {
		return rollout.State{}, false
	}
	s, err := rollout.ParseState(path, data)
	if err != nil {
		return rollout.State{}, false
	}
	return *s, true
}
