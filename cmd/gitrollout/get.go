package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

type lookCommand struct {
	streams
	output outputOption
	color  colorOption
	watch  bool
	every  time.Duration
	args   []string

	server      string
	clusterOnly bool
	selector    string // for list
	// single means that the user named one app.
	draw   func(l status.Listing, single bool, k terminal.Look) string
	filter *terminal.Filter // selects and sorts apps; nil for get
}

func (c *lookCommand) register(cmd *cobra.Command) {
	c.output.register(cmd, "json", "yaml", "wide")
	c.color.register(cmd)
	cmd.Flags().BoolVarP(&c.watch, "watch", "w", false, "keep watching, until interrupted")
	cmd.Flags().DurationVar(&c.every, "refresh", 2*time.Second, "with --watch: time between looks at Git")
	cmd.Flags().StringVar(&c.server, "server", "",
		"show the data from the reconciler's page at this `URL`, including measurements that are not recorded yet (default: GITROLLOUT_SERVER)")
	cmd.Flags().BoolVar(&c.clusterOnly, "cluster-only", false, "show the state of the cluster alone, without Git")
}

func newGet(s streams) *cobra.Command {
	c := &lookCommand{streams: s, draw: func(l status.Listing, single bool, k terminal.Look) string {
		if single {
			return terminal.App(l.Apps[0], k)
		}
		return terminal.Apps(l, k)
	}}
	cmd := &cobra.Command{
		Use:   "get [APP]",
		Short: "Show the state of a release, why it waits, and the next commands",
		Long: `Show an app: images, subject and author of the new and the stable version, the
condition for which it waits, and the commands that move it on or back. Below, the
steps with a mark at the current one, the weight asked for and reached, and the
ReplicaSets and pods of each version.

  ✔ Healthy   ◐ Progressing   ‖ Paused    ▲ Promoting
  ! Stalled   ▼ Aborting      ✖ Degraded  ■ held by bad input

Without APP it shows every app that is not Healthy in full and the others in a
line each; -o wide shows all of them, and all of their pods.

It reads Git and, if it can be reached, the cluster. If Git cannot be reached, it
reads only the cluster. A reconciler's page at http://127.0.0.1:3100 adds measurements that are
not in Git yet, if you name an APP. With --server, all data is from that page.

With -w, a terminal shows the output in place. Without a terminal, each change prints
a line or, with -o wide, the whole output.`,
		Example: `  gitrollout get shop
  gitrollout get shop -w
  gitrollout get shop -o json | jq -r .phase`,
		Args:              atMostOne("app"),
		ValidArgsFunction: s.completeApps(),
		RunE:              c.run,
	}
	c.register(cmd)
	return cmd
}

func (c *lookCommand) run(cmd *cobra.Command, args []string) error {
	if c.watch && (c.output.format == "json" || c.output.format == "yaml") {
		return usagef("--watch prints text for people; a program can repeat %s -o %s", cmd.CommandPath(), c.output.format)
	}
	if c.every < 100*time.Millisecond {
		return usagef("--refresh %s is less than 100ms", c.every)
	}
	c.args = args // nil for list, because its arguments are patterns
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	changed := make(chan struct{}, 1)
	v, err := c.open(ctx, c.args, func() { poke(changed) })
	if err != nil {
		return err
	}
	if c.watch {
		return c.follow(ctx, v, changed)
	}
	l, err := v.Listing(ctx, c.args, time.Now())
	if err != nil {
		return err
	}
	return c.print(l)
}

func (c *lookCommand) print(l status.Listing) error {
	if err := c.missing(l); err != nil {
		return err
	}
	l = c.filter.Apply(l)
	single := len(c.args) == 1
	var data any = l
	if single && (c.shown != nil || c.output.format != "" && c.output.format != "wide") {
		data = status.Seeing()(l.Apps[0])
	}
	return c.output.show(c.streams, data, func() string { return c.draw(l, single, c.lookOf()) })
}

func (c *lookCommand) missing(l status.Listing) error {
	if c.filter == nil {
		return nil
	}
	if missed := c.filter.Missed(l); len(missed) > 0 {
		return fmt.Errorf("no app of cluster %s matches %s; gitrollout list shows all apps", l.Cluster,
			strings.Join(rollout.Mapped(missed, strconv.Quote), ", "))
	}
	return nil
}

func (c *lookCommand) lookOf() terminal.Look {
	k := c.color.lookOf(c.out)
	k.Wide = c.output.format == "wide"
	return k
}
