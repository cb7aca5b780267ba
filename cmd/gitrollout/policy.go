package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/rollout"
)

func policyFileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "policy", "",
		"hold the apps that break the policy in this `file`: projects, and the rights of their apps")
}

// policyOptions select a file, perhaps on a branch.
type policyOptions struct {
	file string
	ref  string // BRANCH:PATH
}

func (o *policyOptions) register(cmd *cobra.Command) {
	policyFileFlag(cmd, &o.file)
	cmd.Flags().StringVar(&o.ref, "policy-ref", "",
		"`branch:path` of the policy in the repository; let only the platform team push to that branch")
}

// check refuses an invalid file, --policy with --policy-ref, and a policy on the users' branch.
func (o *policyOptions) check(users string) error {
	branch, path, found := strings.Cut(o.ref, ":")
	switch {
	case o.file != "" && o.ref != "":
		return usagef("--policy and --policy-ref exclude each other")
	case o.ref != "" && (!found || branch == "" || path == ""):
		return usagef("--policy-ref %q is not branch:path; write platform:policy/prod.yaml", o.ref)
	case o.ref != "" && branch == users:
		return usagef("--policy-ref names branch %s, the branch of the apps; name a branch of the platform team", branch)
	}
	_, err := readPolicy(o.file)
	return err
}

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

// edges returns functions for the policy and the promotions' approval, each nil if no flag requires it.
func (o policyOptions) edges(repo *git.Repo, keys *git.Keys) (
	policy func(rollout.Heads) (*rollout.Policy, error), approve reconciler.Approver,
) {
	if o != (policyOptions{}) {
		policy = (&adapters.Policy{File: o.file, Ref: o.ref, Repo: repo, Keys: keys}).Read
	}
	if policy != nil || keys.Files().Promoters != "" {
		approve = adapters.Approver(repo, keys)
	}
	return policy, approve
}
