package main

import (
	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/terminal"
)

func newEvents(s streams) *cobra.Command {
	var output outputOption
	var color colorOption
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
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := openWorld(cmd.Context(), &s.source, s)
			if err == nil {
				err = s.target.limit(w, args[0])
			}
			if err == nil {
				err = tryConnect(cmd.Context(), w, nil, s)
			}
			if err != nil {
				return err
			}
			h, err := console.Events(cmd.Context(), w, args[0])
			if err != nil {
				return err
			}
			k := color.lookOf(s.out)
			k.Wide = true
			return output.show(s, h, func() string { return terminal.History(h, k) })
		},
	}
	color.register(cmd)
	output.register(cmd, "json", "yaml")
	return cmd
}
