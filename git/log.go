package git

import "context"

// logDepths are how far a log is read, in turn: each reading asks for about five times as much as the one
// before, so that a short look costs little and a long one few requests. Nothing is read past the last one.
var logDepths = []depth{shallow, 100, 500, 2500, 10_000, 40_000, 150_000}

// Log visits a commit and what came before it along the first parents, newest first, until visit says that
// this is enough, or limit commits have been visited. whole tells that the history's beginning was reached.
//
// Commits that are not here are fetched with their files, in steps. Also ErrNotFound, ErrAuth and
// ErrUnreachable; an error of visit ends the walk and is returned as it is.
func (r *Repo) Log(ctx context.Context, commit string, limit int, visit func(*Snapshot) (more bool, err error)) (whole bool, err error) {
	next, visited := commit, 0
	for _, d := range logDepths {
		if int(d) > limit {
			d = depth(limit)
		}
		st, err := r.history(ctx, commit, max(d, shallow))
		if err != nil {
			return false, err
		}
		for visited < limit {
			s, ok, err := at(st, next)
			if err != nil {
				return false, err
			}
			if !ok {
				break // it is further back than what was asked for
			}
			visited++
			if more, err := visit(s); err != nil || !more {
				return false, err
			}
			if len(s.commit.Parents) == 0 {
				return true, nil
			}
			next = s.commit.Parents[0]
		}
		if visited >= limit {
			return false, nil
		}
	}
	return false, nil
}
