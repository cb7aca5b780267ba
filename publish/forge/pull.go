package forge

import (
	"context"

	"gitrollout.dev/gitrollout/rollout"
)

// Pull opens or updates a branch's pull request. The argument commit is the branch's newest commit. If a user closed
// the pull request at this commit, it stays closed. Pull returns the number, and whether the pull request is open.
func Pull(
	ctx context.Context, o Options, config rollout.Forge, branch, commit, title, body string,
) (number int, isOpen bool, err error) {
	t, a, err := o.reach(config)
	if err != nil {
		return 0, false, err
	}
	h := t.kind.client(a, t.repository, o.Branch)
	want := text{title, body}
	was, found, err := h.find(ctx, branch)
	switch {
	case err != nil:
		return 0, false, err
	case found && was.isOpen:
		return was.number, true, update(ctx, h, was, want, false)
	case found && !was.merged && was.commit == commit:
		return was.number, false, nil
	}
	is, err := h.create(ctx, branch, want)
	return is.number, err == nil, err
}
