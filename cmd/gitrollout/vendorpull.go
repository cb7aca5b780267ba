package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/author/vendoring"
	"gitrollout.dev/gitrollout/git/program"
	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

const vendorBranch = "gitrollout-vendor"

// propose opens a pull request. The working copy stays unchanged.
func (c *vendorCommand) propose(ctx context.Context, at string, lines []string) error {
	title := "Vendor: newer versions of the sources"
	if len(lines) == 1 {
		_, what, _ := strings.Cut(lines[0], ": ")
		title = "Vendor: " + strings.Fields(what + " ?")[0]
	}
	here := vendoring.WorkingCopy(at)
	commit, err := here.Commit(ctx, vendorBranch, title)
	if err != nil {
		return err
	}
	if commit == "" {
		return c.say("nothing is new: there is nothing to propose")
	}
	options, config, err := c.forge(ctx, at)
	if err != nil {
		return err
	}
	if err := here.Push(ctx, commit, vendorBranch); err != nil {
		return err
	}
	body := "Changes by `gitrollout vendor`:\n"
	for _, line := range lines {
		body += "\n- `" + strings.ReplaceAll(line, "`", "") + "`"
	}
	number, isOpen, err := forge.Pull(ctx, options, config, vendorBranch, commit, title, body)
	switch {
	case err != nil:
		return err
	case !isOpen:
		return c.say(fmt.Sprintf("pull request %d proposed the same, and was closed", number))
	}
	return c.say(fmt.Sprintf("proposed by pull request %d, from the branch %s", number, vendorBranch))
}

// forge returns the CI job's repository, or else "origin".
func (c *vendorCommand) forge(ctx context.Context, at string) (forge.Options, rollout.Forge, error) {
	origin, err := program.Says(ctx, "-C", at, "remote", "get-url", "origin")
	if err != nil {
		return forge.Options{}, rollout.Forge{}, err
	}
	from := sourceOptions{repo: origin}
	auth, err := from.auth()
	if err != nil {
		return forge.Options{}, rollout.Forge{}, err
	}
	options := forge.Options{Branch: c.pr, Trusted: os.Getenv("GITROLLOUT_FORGE_URL"),
		Token: forgeToken(from, auth), Now: time.Now}
	config := forge.RepositoryOf(os.Getenv)
	if config.Repository != "" {
		options.Remote = config.URL + "/" + config.Repository
		return options, config, nil
	}
	remote, _, err := wire.ParseRemote(origin)
	if err != nil {
		return options, config, err
	}
	options.Remote = remote.String()
	config, err = configured(ctx, at)
	return options, config, err
}

// configured returns the working copy's first forge, or the zero value.
func configured(ctx context.Context, at string) (rollout.Forge, error) {
	top, err := program.Says(ctx, "-C", at, "rev-parse", "--show-toplevel")
	if err != nil {
		return rollout.Forge{}, err
	}
	tree, err := openDir(top)
	if err != nil {
		return rollout.Forge{}, err
	}
	clusters, err := source.Clusters(tree)
	for _, cluster := range clusters {
		if config, err := readConfig(tree, cluster); err == nil && config.Forge != nil {
			return *config.Forge, nil
		}
	}
	return rollout.Forge{}, err
}
