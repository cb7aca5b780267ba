package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/doctor"
	"gitrollout.dev/gitrollout/views/terminal"
)

type validateCommand struct {
	streams
	output outputOption
	color  colorOption
	commit string
	policy string
}

func newValidate(s streams) *cobra.Command {
	c := &validateCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "validate [PATH]",
		Short: "Check configuration, apps and promotion files, for CI",
		Long: `Check everything that gitrollout reads from your branch: the configuration of
each cluster, every app (rendered in full, with its Rollout documents), the
promotion files, the freeze and the stages. Every problem that would hold an app
is an error, and so is an object that Kubernetes refuses, by kubernetes.version
and your CRDs.

It reads the folder PATH (default: the current one) and needs neither a cluster
nor a network. With --repo or --commit it reads a commit instead. With --context, it
asks Prometheus for the requests that the analyses compare, only at the address in
GITROLLOUT_PROMETHEUS_ADDRESS, and without the headers and Secrets in the files.

A cluster's configuration is .gitrollout/<cluster>/config.yaml:

    apiVersion: gitrollout.dev/v1beta1
    kind: Config
    apps:
    - path: apps/*/overlays/prod

The exit code is 1 if there are errors; warnings do not count.`,
		Example: `  gitrollout validate
  gitrollout validate --cluster prod-eu -o json
  gitrollout validate --repo https://git.example.com/shop.git --branch main`,
		Args: atMostOne("path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			tree, err := c.tree(cmd, "a PATH", append(args, "")[0], c.commit)
			if err == nil && tree == nil {
				tree, err = openDir(append(args, ".")[0])
			}
			if err != nil {
				return err
			}
			return c.run(cmd.Context(), tree)
		},
	}
	c.output.register(cmd, "json", "yaml")
	c.color.register(cmd)
	policyFileFlag(cmd, &c.policy)
	cmd.Flags().StringVar(&c.commit, "commit", "", "check this `commit`")
	return cmd
}

// tree returns the folder or commit that the command line names, or nil. If only GITROLLOUT_REPO is set, tree returns
// nil. Errors call the folder `name`.
func (s streams) tree(cmd *cobra.Command, name, dir, commit string) (rollout.Tree, error) {
	named := cmd.Flags().Changed("repo") || cmd.Flags().Changed("branch") || commit != ""
	switch {
	case named && dir != "":
		return nil, usagef("%s cannot be combined with --repo, --branch or --commit", name)
	case dir != "":
		return openDir(dir)
	case !named:
		return nil, nil
	}
	ctx := cmd.Context()
	repo, err := s.source.open(ctx, "", "")
	if err != nil {
		return nil, err
	}
	_, tree, err := newest(ctx, repo, s)
	if err != nil || commit == "" {
		return tree, err
	}
	id, err := fullCommit(ctx, "--commit", commit)
	if err != nil {
		return nil, err
	}
	return repo.Snapshot(ctx, id)
}

func (c *validateCommand) run(ctx context.Context, tree rollout.Tree) error {
	clusters, err := source.Clusters(tree)
	if err != nil {
		return err
	}
	if c.source.cluster != "" {
		if !slices.Contains(clusters, c.source.cluster) {
			_, err := readConfig(tree, c.source.cluster)
			return err
		}
		clusters = []string{c.source.cluster}
	}
	if len(clusters) == 0 {
		return &failure{code: exitFailed, err: &rollout.InvalidError{File: rollout.ConfigPath("<cluster>"),
			Msg: "does not exist: there is no cluster to check", Fix: "commit a Config; see: gitrollout help validate"}}
	}
	policy, err := readPolicy(c.policy)
	if err != nil {
		return err
	}
	var traffic func(rollout.Spec) rollout.AnalysisRun
	if c.target.context != "" {
		if len(clusters) > 1 {
			return usagef("--context needs --cluster: %s", strings.Join(clusters, ", "))
		}
		server, err := c.target.dryRunner()
		if err != nil {
			return err
		}
		traffic = func(s rollout.Spec) rollout.AnalysisRun { return c.traffic(ctx, server.PodHash, s, false) }
	}
	var r doctor.Report
	for _, cluster := range clusters {
		checked, err := doctor.Check(tree, cluster, protected(), policy, newRenderer(c.streams), traffic)
		if err != nil {
			return err
		}
		r.Add(checked)
	}
	draw := func() string { return terminal.Report(r, c.color.lookOf(c.out)) }
	return cmp.Or(c.output.show(c.streams, r, draw), silentIf(r.Errors > 0, exitFailed))
}
