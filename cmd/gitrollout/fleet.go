package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

func newFleet(s streams) *cobra.Command {
	var output outputOption
	var color colorOption
	cmd := &cobra.Command{
		Use:   "fleet [APP]",
		Short: "Show which stages and clusters have which version",
		Long: `Show a line for each app and a column for each stage of .gitrollout/fleet.yaml: the
newest version in the stage's clusters, its age, and 1/4 if only one of four clusters
has it. Below are the clusters that wait, and for what. Clusters in no stage are last.

  ✔ Healthy   ◐ Progressing   ‖ Paused, or waits    ▲ Promoting
  ! Stalled   ▼ Aborting      ✖ Degraded  ■ held    ? no record

It reads Git alone: fleet.yaml at the head of --branch, and the state branches of all
clusters. Notes name the branches that are missing or unreadable. With APP, and with
-o wide, each cluster has a line with version and commit.`,
		Example: `  gitrollout fleet
  gitrollout fleet shop
  gitrollout fleet -o json | jq -r '.apps[].stages.prod[] | [.app, .cluster, .stable.commit] | @tsv'`,
		Args: atMostOne("app"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
			defer cancel()
			quiet := streams{out: io.Discard, err: io.Discard, globalOptions: s.globalOptions}
			if f, err := readFleet(ctx, quiet, ""); err == nil && len(args) == 0 {
				names = rollout.Mapped(f.Apps, func(a status.FleetApp) string { return a.App })
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := readFleet(cmd.Context(), s, strings.Join(args, ""))
			if err != nil {
				return err
			}
			k := color.lookOf(s.out)
			k.Wide = output.format == "wide"
			return output.show(s, f, func() string { return terminal.Fleet(f, len(args) > 0, k) })
		},
	}
	output.register(cmd, "json", "yaml", "wide")
	color.register(cmd)
	return cmd
}

func readFleet(ctx context.Context, s streams, app string) (f status.Fleet, err error) {
	repo, err := s.source.open(ctx, "", "")
	if err != nil {
		return f, err
	}
	records := &console.Records{Options: console.Options{Repo: repo.Repo, Now: time.Now}, Only: app}
	return slowly(s, "reading the state branches", func() (status.Fleet, error) {
		f, _, err := records.Fleet(ctx)
		return f, err
	})
}
