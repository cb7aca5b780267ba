package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/author/vendoring"
	"gitrollout.dev/gitrollout/git/program"
	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

type vendorCommand struct {
	streams
	check  bool
	update string
	from   string
	pr     string // the pull request's base branch, or ""
}

func newVendor(s streams) *cobra.Command {
	c := &vendorCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "vendor [PATH]",
		Short: "Bring charts, remote bases and OCI artifacts into Git, with a lock",
		Long: `Bring the sources of every vendor.yaml in the folder PATH (default: the current one)
and below into the folders that it names: Helm charts of repositories and registries,
folders of other Git repositories, and artifacts of registries. vendor.lock beside it
has the exact version of each source and the digest of its files. Commit both and
the files: renders never use the network.

A locked source stays as it is. --update takes the newest version that vendor.yaml
allows, of all sources or of one: --update=redis. If a tag has
other content than vendor.lock says, this is an error.

--check compares the files with vendor.lock, without the network: for CI.

--pr proposes the new files as a pull request, from the branch gitrollout-vendor, and
leaves the files in the working copy: for a job that runs every night with --update.
The repository is named by CI, or by origin; the token is GITROLLOUT_FORGE_TOKEN.

--from reads the kustomization of a folder instead: its remote references and its
charts are written into that folder's vendor.yaml, and the kustomization names their
new folders. The sources of Flux's HelmReleases and Kustomizations and of Argo CD's
Applications in the folder are written into vendor.yaml as well; these objects stay
as they are. Look at both files, and run gitrollout vendor.

Registries and chart repositories are asked with the logins of docker login and helm
registry login, Git with the git program and its credentials.`,
		Example: `  gitrollout vendor
  gitrollout vendor --check
  gitrollout vendor infra --update=redis
  gitrollout vendor --update --pr
  gitrollout vendor --from apps/shop`,
		Args: atMostOne("path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), path.Join(append([]string{"."}, args...)...))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&c.check, "check", false, "compare the files with vendor.lock, and write nothing")
	flags.StringVar(&c.update, "update", "", "update the source of this `name` to its newest version (no name: all)")
	flags.StringVar(&c.from, "from", "", "write a vendor.yaml of the remote sources of the folder `path`")
	flags.StringVar(&c.pr, "pr", "", "propose the result as a pull request into this `branch` (without a branch: main)")
	flags.Lookup("update").NoOptDefVal, flags.Lookup("pr").NoOptDefVal = vendoring.All, "main"
	return cmd
}

func (c *vendorCommand) run(ctx context.Context, at string) error {
	if c.check && c.update+c.pr != "" {
		return usagef("--check writes nothing, so it excludes --update and --pr")
	}
	if c.from != "" {
		if c.check || c.update+c.pr != "" || at != "." {
			return usagef("--from excludes all other flags and arguments")
		}
		return c.rewrite()
	}
	dirs, err := vendoring.Folders(at)
	if err == nil && len(dirs) == 0 {
		err = usagef("there is no %s in %s; write one: docs/vendor.md", rollout.VendorFile, at)
	}
	if err == nil && c.pr != "" {
		err = vendoring.WorkingCopy(at).Clean(ctx)
	}
	if err != nil {
		return err
	}
	all, err := c.folders(ctx, dirs)
	switch {
	case err != nil:
		return err
	case c.check && len(all) > 0:
		return fmt.Errorf("%d vendored folders differ from vendor.lock; remove them and run gitrollout vendor", len(all))
	case c.pr != "":
		return c.propose(ctx, at, all)
	}
	return nil
}

func (c *vendorCommand) folders(ctx context.Context, dirs []string) (all []string, err error) {
	home, _ := os.UserHomeDir() // if it fails, there are no logins
	getter := &vendoring.Getter{Login: vendoring.Logins(home, os.Getenv)}
	for _, dir := range dirs {
		lines, err := inFolder(dir, func(root *os.Root) ([]string, error) {
			if c.check {
				return vendoring.Check(root)
			}
			return getter.Update(ctx, root, c.update)
		})
		if err != nil {
			return all, err
		}
		file := path.Join(filepath.ToSlash(dir), rollout.VendorFile)
		for _, line := range lines {
			all = append(all, file+": "+line)
			if err := c.say(all[len(all)-1]); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

func (c *vendorCommand) rewrite() error {
	said, err := inFolder(c.from, vendoring.From)
	if err != nil {
		return err
	}
	if len(said) == 0 {
		return c.say("no remote sources to add to vendor.yaml")
	}
	return c.say(strings.Join(append(said, "now: gitrollout vendor "+filepath.ToSlash(c.from)), "\n"))
}

func inFolder(dir string, do func(*os.Root) ([]string, error)) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	lines, err := do(root)
	if invalid := new(rollout.InvalidError); errors.As(err, &invalid) {
		invalid.File = path.Join(filepath.ToSlash(dir), invalid.File)
	}
	return lines, err
}

const vendorBranch = "gitrollout-vendor"

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
