package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
)

type renderCommand struct {
	streams
	withState bool
	commit    string
}

func newRender(s streams) *cobra.Command {
	c := &renderCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "render [APP]",
		Short: "Print the objects of an app as YAML",
		Long: `Print the objects of an app, or of all apps, as the newest commit renders them.

With --with-state it prints exactly the objects that should be in the cluster
now: the objects of the app's commit, with the release's progress laid over
them. While a release is in flight, these objects depend on pod counts, which are read
from the cluster.`,
		Example: `  gitrollout render shop
  gitrollout render shop --commit HEAD~3
  gitrollout render shop --with-state | kubectl diff --server-side -f -`,
		Args:              atMostOne("app"),
		ValidArgsFunction: s.completeApps(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.withState && c.commit != "" {
				return usagef("--with-state and --commit exclude each other: the state names the commit")
			}
			return c.run(cmd.Context(), args)
		},
	}
	cmd.Flags().BoolVar(&c.withState, "with-state", false, "print the objects that should be in the cluster now")
	cmd.Flags().StringVar(&c.commit, "commit", "", "render this `commit` instead of the newest one")
	return cmd
}

func (c *renderCommand) run(ctx context.Context, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := openWorld(ctx, &c.source, c.streams)
	if err != nil {
		return err
	}
	if c.commit != "" {
		id, err := fullCommit(ctx, "--commit", c.commit)
		if err != nil {
			return err
		}
		if err := w.At(ctx, id); err != nil {
			return err
		}
	}
	apps, err := w.Selected(args)
	if err != nil {
		return err
	}
	if c.withState {
		if err := tryConnect(ctx, w, nil, c.streams); err != nil {
			return err
		}
	}
	var failed []error
	for _, app := range apps {
		if objects, err := c.objects(ctx, w, app); err != nil {
			failed = append(failed, fmt.Errorf("app %s: %w", app.Name, err))
		} else if err := c.print(objects); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

func (c *renderCommand) objects(ctx context.Context, w *console.Session, app rollout.App) ([]rollout.Object, error) {
	if !c.withState {
		head := w.Head(app)
		if head.Err != nil {
			return nil, head.Err
		}
		return head.Render.Objects, nil
	}
	objects, note, err := console.WithState(ctx, w, app, time.Now())
	if err == nil && note != "" {
		_, err = fmt.Fprintln(c.err, "note: "+note)
	}
	return objects, err
}

func (c *renderCommand) print(objects []rollout.Object) error {
	for _, o := range objects {
		data, err := yaml.Marshal(o.Told())
		if err != nil {
			return fmt.Errorf("print %s: %w", o.Ref(), err)
		}
		if _, err := fmt.Fprintf(c.out, "---\n%s", data); err != nil {
			return err
		}
	}
	return nil
}
