package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
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

	server      string
	clusterOnly bool
	// draw turns what is seen into text; single is for one named app.
	draw func(l status.Listing, single bool, k terminal.Look) string
	// only leaves out what is not to be shown, nil if all is.
	only func(l status.Listing) status.Listing
}

func (c *lookCommand) register(cmd *cobra.Command) {
	c.source.register(cmd)
	c.target.register(cmd)
	c.output.register(cmd, "json", "yaml", "wide")
	c.color.register(cmd)
	cmd.Flags().BoolVarP(&c.watch, "watch", "w", false, "keep watching, until interrupted")
	cmd.Flags().DurationVar(&c.every, "refresh", 2*time.Second, "with --watch: time between looks at Git")
	cmd.Flags().StringVar(&c.server, "server", "",
		"show what a reconciler's page shows, measurements that are not recorded yet included: its `URL` (default: GITROLLOUT_SERVER)")
	cmd.Flags().BoolVar(&c.clusterOnly, "cluster-only", false, "show what the cluster alone tells, without Git")
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
		Short: "Show where a release stands, what it waits for and what to do",
		Long: `Show an app: its release, the steps with a mark at the current one, the weight
asked for and reached, the ReplicaSets and pods of each version, what it waits
for, and the commands that move it on or back.

  ✔ Healthy   ◐ Progressing   ‖ Paused    ▲ Promoting
  ! Stalled   ▼ Aborting      ✖ Degraded  ■ held by bad input

Without APP it shows every app that is not Healthy in full and the others in a
line each; -o wide shows all of them, and all of their pods.

It reads Git, and the cluster if that can be reached; the cluster alone if Git
cannot be. With --server it asks a running reconciler instead, which also knows
what it has measured since the last record. With -w it is drawn in place on a
terminal; otherwise a line is printed whenever something changed, and with -o wide
everything.`,
		Example: `  gitrollout get shop
  gitrollout get shop -w
  gitrollout get shop -o json | jq -r .phase`,
		Args:              atMostOne("app"),
		ValidArgsFunction: completeApps(),
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
	if c.only == nil {
		c.args = args // the others are patterns
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	changed := make(chan struct{}, 1)
	v, err := c.open(ctx, c.args, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	if c.watch {
		return c.follow(ctx, v, changed)
	}
	l, err := v.listing(ctx, c.args, time.Now())
	if err != nil {
		return err
	}
	return c.print(l)
}

// print shows one look.
func (c *lookCommand) print(l status.Listing) error {
	l = c.chosen(l)
	single := c.single()
	var data any = l
	if single {
		data = l.Apps[0]
	}
	if done, err := c.output.write(c.streams, data); done {
		return err
	}
	_, err := fmt.Fprint(c.out, c.draw(l, single, c.lookOf()))
	return err
}

func (c *lookCommand) lookOf() terminal.Look {
	k := c.color.lookOf(c.out)
	k.Wide = c.output.format == "wide"
	return k
}

// single reports whether one app was asked for by name.
func (c *lookCommand) single() bool { return c.only == nil && len(c.args) == 1 }

func (c *lookCommand) chosen(l status.Listing) status.Listing {
	if c.only == nil {
		return l
	}
	return c.only(l)
}

// lookers is how many apps are looked at at once; each is rendered.
const lookers = 4

// severally does something n times, some of them at once.
func severally(n int, do func(i int)) {
	slots := make(chan struct{}, lookers)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	all.Wait()
}

// listing looks at the selected apps.
func (w *world) listing(ctx context.Context, args []string, now time.Time) (status.Listing, error) {
	apps, err := w.selected(args)
	if err != nil {
		return status.Listing{}, err
	}
	notes := []string{w.note, w.warning()}
	for _, folder := range w.branch.Unnamed {
		notes = append(notes, folder.Err.Error())
	}
	notes = slices.DeleteFunc(notes, func(note string) bool { return note == "" })
	l := status.Listing{
		Cluster: w.source.cluster, Note: strings.Join(notes, "; "), Apps: make([]status.App, len(apps)),
	}
	errs := make([]error, len(apps))
	severally(len(apps), func(i int) { l.Apps[i], errs[i] = w.look(ctx, apps[i], now) })
	if text := w.warning(); text != "" && len(args) > 0 { // then the listing's note is not shown
		l.Apps[0].Warnings = append(slices.Clone(l.Apps[0].Warnings), text)
	}
	return l, errors.Join(errs...)
}

// look is status, but for apps at rest in which nothing has happened since.
func (w *world) look(ctx context.Context, app rollout.App, now time.Time) (status.App, error) {
	w.mu.Lock()
	a, known := w.seen[app.Name]
	before := w.touched[app.Name]
	w.mu.Unlock()
	if known {
		return a, nil
	}
	a, err := w.status(ctx, app, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && a.Phase == rollout.Healthy && a.Held == nil && w.touched[app.Name] == before {
		w.seen[app.Name] = a
	}
	return a, err
}

// touch says that something of an app has changed.
func (w *world) touch(app string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.seen, app)
	w.touched[app]++
}

// status looks at one app. A state file that cannot be read is a thing to show, and so is an app at which the program
// panics: the others are shown all the same.
func (w *world) status(ctx context.Context, app rollout.App, now time.Time) (a status.App, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			a, err = status.App{
				App: app.Name, Cluster: w.source.cluster, Path: app.Path, Phase: "Unknown", Note: w.note,
				Held: &status.Held{
					Reason: "Panicked", Message: fmt.Sprintf("it cannot be shown: the program panicked: %v", problem),
				},
			}, nil
		}
	}()
	in, err := w.input(ctx, app, now)
	if rollout.IsInvalid(err) {
		return status.App{
			App: app.Name, Cluster: w.source.cluster, Path: app.Path, Phase: "Unknown", Note: w.note,
			Held: &status.Held{Reason: "InvalidState", Message: "its state file cannot be read: " + err.Error()},
		}, nil
	}
	if err != nil {
		return status.App{}, fmt.Errorf("app %s: %w", app.Name, err)
	}
	if w.client != nil {
		source.LookAtHooks(ctx, &in, w.client)
	}
	a = status.Of(in, w.source.cluster, w.proposals(ctx, in))
	a.Note = w.note
	remote := w.repo.Remote().String()
	for i, n := range a.Next {
		a.Next[i].Command = w.source.command(n.Command)
		if n.Branch != "" {
			a.Next[i].URL = forge.PagesOf(w.config().Forge, remote).Pull(w.source.branch, n.Branch)
		}
	}
	return a, nil
}

