package main

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

func newList(s streams) *cobra.Command {
	f := &terminal.Filter{}
	c := &lookCommand{streams: s, filter: f}
	c.draw = func(l status.Listing, _ bool, k terminal.Look) string { return terminal.List(l, k) }
	cmd := &cobra.Command{
		Use:     "list [PATTERN...]",
		Aliases: []string{"ls"},
		Short:   "List all apps, one line each",
		Long: `List the apps of a cluster: namespace, phase, step, weight, ready pods, images, age,
and the condition for which the app waits. During a release, IMAGES has the stable
and the new tag. Patterns are names with * and ?; a pattern without a match is an
error. Flags select further: an app must match all of them.

On a terminal the lines are cut at its width. -o wide and a pipe show all, and
-o wide adds strategy, author, the hashes of both versions and the cohort of a shared
change. The first lines count the apps of each shared change. With -w
on a terminal it shows as many apps as there is room for, apps with problems first,
below a line that counts all.`,
		Example: `  gitrollout list
  gitrollout list -w --waiting
  gitrollout list 'shop-*' --phase Paused,Degraded
  gitrollout list -n shop -l team=checkout --sort age
  gitrollout list -o json | jq -r '.apps[] | select(.phase != "Healthy") | .app'`,
		ValidArgsFunction: s.completeApps(),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			f.Names = args
			if err := f.Check(); err != nil {
				return usagef("%v", err)
			}
			if c.selector != "" && c.clusterOnly {
				return usagef("--cluster-only and --selector exclude each other: the labels are in Git")
			}
			if f.Labels, err = labelled(c.selector); err != nil {
				return err
			}
			if _, _, isTerminal := terminalSize(c.out); f.Sort == "" && c.watch && isTerminal {
				f.Sort = "urgency"
			}
			return c.run(cmd, nil)
		},
	}
	c.register(cmd)
	c.registerFilter(cmd, f)
	cmd.Flags().StringVarP(&c.selector, "selector", "l", "",
		"only apps whose workloads have these `labels`: team=pay,tier!=batch")
	return cmd
}

func labelled(selector string) (func(map[string]string) bool, error) {
	if selector == "" {
		return nil, nil
	}
	parsed, err := labels.Parse(selector)
	if err != nil {
		return nil, usagef("--selector %q is invalid: %v", selector, err)
	}
	return func(of map[string]string) bool { return parsed.Matches(labels.Set(of)) }, nil
}

func (s streams) registerFilter(cmd *cobra.Command, f *terminal.Filter) {
	flags := cmd.Flags()
	flags.StringVarP(&f.Namespace, "namespace", "n", "", "only apps in this `namespace`")
	flags.StringSliceVar(&f.Phases, "phase", nil, "only apps in this `phase`, or in several: Paused,Degraded")
	flags.BoolVar(&f.Held, "held", false, "only held apps: because of an error, gitrollout does not change them")
	flags.BoolVar(&f.Waiting, "waiting", false, "only apps that wait for a person: at a gate, on hold, rejected, or held")
	flags.StringVar(&f.Text, "text", "", "only apps with this text in a name, image, commit, author, subject or reason")
	flags.StringVar(&f.Sort, "sort", "",
		"name, namespace, age (newest first), change (by shared change and cohort) or urgency (problems first) "+
			"(default: name; with --watch on a terminal: urgency)")
	s.complete(cmd, "phase", func(*console.Session, []string) []string { return terminal.PhaseNames() })
	s.complete(cmd, "sort", func(*console.Session, []string) []string { return terminal.OrderNames() })
}
