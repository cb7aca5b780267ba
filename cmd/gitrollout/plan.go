package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/author/plan"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/terminal"
)

type plans struct {
	Clusters []plan.Plan `json:"clusters"`
}

type planCommand struct {
	streams
	output   outputOption
	color    colorOption
	base     string
	head     string
	noState  bool
	noDiff   bool
	exitCode bool
	comment  bool
	policy   string
}

func newPlan(s streams) *cobra.Command {
	c := &planCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show the effect of a change before it is pushed, for pull requests",
		Long: `Compare the working tree, or the commit --head, with the branch that it is to
be merged into, and say for each app that changes:

  which version it goes to, and whether that was rejected or served before
  the stages, with pods, weights, gates, release windows and least times
  what cannot be staged, and why
  what the API server will refuse
  the objects that differ; the values of Secrets are never shown
  with a fleet.yaml and without --cluster: which stages the change reaches, in their
  order, the earliest times, and the stages that need an approval

It needs the git command and a working copy. With --context, it asks the cluster
whether an app without a record would be adopted or held, and Prometheus for the
requests that the base's analyses compare. The stable and the rejected versions are
read from the state branch, or else the base counts as the stable version. The base is
the commit at which the branches parted, or the newest commit of --base.

-o markdown is a comment for a pull request. In a CI job of GitHub, GitLab, Gitea or
Forgejo, --comment makes it the one comment of the job's pull request, with
GITROLLOUT_FORGE_TOKEN; where the token may not write, as for a fork's pull request,
it goes into the job's summary. The exit code is 1 if an app cannot be
rendered. With --exit-code, it is 10 if an app changes.`,
		Example: `  gitrollout plan
  gitrollout plan --base release-2 --cluster prod-eu
  gitrollout plan --head HEAD --base origin/main -o markdown > comment.md`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), time.Now().UTC().Truncate(time.Second))
		},
	}
	c.output.register(cmd, "markdown", "json", "yaml")
	c.color.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&c.base, "base", "", "`branch` or commit to compare with (default: --branch)")
	flags.StringVar(&c.head, "head", "", "`commit` or branch to plan (default: the working tree)")
	policyFileFlag(cmd, &c.policy)
	flags.BoolVar(&c.noState, "no-state", false, "do not read the state branch: use the base as the stable version")
	flags.BoolVar(&c.noDiff, "no-diff", false, "omit the differences of the objects")
	flags.BoolVar(&c.comment, "comment", false, "keep the plan in one comment of the CI job's pull request")
	flags.BoolVar(&c.exitCode, "exit-code", false, "exit with 10 if an app changes")
	return cmd
}

func (c *planCommand) run(ctx context.Context, now time.Time) error {
	sides, err := c.open(ctx)
	if err != nil {
		return err
	}
	clusters, err := c.clusters(sides)
	if err != nil {
		return err
	}
	if c.target.context != "" && len(clusters) > 1 {
		return usagef("--context needs --cluster: %s", strings.Join(clusters, ", "))
	}
	var all plans
	for _, cluster := range clusters {
		p, err := c.cluster(ctx, sides, cluster, now)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", cluster, err)
		}
		all.Clusters = append(all.Clusters, p)
	}
	if fleet, err := source.ReadFleet(sides.head); err != nil {
		return err
	} else if fleet != nil && c.source.cluster == "" { // times depend on all stages
		plan.Order(all.Clusters, fleet)
	}
	err = c.output.show(c.streams, all, func() string {
		if c.output.format == "markdown" {
			return plan.Markdown(all.Clusters)
		}
		return terminal.Plans(all.Clusters, c.color.lookOf(c.out))
	})
	if err == nil && c.comment {
		err = c.post(ctx, plan.Markdown(all.Clusters))
	}
	hasErrors := slices.ContainsFunc(all.Clusters, func(p plan.Plan) bool { return p.Errors > 0 })
	changes := slices.ContainsFunc(all.Clusters, func(p plan.Plan) bool { return p.Changes() })
	return cmp.Or(err, silentIf(hasErrors, exitFailed), silentIf(c.exitCode && changes, exitChanges))
}

func (c *planCommand) clusters(sides *planSides) ([]string, error) {
	var all []string
	for _, tree := range []rollout.Tree{sides.base, sides.head} {
		found, err := source.Clusters(tree)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	switch {
	case len(all) == 0:
		_, err := onlyCluster(sides.head)
		return nil, err
	case c.source.cluster == "":
		return all, nil
	case !slices.Contains(all, c.source.cluster):
		_, err := readConfig(sides.head, c.source.cluster)
		return nil, err
	}
	return []string{c.source.cluster}, nil
}

func (c *planCommand) cluster(ctx context.Context, sides *planSides, cluster string, now time.Time) (plan.Plan, error) {
	p := plan.Plan{Cluster: cluster, Base: sides.baseName, Head: sides.headName, At: now, Apps: []plan.App{}}
	both := plan.Sides{Cluster: cluster, Own: protected(), Now: now, Renderer: newRenderer(c.streams)}
	err := both.Read(sides.base, sides.head)
	if err == nil && both.After.Behind == nil {
		both.Record, p.State, err = c.record(ctx, sides, cluster, both.After.Config)
	}
	if err == nil {
		both.Policy, err = readPolicy(c.policy)
	}
	if head, is := sides.head.(source.Snapshot); is {
		both.Author = head.Commit().Author
	}
	if err == nil && c.target.context != "" {
		server, failed := c.target.dryRunner()
		both.Runs, err = func(o rollout.Object) (bool, bool, error) { return server.Runs(ctx, o) }, failed
		both.Traffic = func(s rollout.Spec) rollout.AnalysisRun { return c.traffic(ctx, server.PodHash, s, true) }
	}
	if err == nil {
		err = p.Add(&both, ctx.Err)
	}
	if c.noDiff {
		p.WithoutDiffs()
	}
	return p, err
}
