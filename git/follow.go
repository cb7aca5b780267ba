package git

import (
	"context"
	"errors"
	"fmt"

	"gitrollout.dev/gitrollout/git/sign"
	"gitrollout.dev/gitrollout/rollout"
)

type followed struct {
	configured string // the last commit whose configuration was read

	judged  string // the last checked head, and the keys' version
	trusted string // the last accepted head, or ""
	refused *rollout.Refusal
	base    string // the commit that is read instead of a refused head
}

// judge checks the signature of heads.Main. If the signature is refused, judge sets heads.Refused, and sets Main to the
// last accepted head. If no head was accepted since the start, Main is the newest signed ancestor, of which only the
// configuration is used.
func (f *followed) judge(ctx context.Context, r *Repo, heads *rollout.Heads) error {
	keys := r.opts.Keys
	if keys == nil {
		return nil
	}
	if err := keys.Read(); err != nil {
		return err
	}
	heads.Keys = keys.Version()
	if files := keys.Files(); files.Commits+files.Keyring == "" {
		return nil
	}
	if judged := heads.Main + " " + heads.Keys; judged != f.judged {
		if err := f.judgeAnew(ctx, r, heads.Main); err != nil {
			return err
		}
		f.judged = judged
	}
	if f.refused != nil {
		heads.Main, heads.Refused = f.base, f.refused
	}
	return nil
}

func (f *followed) judgeAnew(ctx context.Context, r *Repo, head string) error {
	tree, err := r.Snapshot(ctx, head)
	if err != nil {
		return err
	}
	policy := r.opts.Keys.Accepted().Commits
	_, reason := tree.SignedBy(policy)
	if reason == nil {
		f.trusted, f.refused = head, nil
		return nil
	}
	if f.base = f.trusted; f.base == "" {
		if f.base, err = r.LastSigned(ctx, head, policy); err != nil {
			return fmt.Errorf("commit %s is not followed: %w; and the commit followed before is unknown: %w",
				rollout.ShortID(head), reason, err)
		}
	}
	f.refused = &rollout.Refusal{Commit: head, Reason: reason.Error(), Blind: f.trusted == ""}
	return nil
}

// followStateBranch reads the state branch's name and repository from a commit's configuration. A missing or invalid
// configuration is reported elsewhere.
func (r *Repo) followStateBranch(ctx context.Context, commit string) (moved bool, err error) {
	if r.opts.Cluster == "" || r.opts.StateBranch != "" || commit == r.followed.configured {
		return false, nil
	}
	tree, err := r.Snapshot(ctx, commit)
	if err != nil {
		return false, err
	}
	file := rollout.ConfigPath(r.opts.Cluster)
	data, missing := tree.ReadFile(file)
	config, invalid := rollout.ParseConfig(file, data)
	if missing == nil && invalid == nil {
		if moved, err = keepStateAt(r, config.StateRepo, config.StateBranch); err != nil {
			return false, rollout.Invalidf(file, "stateRepo", "%v", err).WithFix("name a repository there, with the same scheme")
		}
	}
	r.followed.configured = commit
	return moved, nil
}

// Approve returns the signer of the commit or merge that introduced a promotion file. If no signature is accepted, the
// error wraps *rollout.InvalidError. After other errors, the signer is unknown.
func (r *Repo) Approve(ctx context.Context, commit, path string, by sign.Policy) (who string, err error) {
	who, err = r.Introducer(ctx, commit, path, by)
	if errors.Is(err, ErrUnapproved) {
		return "", rollout.Invalidf(path, "", "does not count: %s", err).WithFix("have an allowed committer commit it, " +
			"or merge it, with a signature: git commit -S, git merge -S --no-ff")
	}
	return who, err
}