// proposals are the branches that exist, but for those of an app of which everything is to be seen that somebody has
// written to, or that cannot be merged: nobody is told to merge them.
func (w *world) proposals(ctx context.Context, in strategies.Input) map[string]string {
	all := maps.Clone(w.heads.Proposals)
	for kind, is := range map[rollout.ProposalKind]func(rollout.Merge) bool{
		rollout.ProposePromotion: func(m rollout.Merge) bool { return propose.Mergeable(w.source.cluster, in, m) },
		rollout.ProposeRevert:    func(m rollout.Merge) bool { return w.restores(ctx, in, m) },
	} {
		branch := rollout.ProposalBranch(kind, w.source.cluster, in.App.Name)
		if all[branch] == "" || !w.detail {
			continue
		}
		if m, err := w.repo.Merge(ctx, all[branch], w.heads.Main); err == nil && !is(m) {
			delete(all, branch)
		}
	}
	return all
}

// restores tells about a merge that takes back what was rejected. What an undo goes back to is what a person has
// asked for, and only has to be about the app's files.
func (w *world) restores(ctx context.Context, in strategies.Input, m rollout.Merge) bool {
	if !propose.WantsRevert(in.State) || in.State.Stable == nil || in.Head.Render == nil {
		return m.Clean
	}
	stable, err := w.renderAt(ctx, in.App, in.State.Stable.Commit)
	if err != nil {
		return m.Clean
	}
	tree, err := w.repo.Snapshot(ctx, stable.Commit.ID)
	return err == nil && propose.Restores(m, w.branch.Tree, tree, slices.Concat(stable.Files, in.Head.Render.Files))
}
