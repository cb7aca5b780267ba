package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
)

// undoCommand proposes a commit that reverts an app in Git.
type undoCommand struct {
	pushCommand
	undo   console.Undo
	dryRun bool
}

func newUndo(s streams) *cobra.Command {
	c := &undoCommand{pushCommand: pushCommand{streams: s}}
	cmd := &cobra.Command{
		Use:   "undo APP",
		Short: "Propose a commit that undoes a release",
		Long: `Push a branch gitrollout/revert/<cluster>/<app> with one commit on top of yours: the
files that the app is built from, as of the version before. Nothing happens until
you merge it; then the app goes back at once if the release is in flight, and
without pauses if the old version has served here before.

It undoes the release in flight, or else the last one. --to names another version:
its template hash as "gitrollout history" shows it, or a commit of your branch. A
version that was itself rejected is refused.

Unlike git revert it takes back one app and nothing else of a commit, and works over
several commits. To go back this minute, without a review: gitrollout abort.`,
		Example: `  gitrollout undo shop
  gitrollout undo shop --dry-run
  gitrollout undo shop --to h1-2c9d0f1b77 --reason "prices are wrong"`,
	}
	c.register(cmd, c.run)
	flags := cmd.Flags()
	flags.StringVar(&c.undo.To, "to", "", "a template `hash` or a commit to go back to (default: the version before)")
	flags.StringVar(&c.undo.Reason, "reason", "", "why; it is in the commit's message")
	flags.IntVar(&c.undo.Depth, "depth", 20_000, "search at most this many `commits` of the state branch")
	flags.BoolVar(&c.dryRun, "dry-run", false, "show the proposal, and push nothing")
	complete(cmd, "to", knownHashes)
	return cmd
}

func (c *undoCommand) run(ctx context.Context, name string) error {
	who, w, err := c.open(ctx)
	if err != nil {
		return err
	}
	if u := &c.undo; u.To != "" && !rollout.IsHash(u.To) {
		if u.To, err = fullCommit(ctx, "--to", u.To); err != nil {
			return err
		}
	}
	o, to, err := w.UndoOrder(ctx, name, c.undo)
	if err != nil {
		return err
	}
	if c.dryRun && len(o.Edits) > 0 {
		return c.say(drawOrder(o))
	}
	return c.push(w, func() (string, error) {
		ctx, cancel := adapters.Outlive(ctx)
		defer cancel()
		return w.PushUndo(ctx, who, name, o, to)
	})
}

// drawOrder formats a proposal for --dry-run.
func drawOrder(o propose.Change) string {
	var b strings.Builder
	b.WriteString(o.Message + "\n")
	for _, path := range slices.Sorted(maps.Keys(o.Edits)) {
		what := "M"
		if o.Edits[path] == nil {
			what = "D"
		}
		fmt.Fprintf(&b, "%s %s\n", what, path)
	}
	fmt.Fprintf(&b, "\n%s was not pushed (--dry-run)", o.Branch)
	return b.String()
}
