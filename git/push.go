package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// Push makes a commit for each update, and moves all branches atomically on servers that support this (git, GitHub,
// GitLab, Gitea). Other servers get the updates in turn, until an update fails. If the state branch is in another
// repository, Push is not atomic. Push returns the new heads. It skips an update that changes no file, or whose commit
// is already the branch's head.
//
// Errors: ErrConflict if a branch was not at Old. After ErrConflict, an atomic push has written nothing. ErrRejected if
// a hook or branch protection refuses the push. ErrUnreachable if the outcome is unknown until the next Fetch. A
// repeated Push makes the same commits.
func (r *Repo) Push(ctx context.Context, updates []rollout.Update) (map[string]string, error) {
	i := slices.IndexFunc(updates, func(u rollout.Update) bool { return holder(r, u.Branch) != r })
	if i < 0 {
		return pushTo(ctx, r, updates)
	}
	// The state branch is pushed last. If its push fails, the pushed proposals do no harm.
	proposed, err := pushTo(ctx, r, slices.Delete(slices.Clone(updates), i, i+1))
	if err != nil {
		return nil, err
	}
	heads, err := pushTo(ctx, holder(r, updates[i].Branch), updates[i:i+1])
	if err == nil {
		maps.Copy(heads, proposed)
	}
	return heads, err
}

func pushTo(ctx context.Context, r *Repo, updates []rollout.Update) (map[string]string, error) {
	heads := make(map[string]string, len(updates))
	made := newStore()
	var commands []wire.Command
	for _, u := range updates {
		c, send, err := r.prepare(ctx, u, made)
		if err != nil {
			return nil, err
		}
		if send {
			if slices.ContainsFunc(commands, func(other wire.Command) bool { return other.Ref == c.Ref }) {
				return nil, fmt.Errorf("branch %s is updated twice in one push", c.Ref.Short())
			}
			commands = append(commands, c)
		}
		switch {
		case u.Delete:
		case send:
			heads[u.Branch] = c.New.String()
		default:
			heads[u.Branch] = u.Old
		}
	}
	if len(commands) == 0 {
		return heads, nil
	}
	err := r.onNetwork(ctx, r.pushing, "push to", func(ctx context.Context) error { return r.send(ctx, commands, made) })
	if err != nil {
		return nil, err
	}
	return heads, nil
}

func (r *Repo) prepare(ctx context.Context, u rollout.Update, made *store) (c wire.Command, send bool, err error) {
	if c, err = commandOf(u); err != nil {
		return c, false, err
	}
	if u.Delete {
		return c, !c.Old.IsZero(), nil
	}
	b := &builder{from: newStore(), made: newStore()}
	var parent, tree plumbing.Hash
	if u.Parent != "" {
		if parent, err = parseID(u.Parent); err != nil {
			return c, false, err
		}
		if b.from, err = r.ensure(ctx, parent); err != nil {
			return c, false, err
		}
		commit, err := b.from.commit(parent)
		if err != nil {
			return c, false, err
		}
		tree = commit.TreeHash
	}
	after, err := b.root(tree, u)
	if err != nil {
		return c, false, fmt.Errorf("branch %s: %w", u.Branch, err)
	}
	if !parent.IsZero() && after == tree {
		return c, false, nil
	}
	if c.New, err = r.opts.commit(b.made, after, parent, u); err != nil {
		return c, false, err
	}
	made.addAll(b.made)
	return c, c.New != c.Old, nil
}

func (o *Options) commit(into *store, tree, parent plumbing.Hash, u rollout.Update) (plumbing.Hash, error) {
	data, err := encodeCommit(tree, parent, cmp.Or(u.Author, o.Identity), u.When, u.Message)
	if err == nil && o.Sign != nil {
		data, err = o.Sign(data)
	}
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("branch %s: %w", u.Branch, err)
	}
	return into.Keep(plumbing.CommitObject, data), nil
}

// commandOf validates an update. Only proposals may be deleted or force-pushed.
func commandOf(u rollout.Update) (c wire.Command, err error) {
	if c.Ref, err = branchRef(u.Branch); err != nil {
		return c, err
	}
	if err := checkIdentity(cmp.Or(u.Author, Self)); err != nil {
		return c, err
	}
	if u.Old != "" {
		if c.Old, err = parseID(u.Old); err != nil {
			return c, err
		}
	}
	switch force := !u.Delete && u.Old != "" && u.Parent != u.Old; {
	case rollout.IsProposal(c.Ref.Short()):
	case u.Delete:
		return c, fmt.Errorf("branch %s: only proposals may be deleted", u.Branch)
	case force:
		return c, fmt.Errorf("branch %s: the parent %q is not the branch's commit %q, and only proposals may be forced",
			u.Branch, u.Parent, u.Old)
	}
	return c, nil
}

func (b *builder) root(tree plumbing.Hash, u rollout.Update) (plumbing.Hash, error) {
	edits, err := plan(u.Edits)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	after, err := b.tree(tree, "", edits)
	if err == nil && after.IsZero() {
		after = b.made.Keep(plumbing.TreeObject, nil)
	}
	return after, err
}

