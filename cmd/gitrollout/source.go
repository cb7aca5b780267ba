package main

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/program"
	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render/worktree"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/dashboard"
)

// resolve completes the flags from the environment and the working copy. If Git has only one cluster, resolve selects
// this cluster.
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

func (o *sourceOptions) options() (git.Options, error) {
	auth, err := o.auth()
	opts := git.Options{URL: o.repo, Branch: o.branch, Cluster: o.cluster, Auth: auth, Keys: o.keys,
		Identity: o.who, Refs: o.refs}
	if file := o.signing(); err == nil && file != "" {
		s := signer(file)
		_, err = s.Read()
		opts.Sign = s.Sign
	}
	return opts, withCode(exitUsage, err)
}

func (o *sourceOptions) signing() string {
	return cmp.Or(o.signingKey, os.Getenv("GITROLLOUT_SIGNING_KEY"))
}

func (o *sourceOptions) auth() (wire.Auth, error) {
	a := o.access
	if u, err := url.Parse(a.Proxy); err == nil && u.User != nil {
		return a, errors.New("--git-proxy contains credentials, which all users of this machine could read: " +
			"put the URL into HTTPS_PROXY")
	}
	err := a.Complete(os.Getenv, time.Now)
	return a, err
}

// checkArgument refuses a password in --repo, because all users of the machine can read command lines.
func checkArgument(repo string) error {
	if u, err := url.Parse(repo); err == nil && u.User != nil && strings.HasPrefix(strings.ToLower(u.Scheme), "http") {
		if _, has := u.User.Password(); has {
			return usagef("--repo has a password in it, which all users of this machine could read: " +
				"put that URL into GITROLLOUT_REPO, or the password into GITROLLOUT_GIT_TOKEN_FILE; see: gitrollout help environment")
		}
	}
	return nil
}

func signer(file string) *git.Signer {
	return &git.Signer{File: file, Passphrase: os.Getenv("GITROLLOUT_SIGNING_PASSPHRASE")}
}

func openWorld(ctx context.Context, from *sourceOptions, s streams) (w *console.Session, err error) {
	if *from, err = from.resolve(ctx, s); err != nil {
		return nil, err
	}
	repo, err := from.open(ctx, "", "")
	if err != nil {
		return nil, err
	}
	w = console.New(worldOptions(*from, repo, s))
	_, err = slowly(s, "reading "+repo.Remote().String(), func() (bool, error) { return w.Refresh(ctx) })
	return w, err
}

func openRepository(ctx context.Context, options git.Options) (*adapters.Repository, error) {
	repo, err := git.Open(ctx, options)
	return &adapters.Repository{Repo: repo}, withCode(exitUsage, err)
}

func worldOptions(from sourceOptions, repo *adapters.Repository, s streams) console.Options {
	return console.Options{
		Cluster: from.cluster, Branch: from.branch, Repo: repo.Repo, Renderer: newRenderer(s), Own: protected(),
		Now: time.Now, Command: from.command,
	}
}

func dashRecords(from sourceOptions, repo *adapters.Repository, s streams) *console.Records {
	o := worldOptions(from, repo, s)
	if files := from.keys.Files(); files.Commits+files.Keyring != "" {
		o.Signers, o.Unsigned = from.keys.Accepted().Commits, "nothing is pushed until a signed commit is on top"
	}
	return &console.Records{Options: o, Believe: stateCheck(from.keys), BelievePeer: adapters.BelievePeer(from.keys)}
}

type dashActor struct{ *console.Records }

func (d dashActor) Act(ctx context.Context, who dashboard.Person, app string, a propose.Action) (string, error) {
	ctx, cancel := adapters.Outlive(ctx) // so that Act finishes even if the user closes the page
	defer cancel()
	said, err := d.Records.Act(ctx, who, app, a)
	if err != nil {
		return "", errors.New(message(err)) // the same text as in commands
	}
	return said, nil
}
