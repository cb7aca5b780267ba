package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/sign"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// policyFileFlag is where the policy is for commands that look at a change.
func policyFileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "policy", "",
		"hold the apps that do not keep to the policy in this `file`: projects, and what their apps may do")
}

// policyOptions say where a reconciler's policy is.
type policyOptions struct {
	file string
	ref  string // BRANCH:PATH
}

func (o *policyOptions) register(cmd *cobra.Command) {
	policyFileFlag(cmd, &o.file)
	cmd.Flags().StringVar(&o.ref, "policy-ref", "",
		"the policy is this `branch:path` of the repository; nobody but the platform team may push to that branch")
}

// branch is the one that the policy is on, "" if it is on none.
func (o *policyOptions) branch() string {
	branch, _, _ := strings.Cut(o.ref, ":")
	return branch
}

// check refuses flags that do not go together, and a file that cannot be read.
func (o *policyOptions) check(users string) error {
	branch, path, found := strings.Cut(o.ref, ":")
	switch {
	case o.file != "" && o.ref != "":
		return usagef("--policy and --policy-ref exclude each other")
	case o.ref != "" && (!found || branch == "" || path == ""):
		return usagef("--policy-ref %q is not branch:path; write platform:policy/prod.yaml", o.ref)
	case o.ref != "" && branch == users:
		return usagef("--policy-ref names branch %s, to which those push who are to keep to the policy", branch)
	}
	_, err := readPolicy(o.file)
	return err
}

// readPolicy reads the policy in a file, nil if none is named.
func readPolicy(file string) (*rollout.Policy, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, usagef("--policy: %v", err)
	}
	return rollout.ParsePolicy(file, data)
}

// policyReader reads a reconciler's policy at each look at Git.
type policyReader struct {
	policyOptions
	repo *repository
	keys *git.Keys

	data   []byte // as it was last
	policy *rollout.Policy
}

// reader is nil if there is no policy.
func (o policyOptions) reader(repo *repository, keys *git.Keys) func(reconciler.Heads) (*rollout.Policy, error) {
	if o == (policyOptions{}) {
		return nil
	}
	return (&policyReader{policyOptions: o, repo: repo, keys: keys}).read
}

func (r *policyReader) read(heads reconciler.Heads) (*rollout.Policy, error) {
	name, data, err := r.file, []byte(nil), error(nil)
	if r.ref != "" {
		name = r.ref
		data, err = r.onBranch(heads.Policy)
	} else {
		data, err = os.ReadFile(r.file)
	}
	if err != nil || r.policy != nil && bytes.Equal(data, r.data) {
		return r.policy, err
	}
	p, err := rollout.ParsePolicy(name, data)
	if err == nil {
		r.data, r.policy = data, p
	}
	return p, err
}

// onBranch is the file at a commit of the policy's branch. With --verify-commits that has to be signed, too.
func (r *policyReader) onBranch(commit string) ([]byte, error) {
	branch, path, _ := strings.Cut(r.ref, ":")
	if commit == "" {
		return nil, fmt.Errorf("there is no branch %s", branch)
	}
	tree, held := r.repo.Repo.Held(commit)
	if !held {
		return nil, fmt.Errorf("commit %s was fetched and is not there", rollout.ShortID(commit))
	}
	if files := r.keys.Files(); files.Commits+files.Keyring != "" {
		if _, err := tree.SignedBy(r.keys.Commits()); err != nil {
			return nil, fmt.Errorf("commit %s of %s does not count: %w", rollout.ShortID(commit), branch, err)
		}
	}
	data, found, err := source.ReadFile(tree, path)
	if err == nil && !found {
		err = errors.New(r.ref + " does not exist")
	}
	return data, err
}

// approver asks Git who signed a promotion file: one of those whom the app's project names, or --promoters. nil if
// every file counts.
func approver(repo *git.Repo, keys *git.Keys, o policyOptions) reconciler.Approver {
	if keys.Files().Promoters == "" && o == (policyOptions{}) {
		return nil
	}
	return func(ctx context.Context, commit, path, promoters string) (string, error) {
		switch {
		case promoters != "":
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
			return repo.Approve(ctx, commit, path, keys.Promoters())
		}
		return "", nil
	}
}