func (r *Repo) send(ctx context.Context, commands []wire.Command, made *store) error {
	s, err := r.server.ToPush(ctx)
	if err != nil {
		return err
	}
	if len(commands) > 1 && !s.Atomic() {
		s.Close()
		for _, c := range commands {
			if err := r.send(ctx, []wire.Command{c}, made); err != nil {
				return err
			}
		}
		return nil
	}
	if moved := wire.Moved(s.Refs, commands); len(moved) > 0 {
		s.Close()
		return r.resolve(ctx, commands, made, fmt.Errorf("%w: %s", ErrConflict, strings.Join(moved, ", ")))
	}
	err = s.Push(ctx, commands, made, made.ids())
	s.Close()
	if err != nil {
		if no := new(wire.Refused); !errors.As(err, &no) {
			s.Stale()
		}
		return r.resolve(ctx, commands, made, err)
	}
	r.raced.Store(false)
	r.land(commands, made)
	return nil
}

// resolve returns why a push failed, or nil if all refs are at New. It looks up the refs, because git's "failed to
// update ref" can mean another push, a lock or a full disk. If two pushes in a row find a ref locked but still at Old,
// the error is ErrRejected. The cause is a stale lock, or a branch name that blocks the ref ("a" blocks "a/b").
func (r *Repo) resolve(ctx context.Context, commands []wire.Command, made *store, cause error) error {
	err := wire.Classify(cause)
	if errors.Is(err, ErrAuth) || ctx.Err() != nil {
		return err
	}
	now, lookErr := lookUpRefs(ctx, r.server, commands)
	away := func(c wire.Command) bool { return plumbing.NewHash(now[string(c.Ref)]) != c.New }
	if lookErr == nil && !slices.ContainsFunc(commands, away) {
		r.raced.Store(false)
		r.land(commands, made)
		return nil
	}
	moved := wire.Moved(now, commands)
	var no *wire.Refused
	switch {
	case errors.Is(err, ErrConflict):
		r.raced.Store(false)
		return err
	case len(moved) > 0:
		r.raced.Store(false)
		return fmt.Errorf("%w: %s: %w", ErrConflict, strings.Join(moved, ", "), cause)
	case !errors.As(cause, &no):
		return err
	case (no.Race || lookErr != nil && no.Moved) && !r.raced.Swap(true):
		return fmt.Errorf("%w: %w", ErrConflict, cause)
	}
	return fmt.Errorf("%w: %w", ErrRejected, cause)
}

func lookUpRefs(ctx context.Context, at *wire.Server, commands []wire.Command) (map[string]string, error) {
	s, err := at.ToFetch(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	names := rollout.Mapped(commands, func(c wire.Command) string { return string(c.Ref) })
	found, err := s.LookUp(ctx, names)
	return found.IDs, err
}

// CommitAttempts limits the attempts of CommitToBranch.
const CommitAttempts = 5

// CommitToBranch commits to a shared branch, and tries again after ErrConflict. build gets the branch's Snapshot, which
// is empty for a new branch. CommitToBranch sets Branch, Old and Parent. If nothing changes, the returned id is "".
func (r *Repo) CommitToBranch(
	ctx context.Context, branch string, build func(*Snapshot) (rollout.Update, error),
) (string, error) {
	ref, err := branchRef(branch)
	if err != nil {
		return "", err
	}
	r = holder(r, branch)
	for attempt := 1; ; attempt++ {
		var now map[string]string
		err := r.onNetwork(ctx, r.pushing, "look up "+ref.Short()+" in", func(ctx context.Context) (err error) {
			now, err = lookUpRefs(ctx, r.server, []wire.Command{{Ref: ref}})
			return err
		})
		if err != nil {
			return "", err
		}
		base, snapshot := now[string(ref)], EmptySnapshot()
		if base != "" {
			if snapshot, err = r.Snapshot(ctx, base); err != nil {
				return "", err
			}
		}
		update, err := build(snapshot)
		if err != nil {
			return "", err
		}
		update.Branch, update.Old, update.Parent, update.Delete = branch, base, base, false
		heads, err := r.Push(ctx, []rollout.Update{update})
		switch {
		case err == nil && heads[branch] == base:
			return "", nil
		case err == nil || !errors.Is(err, ErrConflict) || attempt == CommitAttempts:
			return heads[branch], err
		}
	}
}

// Compact replaces a branch's head (base) by a commit with the same files and no parent. A new branch (archive) keeps
// the old head. If pushes are not atomic, the archive is pushed first. Errors: ErrConflict if the head is not base or
// the archive exists, ErrRejected if the server refuses the forced push.
func (r *Repo) Compact(ctx context.Context, branch, archive, base, message string, when time.Time) (string, error) {
	from, err := branchRef(branch)
	if err != nil {
		return "", err
	}
	r = holder(r, branch)
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
