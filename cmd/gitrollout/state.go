package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/status"
)

func newState(s streams) *cobra.Command {
	return parent(&cobra.Command{
		Use:   "state",
		Short: "Mend the state branch: repair, adopt, compact",
		Long: `Mend the state branch gitrollout/state/<cluster>, which is otherwise the
reconciler's alone. These are the deliberate ways out when it holds an app
because the record was edited, rolled back, or is about another cluster.

Each one pushes one commit under your name, and the reconciler goes on from it.`,
	}, newStateRepair(s), newStateAdopt(s), newStateCompact(s))
}

type stateCommand struct {
	streams
	author string
	dryRun bool
}

func (c *stateCommand) register(cmd *cobra.Command) {
	registerAuthor(cmd, &c.author)
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show the new records, and push nothing")
}

func (c *stateCommand) open(ctx context.Context, cluster bool) (*console.Session, rollout.Identity, error) {
	who, err := identity(ctx, c.author)
	if err != nil {
		return nil, who, err
	}
	c.source.who = who
	w, err := openWorld(ctx, &c.source, c.streams)
	if err != nil {
		return nil, who, err
	}
	if w.State == nil {
		return nil, who, fmt.Errorf("there is no branch %s: nothing has been recorded for cluster %s",
			w.Config().StateBranch, w.Cluster)
	}
	if cluster {
		err = connect(ctx, w, nil, c.streams)
	}
	return w, who, err
}

// stateChange returns the changed files of the state branch. A nil content deletes a file.
type stateChange = func(*git.Snapshot) (map[string][]byte, error)

func (c *stateCommand) push(ctx context.Context, w *console.Session, subject string, change stateChange) error {
	if c.dryRun {
		return c.say("nothing was pushed (--dry-run)")
	}
	id, err := c.commit(ctx, w, subject, change)
	if err != nil {
		return err
	}
	return c.say(fmt.Sprintf("pushed %s to %s", rollout.ShortID(id), w.Config().StateBranch))
}

func (c *stateCommand) commit(
	ctx context.Context, w *console.Session, subject string, change stateChange,
) (string, error) {
	return slowly(c.streams, "pushing to "+w.Repo.Remote().String(),
		func() (string, error) { return w.Record(ctx, subject, change) })
}

func newStateRepair(s streams) *cobra.Command {
	c := &stateCommand{streams: s}
	var from string
	cmd := &cobra.Command{
		Use:   "repair APP",
		Short: "Accept the current record on the state branch",
		Long: `Let an app's record count as it is on the state branch now, although it was edited
by hand or the branch was rolled back. With --from it is as in an older commit of
the branch.

The record is checked, sealed, and numbered past what the cluster carries; with
--signing-key the commit vouches for the branch as a whole, so look at its log
first. The reconciler then changes the cluster to the record and the commits that
it names: look at the record with --dry-run, and run gitrollout diff afterwards.`,
		Example: `  gitrollout state repair shop --dry-run
  gitrollout state repair shop --from 1f0c3d2`,
		Args:              exactlyOne("app"),
		ValidArgsFunction: s.completeApps(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.repair(cmd.Context(), args[0], from)
		},
	}
	c.register(cmd)
	cmd.Flags().StringVar(&from, "from", "", "a `commit` of the state branch to take the record from")
	return cmd
}

func (c *stateCommand) repair(ctx context.Context, app, from string) error {
	w, who, err := c.open(ctx, true)
	if err != nil {
		return err
	}
	state, data, err := w.Repaired(ctx, app, from, c.source.signing() != "")
	if err != nil {
		return err
	}
	if state == nil {
		return c.say(app + " needs no repair: its record is unedited, and not older than the cluster's")
	}
	if err := c.say(fmt.Sprintf("after the repair, %s is %s", app, status.Standing(*state))); err != nil {
		return err
	}
	return c.push(ctx, w, fmt.Sprintf("%s repaired by %s", app, who.Name), func(*git.Snapshot) (map[string][]byte, error) {
		return map[string][]byte{rollout.StatePath(app): data}, nil
	})
}

func newStateAdopt(s streams) *cobra.Command {
	c := &stateCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Bring another cluster, such as a rebuilt one, to the recorded state",
		Long: `Let the state branch be about the cluster that --context names, when its old
cluster is gone. Every app is first brought to its stable version there; a release
that was in flight then starts again at its first step, because its evidence was
about other pods.

The old cluster must not come back: its reconciler would refuse the branch.`,
		Example: `  gitrollout state adopt --cluster prod-eu --context new-prod-eu`,
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.adopt(cmd.Context()) },
	}
	c.register(cmd)
	return cmd
}

func (c *stateCommand) adopt(ctx context.Context) error {
	w, who, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	was := w.UID
	w.UID = "" // so that connect accepts any cluster
	if err := connect(ctx, w, nil, c.streams); err != nil {
		return err
	}
	uid, err := w.Client.UID(ctx)
	if err != nil {
		return &failure{code: exitCluster, err: err}
	}
	if uid == was {
		return c.say(fmt.Sprintf("the state branch is for this cluster already (%s)", uid))
	}
	now := time.Now()
	at := rollout.Cluster{Cluster: w.Cluster, UID: uid,
		Source: rollout.Source{Repo: w.Repo.Remote().String(), Branch: w.Branch}}
	tell := func(app, what string) { _ = c.say(app + ": " + what) }
	if _, err := source.StartOver(w.State, at, w.Names(), now, tell); err != nil {
		return err
	}
	return c.push(ctx, w, fmt.Sprintf("cluster %s adopted by %s", uid, who.Name),
		func(state *git.Snapshot) (map[string][]byte, error) {
			return source.StartOver(state, at, w.Names(), now, func(string, string) {})
		})
}

func newStateCompact(s streams) *cobra.Command {
	c := &stateCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Start the state branch anew, and keep the old one as an archive",
		Long: `Start the state branch anew with one commit of its content. The branch
gitrollout/archive/<cluster>/<date> keeps the history up to here.

The reconciler needs no compaction: it reads no history, and what a commit costs
does not grow with it. Compact it if clones of all branches take long. The push is
forced, so the server must permit that on gitrollout/state/** for once.`,
		Example: `  gitrollout state compact --cluster prod-eu`,
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.compact(cmd.Context()) },
	}
	c.register(cmd)
	return cmd
}

func (c *stateCommand) compact(ctx context.Context) error {
	w, who, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	archive := rollout.ArchiveBranch(w.Cluster, now)
	if c.dryRun {
		return c.say(fmt.Sprintf("%s would start anew, and %s would keep %s (--dry-run)", w.Config().StateBranch, archive,
			rollout.ShortID(w.Heads.State)))
	}
	message := fmt.Sprintf("%s: compacted by %s\n\n", w.Cluster, who.Name) +
		fmt.Sprintf("The former history is on the branch %s.\n\n", archive) +
		rollout.Trailer(rollout.TrailerCluster, w.Cluster) + rollout.Trailer(rollout.TrailerArchive, w.Heads.State)
	root, err := slowly(c.streams, "pushing to "+w.Repo.Remote().String(), func() (string, error) {
		return w.Repo.Compact(ctx, w.Config().StateBranch, archive, w.Heads.State, message, now)
	})
	if err != nil {
		return err
	}
	return c.say(fmt.Sprintf("%s starts anew at %s; %s keeps %s", w.Config().StateBranch, rollout.ShortID(root), archive,
		rollout.ShortID(w.Heads.State)))
}
