package git

import (
	"context"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// Compact replaces a branch's head (base) with a commit that has the same files and no parent. A new branch (archive)
// keeps the old head. A server without atomic pushes gets the new branch first. Errors: ErrConflict if the branch's
// head is not base or the archive exists already, ErrRejected if the server refuses the forced push.
func (r *Repo) Compact(ctx context.Context, branch, archive, base, message string, when time.Time) (string, error) {
	from, err := branchRef(branch)
	if err != nil {
		return "", err
	}
	to, err := branchRef(archive)
	if err != nil {
		return "", err
	}
	old, store, err := r.having(ctx, base)
	if err != nil {
		return "", err
	}
	commit, err := store.commit(old)
	if err != nil {
		return "", err
	}
	made := newStore()
	u := rollout.Update{Branch: branch, Message: message, When: when}
	root, err := r.opts.commit(made, commit.TreeHash, plumbing.ZeroHash, u)
	if err != nil {
		return "", err
	}
	commands := []wire.Command{{Ref: to, New: old}, {Ref: from, Old: old, New: root}}
	err = r.onNetwork(ctx, r.pushing, "push to", func(ctx context.Context) error { return r.send(ctx, commands, made) })
	if err != nil {
		return "", err
	}
	return root.String(), nil
}
