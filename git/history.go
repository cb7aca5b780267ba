package git

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
)

// ErrUnapproved is a signature that does not count, or one that was not found: the text says which and why.
var ErrUnapproved = errors.New("not signed by somebody who may")

// depths is how much history is asked for, in turn: none, as what is here may be enough; then some, which it
// nearly always is; and past the last one nothing is found. One step of the history is one commit.
var depths = []depth{shallow, 50, maxDepth}

const maxDepth = 1000

// LastSigned is the nearest commit, from the given one along the first parents, whose signature counts.
//
// ErrUnapproved: there is none among the last thousand. Also ErrNotFound, ErrAuth and ErrUnreachable.
func (r *Repo) LastSigned(ctx context.Context, commit string, v Verifier) (id string, err error) {
	for _, d := range depths {
		st, err := r.history(ctx, commit, d)
		if err != nil {
			return "", err
		}
		ended := false
		for id, n := commit, 0; n < maxDepth && !ended; n++ {
			s, ok, err := at(st, id)
			if err != nil {
				return "", err
			}
			if !ok {
				break
			}
			if _, err := s.SignedBy(v); err == nil {
				return id, nil
			}
			if ended = len(s.commit.Parents) == 0; !ended {
				id = s.commit.Parents[0]
			}
		}
		if ended {
			break
		}
	}
	return "", fmt.Errorf("%w: no commit before %s", ErrUnapproved, commit[:7])
}

// Introducer tells who signed the commit that brought in what is at a path in the given commit. That is
//   - the commit that wrote it, if its signature counts, or
//   - a merge whose signature counts and whose first parent did not have it.
//
// Commits that leave the path as it is say nothing about it, whoever signed them.
//
// ErrUnapproved: the signature does not count, or the history of the last thousand commits does not show
// where the content is from. Also ErrNotFound (nothing is at the path), ErrAuth and ErrUnreachable.
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
	return "", fmt.Errorf("%w: what is at %s is from before the last %d commits; change it once more", ErrUnapproved, path, maxDepth)
}

// history gives a store with at least the commits that a commit reaches in so many steps, and their trees.
func (r *Repo) history(ctx context.Context, commit string, d depth) (*store, error) {
	id, err := parseID(commit)
	if err != nil {
		return nil, err
	}
	st, err := r.ensure(ctx, id)
	if err != nil || d == shallow {
		return st, err
	}
	what := "read the history of " + commit[:7] + " from"
	err = r.onNetwork(ctx, r.bringing, what, func(ctx context.Context) error {
		s, err := r.link.open(ctx, uploadPack)
		if err != nil {
			return err
		}
		defer s.close()
		return r.downloadWhole(ctx, s, st, []plumbing.Hash{id}, []plumbing.Hash{id}, d)
	})
	return st, err
}

// at reads a commit of the history; ok is false past its end.
func at(st *store, id string) (s *Snapshot, ok bool, err error) {
	hash, err := parseID(id)
	if err != nil || st.get(hash) == nil {
		return nil, false, err
	}
	s, err = newSnapshot(st, hash)
	return s, err == nil, err
}

// walk looks for the commit that brought in what is at a path.
type walk struct {
	store    *store
	path     string
	verifier Verifier
	seen     map[string]bool
}

// maxWalk bounds how many commits are looked at: in a history with many forks, more than one for each step.
const maxWalk = 20_000

// errShallow is a history that ends before the answer.
var errShallow = errors.New("the history is not deep enough")

// from finds it from a commit on. Of a merge whose signature does not count, each parent that has the content
// may answer.
func (w *walk) from(commit string) (signer string, err error) {
	s, ok, err := at(w.store, commit)
	if err != nil || !ok {
		return "", errors.Join(err, errShallow)
	}
	entry, ok, err := s.Lookup(w.path)
	if err == nil && !ok {
		err = fmt.Errorf("%s in %s: %w", w.path, commit[:7], ErrNotFound)
	}
	if err != nil {
		return "", err
	}
	return w.find(s, entry)
}

func (w *walk) find(s *Snapshot, entry Entry) (signer string, err error) {
	for {
		switch {
		case w.seen[s.commit.ID]:
			return "", fmt.Errorf("%w: commit %s", ErrUnapproved, s.commit.ID[:7])
		case len(w.seen) > maxWalk:
			return "", errShallow
		}
		w.seen[s.commit.ID] = true
		having, first, err := w.parentsWith(s, entry)
		if err != nil {
			return "", err
		}
		if !first {
			if signer, err = s.SignedBy(w.verifier); err == nil {
				return signer, nil
			}
			if len(having) == 0 {
				return "", fmt.Errorf("%w: %w", ErrUnapproved, err)
			}
		}
		// The first parent goes on in this loop: a history is a long line with few forks.
		for _, parent := range having[1:] {
			if signer, err = w.find(parent, entry); !errors.Is(err, ErrUnapproved) {
				return signer, err
			}
		}
		s = having[0]
	}
}

// parentsWith lists the parents that have the same content at the path, and tells whether the first one does.
func (w *walk) parentsWith(s *Snapshot, entry Entry) (having []*Snapshot, first bool, err error) {
	for i, id := range s.commit.Parents {
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
