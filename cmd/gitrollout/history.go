package main

import (
	"context"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// historyCommand shows an app's releases. It reads them from the history of the state branch.
type historyCommand struct {
	streams
	output outputOption
	color  colorOption
	limit  int
	depth  int
}

func newHistory(s streams) *cobra.Command {
	c := &historyCommand{streams: s}
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
  recorded    it serves as far back as the record goes

It reads the commits of the state branch, as many as it takes. -o wide shows each
transition, each hook and each metric, too.`,
		Example: `  gitrollout history shop
  gitrollout history shop --limit 3 -o wide
  gitrollout history shop -o json | jq -r '.releases[] | select(.outcome == "rejected") | .reason'`,
		Args:              exactlyOne("app"),
		ValidArgsFunction: s.completeApps(),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.output.register(cmd, "json", "yaml", "wide")
	c.color.register(cmd)
	cmd.Flags().IntVar(&c.limit, "limit", 10, "how many releases to show")
	cmd.Flags().IntVar(&c.depth, "depth", 20_000, "search at most this many `commits` of the state branch")
	return cmd
}

func (c *historyCommand) run(ctx context.Context, name string) error {
	if c.limit < 1 || c.depth < 1 {
		return usagef("--limit %d and --depth %d must both be 1 or more", c.limit, c.depth)
	}
	w, err := openWorld(ctx, &c.source, c.streams)
	if err != nil {
		return err
	}
	if _, err := w.App(name); err != nil {
		return err
	}
	h, err := slowly(c.streams, "reading the history of "+w.Config().StateBranch,
		func() (status.History, error) { return w.History(ctx, name, c.limit, c.depth) })
	if err != nil {
		return err
	}
	k := c.color.lookOf(c.out)
	k.Wide = c.output.format == "wide"
	return c.output.show(c.streams, h, func() string { return terminal.History(h, k) })
}
