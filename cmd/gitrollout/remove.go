package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
)

type removeCommand struct {
	stateCommand
	output outputOption
	yes    bool
}

type removal struct {
	App     string        `json:"app"`
	Cluster string        `json:"cluster"`
	Removed []rollout.Ref `json:"removed"`
	Kept    []string      `json:"kept,omitempty"`   // objects that are not deleted, with the reason
	Commit  string        `json:"commit,omitempty"` // deletes the record; "" with --dry-run
}

func newRemove(s streams) *cobra.Command {
	c := &removeCommand{stateCommand: stateCommand{streams: s}}
	cmd := &cobra.Command{
		Use:   "remove APP",
		Short: "Delete the objects and the record of an app that Git no longer lists",
		Long: `Delete an app's objects from the cluster, by the list of objects in its record, and
then the record itself.

It is for an app that Git no longer lists, which the reconciler leaves alone: one
that is still listed is refused. Objects that are another app's by now stay, and so
do Namespaces, volume claims and definitions, with their content, and objects with
the annotation gitrollout.dev/prune: disabled or gitrollout.dev/create-only: "true".

It lists the objects to delete and asks; --yes does not ask. If it fails half way,
run it again.`,
		Example: `  gitrollout remove shop --dry-run
  gitrollout remove shop`,
		Args:              exactlyOne("app"),
		ValidArgsFunction: s.completeNames((*console.Session).Unlisted, 1),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.register(cmd)
	c.output.register(cmd, "json", "yaml")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	return cmd
}

func (c *removeCommand) run(ctx context.Context, name string) error {
	w, who, err := c.open(ctx, true)
	if err != nil {
		return err
	}
	if w.Tip.Behind != nil {
		return w.Tip.Behind
	}
	if app, listed := w.Tip.Find(name); listed {
		return fmt.Errorf("%s is still an app in Git (%s), so its objects would be created again; first remove it from %s",
			name, app.Path, rollout.ConfigPath(w.Cluster))
	}
	if _, err := w.App(name); err != nil {
		return err
	}
	state, err := w.States.Of(name)
	if err != nil {
		return err
	}
	there, kept, err := w.Client.Removable(ctx, name, state.Inventory)
	if err != nil {
		return err
	}
	r := removal{App: name, Cluster: w.Cluster, Removed: there, Kept: kept}
	if goOn, err := c.confirm(r); !goOn || err != nil {
		return err
	}
	_, err = slowly(c.streams, "waiting for its pods to end",
		func() (any, error) { return nil, w.Remove(ctx, name, there) })
	if err != nil {
		return err
	}
	subject := fmt.Sprintf("%s removed by %s", name, who.Name)
	r.Commit, err = c.commit(ctx, w, subject, func(*git.Snapshot) (map[string][]byte, error) {
		return map[string][]byte{rollout.StatePath(name): nil}, nil
	})
	if err != nil {
		return err
	}
	return c.output.show(c.streams, r, func() string {
		return fmt.Sprintf("removed %s: %d objects; pushed %s to %s\n",
			name, len(there), rollout.ShortID(r.Commit), w.Config().StateBranch)
	})
}

func (c *removeCommand) confirm(r removal) (goOn bool, err error) {
	out := c.err
	if c.dryRun {
		if done, err := c.output.write(c.streams, r); done {
			return false, err
		}
		out = c.out
	}
	for _, ref := range r.Removed {
		_, _ = fmt.Fprintf(out, "delete  %s\n", ref)
	}
	for _, why := range r.Kept {
		_, _ = fmt.Fprintf(out, "keep    %s\n", why)
	}
	_, err = fmt.Fprintf(out, "delete  the record of %s in cluster %s\n", r.App, r.Cluster)
	if c.dryRun || c.yes || err != nil {
		return !c.dryRun, err
	}
	_, _ = fmt.Fprint(out, "Delete them for good? [y/N] ")
	answer, _ := bufio.NewReader(c.in).ReadString('\n')
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		return false, errors.New("nothing was removed; answer y, or set --yes")
	}
	return true, nil
}
