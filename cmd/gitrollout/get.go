package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/rollout"
)

// lookCommand is what get and list share.
type lookCommand struct {
	streams
	source sourceOptions
	target clusterOptions
	output outputOption
	color  colorOption
	watch  bool
	every  time.Duration
	args   []string
	// draw turns what is seen into text; single is for one named app.
	draw func(l listing, single bool, k look) string
}

func (c *lookCommand) register(cmd *cobra.Command) {
	c.source.register(cmd)
	c.target.register(cmd)
	c.output.register(cmd, "json", "yaml", "wide")
	c.color.register(cmd)
	cmd.Flags().BoolVarP(&c.watch, "watch", "w", false, "keep watching, until interrupted")
	cmd.Flags().DurationVar(&c.every, "refresh", 2*time.Second, "with --watch: time between looks at Git")
}

func newGet(s streams) *cobra.Command {
	c := &lookCommand{streams: s, draw: func(l listing, single bool, k look) string {
		if single {
			return drawApp(l.Apps[0], k)
		}
		return drawApps(l, k)
	}}
	cmd := &cobra.Command{
		Use:   "get [APP]",
		Short: "Show where a release stands, what it waits for and what to do",
		Long: `Show an app: its release, the steps with a mark at the current one, the weight
asked for and reached, the ReplicaSets and pods of each version, what it waits
for, and the commands that move it on or back.

  ✔ Healthy   ◐ Progressing   ‖ Paused    ▲ Promoting
  ! Stalled   ▼ Aborting      ✖ Degraded  ■ held by bad input

Without APP it shows every app that is not Healthy in full and the others in a
line each; -o wide shows all of them, and all of their pods.

It reads Git, and the cluster if that can be reached. With -w it is drawn in
place on a terminal; otherwise a snapshot is printed whenever something changed.`,
		Example: `  gitrollout get shop
  gitrollout get shop -w
  gitrollout get shop -o json | jq -r .phase`,
		Args:              atMostOne("app"),
		ValidArgsFunction: completeApps(s),
		RunE:              c.run,
	}
	c.register(cmd)
	return cmd
}

func (c *lookCommand) run(cmd *cobra.Command, args []string) error {
	if c.watch && (c.output.format == "json" || c.output.format == "yaml") {
		return usagef("--watch is for people; for programs: repeat %s -o %s", cmd.CommandPath(), c.output.format)
	}
	if c.every < 100*time.Millisecond {
		return usagef("--refresh %s is less than 100ms", c.every)
	}
	c.args = args
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	w, err := openWorld(ctx, c.source, git.Identity{}, c.streams)
	if err != nil {
		return err
	}
	if _, err := w.selected(args); err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	w.tryConnect(ctx, c.target, func(string) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}, c.streams)
	if c.watch {
		return c.follow(ctx, w, changed)
	}
	l, err := w.listing(ctx, args, time.Now())
	if err != nil {
		return err
	}
	return c.print(l)
}

// print shows one look.
func (c *lookCommand) print(l listing) error {
	single := len(c.args) == 1
	var data any = l
	if single {
		data = l.Apps[0]
	}
	if done, err := c.output.write(c.streams, data); done {
		return err
	}
	k := c.color.lookOf(c.out)
	k.wide = c.output.format == "wide"
	_, err := fmt.Fprint(c.out, c.draw(l, single, k))
	return err
}

// follow looks again and again: in place on a terminal, otherwise as snapshots.
// A look that fails is shown in the place of the note, and the next one tries
// again.
func (c *lookCommand) follow(ctx context.Context, w *world, changed <-chan struct{}) error {
	_, terminal := terminalSize(c.out)
	screen := &screen{out: c.out}
	last := ""
	trouble := ""
	for {
		l, err := w.listing(ctx, c.args, time.Now())
		if err != nil && ctx.Err() == nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		if trouble != "" {
			l.setNote(trouble)
		}
		k := c.color.lookOf(c.out)
		k.wide = c.output.format == "wide"
		if terminal {
			if err := screen.show(c.draw(l, len(c.args) == 1, k)); err != nil {
				return err
			}
		} else if now := fmt.Sprintf("%+v", l.fixed()); now != last {
			last = now
			if _, err := fmt.Fprintf(c.out, "%s\n%s\n", k.now.UTC().Format(time.RFC3339), c.draw(l, len(c.args) == 1, k)); err != nil {
				return err
			}
		}
		if !c.pause(ctx, changed, terminal) {
			return nil
		}
		trouble = ""
		if _, err := w.refresh(ctx); err != nil && ctx.Err() == nil {
			trouble = "as of the last time that Git could be read: " + err.Error()
		}
	}
}

// pause waits for the next look: sooner if the cluster changed, and each second
// on a terminal, where seconds count down.
func (c *lookCommand) pause(ctx context.Context, changed <-chan struct{}, terminal bool) bool {
	every := c.every
	if terminal {
		every = min(every, time.Second)
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(every):
	case <-changed:
		time.Sleep(100 * time.Millisecond) // what belongs together arrives together
	}
	return true
}

// listing looks at the selected apps.
func (w *world) listing(ctx context.Context, args []string, now time.Time) (listing, error) {
	apps, err := w.selected(args)
	if err != nil {
		return listing{}, err
	}
	l := listing{Cluster: w.source.cluster, Note: w.note, Apps: []appStatus{}}
	for _, app := range apps {
		in, err := w.input(ctx, app, now)
		var invalid *rollout.InvalidError
		if errors.As(err, &invalid) {
			l.Apps = append(l.Apps, appStatus{App: app.Name, Cluster: l.Cluster, Path: app.Path, Phase: "Unknown",
				Held: &heldStatus{Reason: "InvalidState", Message: "its state file cannot be read: " + err.Error()}, Note: w.note})
			continue
		}
		if err != nil {
			return listing{}, err
		}
		a := statusOf(in, l.Cluster, w.heads.Proposals)
		a.Note = w.note
		l.Apps = append(l.Apps, a)
	}
	return l, nil
}

func (l *listing) setNote(note string) {
	l.Note = note
	for i := range l.Apps {
		l.Apps[i].Note = note
	}
}

// fixed is what of a look makes another snapshot worth printing.
func (l listing) fixed() string {
	var b strings.Builder
	still := look{}
	for _, a := range l.Apps {
		b.WriteString(drawApp(a, still))
	}
	return l.Note + b.String()
}

// completeApps completes the names of apps. It says nothing if Git cannot be
// read without asking.
func completeApps(s streams) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		text := func(name string) string {
			if f := cmd.Flags().Lookup(name); f != nil {
				return f.Value.String()
			}
			return ""
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
		defer cancel()
		w, err := openWorld(ctx, sourceOptions{
			repo: text("repo"), branch: text("branch"), cluster: text("cluster"), sshKey: text("ssh-key"), knownHosts: text("known-hosts"),
		}, git.Identity{}, s)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return w.names(), cobra.ShellCompDirectiveNoFileComp
	}
}
