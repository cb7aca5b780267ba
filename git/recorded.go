package git

import (
	"context"

	"gitrollout.dev/gitrollout/rollout"
)

// Recorded lists the commits that follow `after`, up to upTo, oldest first. Each has its readable, changed app states.
func Recorded(ctx context.Context, in *Repo, after, upTo string) ([]rollout.StateCommit, error) {
	line, err := in.Line(ctx, after, upTo)
	if err != nil {
		return nil, err
	}
	var all []rollout.StateCommit
	for i, commit := range line[1:] {
		changes, err := Changes(line[i], commit, "apps")
		if err != nil {
			return nil, err
		}
		info := commit.Commit()
		made := rollout.StateCommit{ID: info.ID, Parent: line[i].Commit().ID, When: info.When}
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
