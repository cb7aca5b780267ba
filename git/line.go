package git

import (
	"context"
	"fmt"
	"slices"
)

// Line lists the commits after one up to another one along the first parents, the oldest first. The first
// snapshot is that of the commit that they come after; it is empty if that is "", which means all commits.
//
// ErrNotFound: the line does not lead there within a thousand commits. Also ErrAuth and ErrUnreachable.
func (r *Repo) Line(ctx context.Context, after, upTo string) ([]*Snapshot, error) {
	for _, d := range depths {
		st, err := r.history(ctx, upTo, d)
		if err != nil {
			return nil, err
		}
		var line []*Snapshot
		for id, ended := upTo, false; !ended && len(line) <= maxDepth; {
			s, ok, err := at(st, id)
			if err != nil {
				return nil, err
			}
			if !ok {
				break
			}
			line = append(line, s)
			switch ended = len(s.commit.Parents) == 0; {
			case id == after:
				slices.Reverse(line)
				return line, nil
			case ended && after == "":
				slices.Reverse(line)
				return append([]*Snapshot{EmptySnapshot()}, line...), nil
			case ended:
				return nil, fmt.Errorf("commit %s: %w before %s", after, ErrNotFound, upTo)
			default:
				id = s.commit.Parents[0]
			}
		}
	}
	return nil, fmt.Errorf("commit %s: %w among the %d commits before %s", after, ErrNotFound, maxDepth, upTo)
}
