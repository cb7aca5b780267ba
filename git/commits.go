package git

import "context"

// Commits are the newest commits from the given one along the first parents, itself first: at most so many
// as asked for, and at most a thousand. It asks the server for that much history, so a caller keeps the
// answer for as long as the branch stays where it is.
//
// ErrNotFound, ErrAuth and ErrUnreachable as Snapshot.
func (r *Repo) Commits(ctx context.Context, from string, limit int) ([]*Snapshot, error) {
	limit = min(limit, maxDepth)
	st, err := r.history(ctx, from, depth(limit))
	if err != nil {
		return nil, err
	}
	var found []*Snapshot
	for id := from; len(found) < limit; {
		s, ok, err := at(st, id)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		found = append(found, s)
		if len(s.commit.Parents) == 0 {
			break
		}
		id = s.commit.Parents[0]
	}
	return found, nil
}
