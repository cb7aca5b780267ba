package adapters

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/sign"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// Policy reads the operators' policy file at each fetch.
type Policy struct {
	File string // local path, if Ref is empty
	Ref  string // branch:path
	Repo *git.Repo
	Keys *git.Keys // trusted signers of the policy's branch; nil disables the check

	data   []byte
	policy *rollout.Policy
}

// Read is the Policy callback of reconciler.Options.
func (r *Policy) Read(heads rollout.Heads) (*rollout.Policy, error) {
	data, err := r.read(heads.Policy)
	if err != nil || r.policy != nil && bytes.Equal(data, r.data) {
		return r.policy, err
	}
	p, err := rollout.ParsePolicy(cmp.Or(r.Ref, r.File), data)
	if err == nil {
		r.data, r.policy = data, p
	}
	return p, err
}

func (r *Policy) read(commit string) ([]byte, error) {
	if r.Ref == "" {
		return os.ReadFile(r.File)
	}
	branch, path, _ := strings.Cut(r.Ref, ":")
	if commit == "" {
		return nil, fmt.Errorf("there is no branch %s", branch)
	}
	tree, held := r.Repo.Held(commit)
	if !held {
		return nil, fmt.Errorf("commit %s was fetched, but the mirror lacks it", rollout.ShortID(commit))
	}
	if files := r.Keys.Files(); files.Commits+files.Keyring != "" {
		if _, err := tree.SignedBy(r.Keys.Accepted().Commits); err != nil {
			return nil, fmt.Errorf("commit %s of %s does not count: %w", rollout.ShortID(commit), branch, err)
		}
	}
	data, found, err := source.ReadFile(tree, path)
	if err == nil && !found {
		err = errors.New(r.Ref + " does not exist")
	}
	return data, err
}

// BelievePeer returns the function that checks another cluster's state branch, or nil without --verify-fleet.
func BelievePeer(keys *git.Keys) func(cluster string, tree reconciler.Snapshot) error {
	if keys.Files().Fleet == "" {
		return nil
	}
	return func(cluster string, tree reconciler.Snapshot) error {
		_, err := tree.(*git.Snapshot).SignedBy(sign.Policy{SSH: keys.Accepted().Fleet.SSH.Of(cluster)})
		return err
	}
}

// Approver finds the promoter who signed a promotion file.
func Approver(repo *git.Repo, keys *git.Keys) reconciler.Approver {
	return func(ctx context.Context, commit, path, promoters string) (string, error) {
		switch {
		case promoters != "" && promoters != source.AnyAuthor:
			data, err := os.ReadFile(promoters)
			if err != nil {
				return "", fmt.Errorf("the promoters of its project: %w", err)
			}
			by, err := sign.ParseSigners(promoters, data)
			if err != nil {
				return "", err
			}
			return repo.Approve(ctx, commit, path, sign.Policy{SSH: by})
		case keys.Files().Promoters != "":
			return repo.Approve(ctx, commit, path, keys.Accepted().Promoters)
		case promoters == source.AnyAuthor:
			who, err := repo.Introducer(ctx, commit, path, nil)
			if errors.Is(err, git.ErrUnapproved) {
				err = nil
			}
			return who, err
		}
		return "", nil
	}
}
