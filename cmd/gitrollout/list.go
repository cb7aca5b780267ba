package main

import (
	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

func newList(s streams) *cobra.Command {
	c := &lookCommand{streams: s}
	c.draw = func(l status.Listing, _ bool, k terminal.Look) string { return terminal.List(l, k) }
	f := &terminal.Filter{}
	c.only = f.Apply
	cmd := &cobra.Command{
		Use:     "list [PATTERN...]",
		Aliases: []string{"ls"},
		Short:   "List all apps, one line each",
		Long: `List the apps of a cluster: phase, strategy, step, weight, ready pods, the stable
and the new release, its author, and why it waits. Patterns are names with * and ?;
the flags narrow it down further, and all of them must match.

On a terminal the lines are cut at its width; -o wide or a pipe shows all. With -w
on a terminal it shows as many apps as there is room for, apps with problems first,
below a line that counts all.`,
		Example: `  gitrollout list
  gitrollout list -w --waiting
  gitrollout list 'shop-*' --phase Paused,Degraded
  gitrollout list -o json | jq -r '.apps[] | select(.phase != "Healthy") | .app'`,
		ValidArgsFunction: completeApps(),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Names = args
			if err := f.Check(); err != nil {
				return usagef("%v", err)
			}
			if _, _, isTerminal := terminalSize(c.out); f.Sort == "" && c.watch && isTerminal {
				f.Sort = "urgency"
			}
			return c.run(cmd, nil)
		},
	}
	c.register(cmd)
	registerFilter(cmd, f)
	return cmd
}

func registerFilter(cmd *cobra.Command, f *terminal.Filter) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.Phases, "phase", nil, "only apps in this `phase`, or in several: Paused,Degraded")
	flags.BoolVar(&f.Held, "held", false, "only apps that gitrollout holds, that is, does not change, because of an error")
	flags.BoolVar(&f.Waiting, "waiting", false, "only apps that wait for a person: at a gate, on hold, rejected, or held")
	flags.StringVar(&f.Text, "text", "", "only apps with this text in a name, commit, author, subject or reason")
	flags.StringVar(&f.Sort, "sort", "",
		"name, or urgency: apps with problems first (default: name; with --watch on a terminal: urgency)")
	complete(cmd, "phase", func(*console.Session, []string) []string { return terminal.PhaseNames() })
}
