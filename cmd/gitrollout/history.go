package main

import (
	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

func newHistory(s streams) *cobra.Command {
	var output outputOption
	var color colorOption
	var limit, depth int
	cmd := &cobra.Command{
		Use:   "history APP",
		Short: "Show an app's releases: time, author, duration and outcome",
		Long: `Show the releases of an app, newest first: author, promoter, duration,
measurements and outcome.

  healthy     it became stable
  rejected    it was aborted, or an analysis failed; the reason says which
  reverted    Git was reverted while it was in flight
  superseded  a newer push took its place
  applied     an app without stages follows a commit
  recorded    it was stable already in the first record

It reads the commits of the state branch, as many as it takes. -o wide shows each
transition, each hook and each metric, too.`,
		Example: `  gitrollout history shop
  gitrollout history shop --limit 3 -o wide
  gitrollout history shop -o json | jq -r '.releases[] | select(.outcome == "rejected") | .reason'`,
		Args:              exactlyOne("app"),
		ValidArgsFunction: s.completeApps(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || depth < 1 {
				return usagef("--limit %d and --depth %d must both be 1 or more", limit, depth)
			}
			w, err := openWorld(cmd.Context(), &s.source, s)
			if err != nil {
				return err
			}
			if _, err := w.App(args[0]); err != nil {
				return err
			}
			h, err := slowly(s, "reading the history of "+w.Config().StateBranch,
				func() (status.History, error) { return w.History(cmd.Context(), args[0], limit, depth) })
			if err != nil {
				return err
			}
			k := color.lookOf(s.out)
			k.Wide = output.format == "wide"
			return output.show(s, h, func() string { return terminal.History(h, k) })
		},
	}
	output.register(cmd, "json", "yaml", "wide")
	color.register(cmd)
	cmd.Flags().IntVar(&limit, "limit", 10, "how many releases to show")
	cmd.Flags().IntVar(&depth, "depth", 20_000, "search at most this many `commits` of the state branch")
	return cmd
}
