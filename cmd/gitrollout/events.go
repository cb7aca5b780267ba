package main

import (
	"context"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/terminal"
)

// eventsCommand shows an app's newest release, with the Kubernetes events of the app's objects.
type eventsCommand struct {
	streams
	output outputOption
	color  colorOption
}

func newEvents(s streams) *cobra.Command {
	c := &eventsCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "events APP",
		Short: "Show Kubernetes events and transitions of an app's newest release",
		Long: `Show what happened to an app since its newest release began, in one list, oldest
first: the transitions that Git has, and Kubernetes events of the app's objects. These
are the objects in Git, their ReplicaSets and pods, and the Jobs of hooks.

A repeated event appears once, with the time of its last occurrence. By default, API
servers delete events after an hour.

Your own rights count: the ClusterRole view in the app's namespaces is enough. Without
the right to list events, a note names this right, and the transitions are shown.`,
		Example: `  gitrollout events shop
  gitrollout events shop -o json | jq -r '.releases[].transitions[] | select(.type == "Warning") | .text'`,
		Args:              exactlyOne("app"),
		ValidArgsFunction: s.completeApps(),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.color.register(cmd)
	c.output.register(cmd, "json", "yaml")
	return cmd
}

func (c *eventsCommand) run(ctx context.Context, name string) error {
	w, err := openWorld(ctx, &c.source, c.streams)
	if err == nil {
		err = c.target.limit(w, name)
	}
	if err == nil {
		err = tryConnect(ctx, w, nil, c.streams)
	}
	if err != nil {
		return err
	}
	h, err := console.Events(ctx, w, name)
	if err != nil {
		return err
	}
	k := c.color.lookOf(c.out)
	k.Wide = true
	return c.output.show(c.streams, h, func() string { return terminal.History(h, k) })
}
