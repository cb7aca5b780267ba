package forge

import (
	"context"

	"gitrollout.dev/gitrollout/rollout"
)

// Pull makes the pull request of a branch, which is at a commit, what it is to be: the one that is open, or a new one.
// One that somebody has closed with this commit is left so. It returns its number, and whether it is open.
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
