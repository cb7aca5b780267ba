package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

type logsCommand struct {
	streams
	color colorOption

	canary, stable, follow bool
	since                  time.Duration
	tail                   int
}

func newLogs(s streams) *cobra.Command {
	c := &logsCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "logs APP",
		Short: "Show the logs of an app's pods, of one version or of all",
		Long: `Show the logs of an app's pods: of the version that is being released (--canary),
of the stable version (--stable), or of both. A line has its pod's name and, if the
pod has several containers, the container's name. Init containers count as containers.
Workloads without a Rollout have no versions, so their pods are shown only without
--canary and --stable.

Colours show the version. Control characters are removed, and lines are cut after
64 KiB.

With -f the command continues until Ctrl-C. It adds the logs of new pods and of
restarted containers, and waits if there are no pods yet. If a pod changes its
version, as a promoted canary does, the log begins ten seconds earlier.

Your own rights count: the ClusterRole view in the app's namespaces is enough.`,
		Example: `  gitrollout logs shop --canary -f
  gitrollout logs shop --stable --since 10m
  gitrollout logs shop --tail -1 | grep -i error`,
		Args:              exactlyOne("app"),
		ValidArgsFunction: s.completeApps(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("tail") {
				c.tail = map[bool]int{true: -1, false: 100}[c.since > 0]
			}
			return c.run(cmd.Context(), args[0])
		},
	}
	c.color.register(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&c.canary, "canary", false, "only pods of the new version (canary or preview)")
	flags.BoolVar(&c.stable, "stable", false, "only pods of the stable version")
	flags.BoolVarP(&c.follow, "follow", "f", false, "follow the logs, also of new pods, until interrupted")
	flags.DurationVar(&c.since, "since", 0, "only lines younger than this `duration`, such as 10m")
	flags.IntVar(&c.tail, "tail", 0,
		"only the last `lines` of each container, -1 for all (default: 100; with --since: -1)")
	return cmd
}

func (c *logsCommand) version() (status.Version, error) {
	switch {
	case c.canary && c.stable:
		return "", usagef("--canary and --stable exclude each other; without both, all pods are shown")
	case c.since < 0:
		return "", usagef("--since %s must be positive, such as 10m", c.since)
	case c.tail < -1:
		return "", usagef("--tail %d must be a number of lines, or -1 for all lines", c.tail)
	case c.canary:
		return status.New, nil
	case c.stable:
		return status.Stable, nil
	}
	return "", nil
}

func (c *logsCommand) run(ctx context.Context, name string) error {
	version, err := c.version()
	if err != nil {
		return err
	}
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	changed := make(chan struct{}, 1)
	view, client, err := c.open(ctx, name, func() { poke(changed) })
	if err != nil {
		return err
	}
	l, err := view.Listing(ctx, []string{name}, time.Now())
	if err != nil {
		return err
	}
	app, t := l.Apps[0], &tailer{logsCommand: c, logs: cluster.LogsOf(client), look: c.color.lookOf(c.out),
		known: map[string]*knownPod{}, told: map[string]time.Time{}}
	if app.Note != "" {
		t.note(app.Note)
	}
	pods := version.Of(app)
	switch {
	case c.follow:
		if len(pods) == 0 {
			t.note(version.Missing(app) + "; waiting for pods")
		}
		return t.followPods(ctx, view, version, app, changed)
	case len(pods) == 0:
		return errors.New(version.Missing(app))
	}
	return t.readPods(ctx, pods)
}

// open returns a viewer and a client for the app's namespaces. If Git is unreachable, the viewer reads only the
// cluster.
func (c *logsCommand) open(ctx context.Context, name string, told func()) (viewer, *cluster.Client, error) {
	w, err := openWorld(ctx, &c.source, c.streams)
	if errors.Is(err, git.ErrUnreachable) || errors.Is(err, git.ErrAuth) {
		v, clusterErr := openClusterView(ctx, told, err.Error(), c.streams)
		if clusterErr != nil {
			return nil, nil, err
		}
		return v, v.Client, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if err := c.target.limit(w, name); err != nil {
		return nil, nil, err
	}
	err = lookAt(ctx, w, func(app string) { w.Touch(app); told() }, c.streams)
	return w, w.Client, err
}

func (c *logsCommand) note(text string) { _, _ = io.WriteString(c.err, terminal.CleanLines(text)) }

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // one unread signal is enough
	}
}
