package main

import (
	"cmp"
	"context"
	"os"
	"regexp"
	"strings"

	"gitrollout.dev/gitrollout/git/program"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render/worktree"
	"gitrollout.dev/gitrollout/rollout"
)

// resolve sets missing flags from environment, working copy and the only cluster.
func (o sourceOptions) resolve(ctx context.Context, s streams) (sourceOptions, error) {
	for _, flag := range [][2]string{{" --repo ", o.repo}, {" --cluster ", o.cluster}} {
		if flag[1] != "" {
			o.named += flag[0] + quoted(flag[1])
		}
	}
	o.cluster = cmp.Or(o.cluster, os.Getenv("GITROLLOUT_CLUSTER"))
	if err := o.find(ctx); err != nil || o.cluster != "" {
		return o, err
	}
	repo, err := o.open(ctx, "", "")
	if err != nil {
		return o, err
	}
	_, tree, err := newest(ctx, repo, s)
	if err != nil {
		return o, err
	}
	o.cluster, err = onlyCluster(tree)
	return o, err
}

func (o *sourceOptions) find(ctx context.Context) error {
	if o.repo = cmp.Or(o.repo, os.Getenv("GITROLLOUT_REPO")); o.repo == "" {
		o.repo = program.Repository(ctx)
	}
	if o.repo == "" {
		return usagef("no repository is named: set --repo or GITROLLOUT_REPO, or run this in its working copy")
	}
	return nil
}

// open opens the repository. For stateBranch "", the configuration names the branch and its repository.
func (o *sourceOptions) open(ctx context.Context, stateBranch, stateRepo string) (*adapters.Repository, error) {
	if err := o.find(ctx); err != nil {
		return nil, err
	}
	options, err := o.options()
	if err != nil {
		return nil, err
	}
	options.StateBranch, options.StateRepo = stateBranch, stateRepo
	return openRepository(ctx, options)
}

func newest(
	ctx context.Context, repo *adapters.Repository, s streams,
) (heads rollout.Heads, tree reconciler.Snapshot, err error) {
	heads, err = slowly(s, "reading "+repo.Remote().String(), func() (heads rollout.Heads, err error) {
		if heads, err = repo.Fetch(ctx); err == nil {
			tree, err = repo.Snapshot(ctx, heads.Main)
		}
		return heads, err
	})
	return heads, tree, err
}

func onlyCluster(tree rollout.Tree) (string, error) {
	clusters, err := source.Clusters(tree)
	switch {
	case err != nil:
		return "", err
	case len(clusters) == 0:
		return "", &rollout.InvalidError{File: rollout.ConfigPath("<cluster>"), Msg: "does not exist on this branch",
			Fix: "commit a Config for each cluster; see: gitrollout help validate"}
	case len(clusters) > 1:
		return "", usagef("which cluster? Name one with --cluster or GITROLLOUT_CLUSTER: %s", strings.Join(clusters, ", "))
	}
	return clusters[0], nil
}

// fullCommit asks git in the current folder.
func fullCommit(ctx context.Context, flag, commit string) (string, error) {
	id, known := program.Commit(ctx, commit)
	if !known {
		return "", usagef("%s %q is not a full commit id, and the repository of this folder has no such commit", flag, commit)
	}
	return id, nil
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func openDir(dir string) (worktree.Dir, error) {
	tree, err := worktree.Open(dir)
	return tree, withCode(exitUsage, err)
}
