package main

import (
	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
)

func newUndo(s streams) *cobra.Command {
	c, u := &pushCommand{streams: s}, console.Undo{}
	cmd := &cobra.Command{
		Use:   "undo APP...",
		Short: "Propose a commit that undoes a release",
		Long: `Push a branch gitrollout/revert/<cluster>/<app> with one commit on top of yours: the
files that the app is built from, as of the version before. Nothing happens until
you merge it; then the app goes back at once if the release is in flight, and
without pauses if the old version has served here before.

It undoes the release in flight, or else the last one. --to names another version:
its template hash as "gitrollout history" shows it, or a commit of your branch. A
version that was itself rejected is refused.

Unlike git revert it takes back one app and nothing else of a commit, and works over
several commits. To go back this minute, without a review: gitrollout abort.

The branch for several apps has all names: gitrollout/revert/<cluster>/cart+shop.
gitrollout does not remove this branch, so delete it after the merge.`,
		Example: `  gitrollout undo shop
  gitrollout undo shop --dry-run
  gitrollout undo shop cart
  gitrollout undo shop --to h1-2c9d0f1b77 --reason "prices are wrong"`,
	}
	c.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if u.To != "" && !rollout.IsHash(u.To) {
			if u.To, err = fullCommit(cmd.Context(), "--to", u.To); err != nil {
				return err
			}
		}
		a := propose.Action{Verb: propose.Undo}
		return c.run(cmd.Context(), args, a, func(w *console.Session, app string) (propose.Change, error) {
			return w.UndoOrder(cmd.Context(), app, u)
		})
	}
	flags := cmd.Flags()
	flags.StringVar(&u.To, "to", "", "a template `hash` or a commit to go back to (default: the version before)")
	flags.StringVar(&u.Reason, "reason", "", "the reason for the undo, for the new commit's message")
	flags.IntVar(&u.Depth, "depth", 20_000, "search at most this many `commits` of the state branch")
	s.complete(cmd, "to", knownHashes)
	return cmd
}
