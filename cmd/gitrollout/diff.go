package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/author/plan"
	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/terminal"
)

type diffCommand struct {
	streams
	color       colorOption
	differences int
	missed      bool // the user lacks the right to read an object
}

func newDiff(s streams) *cobra.Command {
	c := &diffCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "diff [APP]",
		Short: "Compare the cluster with the objects that Git asks for",
		Long: `Compare the cluster with the objects that Git asks for: the commit that an app is
at, with the release's progress laid over it.

For each object it asks the API server for the changes of an apply (a dry run), so
defaults and other controllers' fields are no differences. The values of Secrets are
never shown.

The right to read objects is enough. If you may not apply an object, the command does
not find fields that left Git, and reports values that are only spelled differently.

The exit code is 1 if there are differences, 0 if there are none, and 4 if no
difference is found and an object cannot be read.`,
		Example: `  gitrollout diff
  gitrollout diff shop --context prod-eu`,
		Args:              atMostOne("app"),
		ValidArgsFunction: s.completeApps(),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	c.color.register(cmd)
	return cmd
}

func (c *diffCommand) run(ctx context.Context, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := openWorld(ctx, &c.source, c.streams)
	if err != nil {
		return err
	}
	apps, err := w.Selected(args)
	if err != nil {
		return err
	}
	if err := lookAt(ctx, w, nil, c.streams); err != nil {
		return err
	}
	if w.Note != "" {
		fmt.Fprintln(c.err, w.Note)
	}
	server, err := c.target.dryRunner()
	if err != nil {
		return err
	}
	for _, app := range apps {
		if err := c.app(ctx, w, server, app); err != nil {
			return fmt.Errorf("app %s: %w", app.Name, err)
		}
	}
	return cmp.Or(silentIf(c.differences > 0, exitFailed), silentIf(c.missed, exitCluster))
}

func (c *diffCommand) app(ctx context.Context, w *console.Session, server *cluster.DryRunner, app rollout.App) error {
	in, err := w.Input(ctx, app, time.Now())
	if err != nil {
		return err
	}
	objects, err := w.Wanted(ctx, app, in)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.Annotation(rollout.AnnotationSealed) != "" {
			fmt.Fprintf(c.err, "%s is encrypted in Git, and is not compared: there is no key here\n", o.Ref())
			continue
		}
		if o.CreateOnly() {
			fmt.Fprintf(c.err, "%s is create-only: its content is not compared\n", o.Ref())
		}
		live, after, err := server.Compare(ctx, o)
		switch {
		case after != nil && err != nil:
			fmt.Fprintf(c.err, "%s is compared without a dry run, so removed fields are not found: %v\n", o.Ref(), err)
		case live == nil && cluster.IsForbidden(err):
			c.missed = true
			fmt.Fprintf(c.err, "%s is not observed: %v\n", o.Ref(), err)
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", o.Ref(), err)
		}
		if err := c.print(o.Ref(), live, after); err != nil {
			return err
		}
	}
	for _, ref := range strategies.Prunable(in.State, objects) {
		live, err := server.Get(ctx, ref, app.Name)
		if err != nil {
			return fmt.Errorf("%s: %w", ref, err)
		}
		if keeps := live.Keeps(); keeps != "" {
			fmt.Fprintf(c.err, "%s has left Git, and is kept (%s): delete it by hand\n", ref, keeps)
			continue
		}
		if err := c.print(ref, live, nil); err != nil {
			return err
		}
	}
	return nil
}

func (c *diffCommand) print(ref rollout.Ref, live, after rollout.Object) error {
	text, err := plan.Compare("cluster/"+ref.String(), live, "git/"+ref.String(), after)
	if err != nil || text == "" {
		return err
	}
	c.differences++
	_, err = fmt.Fprint(c.out, terminal.Diff(text, c.color.lookOf(c.out)))
	return err
}
