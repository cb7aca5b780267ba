package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// historyCommand shows what the state branch remembers of one app.
type historyCommand struct {
	streams
	source sourceOptions
	output outputOption
	color  colorOption
	limit  int
	depth  int
}

func newHistory(s streams) *cobra.Command {
	c := &historyCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "history APP",
		Short: "Show an app's releases: when, by whom, how long, and what became of them",
		Long: `Show the releases of an app, newest first: who released and who promoted them,
how long they took, what was measured, and what became of them.

  healthy     it became stable
  rejected    it was aborted, or an analysis failed; the reason says which
  reverted    Git was reverted while it was in flight
  superseded  a newer push took its place
  applied     an app without stages follows a commit
  recorded    it serves as far back as the record goes

It reads the commits of the state branch, as many as it takes. -o wide shows each
transition and each metric, too.`,
		Example: `  gitrollout history shop
  gitrollout history shop --limit 3 -o wide
  gitrollout history shop -o json | jq -r '.releases[] | select(.outcome == "rejected") | .reason'`,
		Args:              exactlyOne("app"),
		ValidArgsFunction: completeApps(),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.source.register(cmd)
	c.output.register(cmd, "json", "yaml", "wide")
	c.color.register(cmd)
	cmd.Flags().IntVar(&c.limit, "limit", 10, "how many releases to show")
	cmd.Flags().IntVar(&c.depth, "depth", 20_000, "how many `commits` of the state branch to look through at most")
	return cmd
}

func (c *historyCommand) run(ctx context.Context, name string) error {
	if c.limit < 1 || c.depth < 1 {
		return usagef("--limit %d and --depth %d must both be 1 or more", c.limit, c.depth)
	}
	w, err := openWorld(ctx, c.source, c.streams)
	if err != nil {
		return err
	}
	if _, err := w.app(name); err != nil {
		return err
	}
	if w.state == nil {
		return fmt.Errorf("there is no branch %s: nothing has been recorded for cluster %s", w.config().StateBranch,
			w.source.cluster)
	}
	var h status.History
	err = slowly(c.streams, "reading the history of "+w.config().StateBranch, func() error {
		h, err = w.history(ctx, name, c.limit, c.depth)
		return err
	})
	if err != nil {
		return err
	}
	if done, err := c.output.write(c.streams, h); done {
		return err
	}
	k := c.color.lookOf(c.out)
	k.Wide = c.output.format == "wide"
	_, err = fmt.Fprint(c.out, terminal.History(h, k))
	return err
}

// history reads the record of an app in the commits of the state branch, until so many releases are known in full.
func (w *world) history(ctx context.Context, app string, limit, depth int) (status.History, error) {
	r := status.NewRecord(app)
	whole, err := w.repo.Log(ctx, w.heads.State, depth, func(s *git.Snapshot) (bool, error) {
		releases, err := r.Visit(s)
		return releases <= limit+1, err
	})
	h := status.History{App: app, Cluster: w.source.cluster}
	if err == nil {
		h.Releases, err = r.Releases(whole)
	}
	if err != nil {
		return status.History{}, err
	}
	switch {
	case len(h.Releases) > limit:
		h.Releases = h.Releases[:limit]
		h.Note = fmt.Sprintf("there are older ones: --limit %d", 2*limit)
	case !whole:
		h.Note = fmt.Sprintf("only the last %d commits of %s were looked through: --depth %d", depth,
			w.config().StateBranch, 10*depth)
	}
	return h, nil
}
