package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/dashboard"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

type watcher struct {
	*lookCommand
	view    viewer
	changed <-chan struct{} // signals changes in the cluster
	resized <-chan os.Signal

	screen  terminal.Screen
	news    terminal.News
	seen    status.Listing // the last listing without an error
	looked  time.Time
	trouble string // why the last refresh failed, or ""
}

func (c *lookCommand) follow(ctx context.Context, v viewer, changed <-chan struct{}) error {
	_, _, isTerminal := terminalSize(c.out)
	resized, stop := resizes()
	defer stop()
	f := &watcher{lookCommand: c, view: v, changed: changed, resized: resized, screen: terminal.Screen{Out: c.out},
		looked: time.Now()}
	for {
		if err := f.look(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		show := f.print
		if isTerminal {
			show = f.redraw
		}
		if err := show(); err != nil {
			return err
		}
		if !f.pause(ctx, isTerminal) {
			return nil
		}
		if time.Since(f.looked) < f.every {
			continue
		}
		f.trouble, f.looked = "", time.Now()
		if _, err := v.Refresh(ctx); err != nil {
			f.trouble = "the refresh fails, so this may be out of date: " + err.Error()
		}
	}
}

func (f *watcher) look(ctx context.Context) error {
	now, err := f.view.Listing(ctx, f.args, time.Now())
	ends := errors.As(err, new(*failure)) || errors.As(err, new(console.NoAppError))
	switch {
	case err == nil && f.seen.Apps == nil:
		f.seen = now
		return f.missing(now)
	case err == nil:
		f.seen = now
	case ctx.Err() == nil && (f.seen.Apps == nil || ends): // there is no listing yet, or the app no longer exists
		return err
	default:
		f.trouble = "the refresh fails, so this may be out of date: " + err.Error()
	}
	if f.trouble != "" {
		f.seen.SetNote(f.trouble)
	}
	return nil
}

func (f *watcher) text(k terminal.Look) string {
	return f.draw(f.filter.Apply(f.seen), len(f.args) == 1, k)
}

func (f *watcher) redraw() error {
	columns, rows, _ := terminalSize(f.out)
	return f.screen.Draw(f.lookOf(), columns, rows, f.text)
}

func (f *watcher) print() error {
	_, err := io.WriteString(f.out, f.news.Of(f.filter.Apply(f.seen), f.lookOf(), f.text))
	return err
}

// pause waits for a refresh, a change or a resize. On a terminal, it waits at most 1 second.
func (f *watcher) pause(ctx context.Context, isTerminal bool) bool {
	every := f.every
	if isTerminal {
		every = min(every, time.Second)
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(every):
	case <-f.resized:
	case <-f.changed:
		return sleep(ctx, 100*time.Millisecond) // to show several changes together
	}
	return true
}

type viewer interface {
	Listing(ctx context.Context, args []string, now time.Time) (status.Listing, error)
	Refresh(ctx context.Context) (changed bool, err error)
}

func (c *lookCommand) open(ctx context.Context, args []string, told func()) (_ viewer, err error) {
	server := cmp.Or(c.server, os.Getenv("GITROLLOUT_SERVER"))
	switch {
	case c.server != "" && c.clusterOnly:
		return nil, usagef("--server and --cluster-only exclude each other")
	case c.clusterOnly:
		return openClusterView(ctx, told, "--cluster-only", c.streams)
	case server != "":
		client, err := dashboard.NewClient(server, args)
		if err != nil {
			return nil, usagef("--server %v", err)
		}
		v := &serverView{client, args}
		_, err = v.Refresh(ctx)
		return v, err
	}
	w, err := openWorld(ctx, &c.source, c.streams)
	if errors.Is(err, git.ErrUnreachable) || errors.Is(err, git.ErrAuth) {
		if c.selector != "" {
			return nil, fmt.Errorf("--selector needs the labels in Git: %w", err)
		}
		v, clusterErr := openClusterView(ctx, told, err.Error(), c.streams)
		if clusterErr != nil {
			return nil, err
		}
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := w.Selected(args); err != nil {
		return nil, err
	}
	changed := func(app string) { w.Touch(app); told() }
	return measuredView{w, "http://" + dashAddress}, tryConnect(ctx, w, changed, c.streams)
}

// measuredView adds measurements that are not in Git yet. These are from the dashboard on this machine.
type measuredView struct {
	viewer
	page string
}

func (v measuredView) Listing(ctx context.Context, args []string, now time.Time) (status.Listing, error) {
	l, err := v.viewer.Listing(ctx, args, now)
	if err != nil || len(args) != 1 || l.Apps[0].Release == nil || len(l.Apps[0].Analyses) == 0 {
		return l, err
	}
	ctx, stop := context.WithTimeout(ctx, time.Second) // another program may listen on the port and never respond
	defer stop()
	page, err := dashboard.NewClient(v.page, args)
	if err == nil {
		_, err = page.Refresh(ctx)
	}
	if err == nil {
		a, live := &l.Apps[0], page.Listing().Apps[0]
		if r := live.Release; r != nil && live.Cluster == a.Cluster && r.Hash == a.Release.Hash {
			a.Analyses = live.Analyses
		}
	}
	return l, nil
}

func openClusterView(ctx context.Context, told func(), why string, s streams) (*console.ClusterView, error) {
	w := console.New(console.Options{Cluster: s.source.cluster})
	if err := lookAt(ctx, w, func(string) { told() }, s); err != nil {
		return nil, err
	}
	w.Client.Know(rollout.PartitionedKinds)
	if w.Note != "" {
		why += "; " + w.Note
	}
	name := cmp.Or(s.source.cluster, os.Getenv("GITROLLOUT_CLUSTER"))
	return &console.ClusterView{Client: w.Client, Name: name, Why: why}, nil
}

type serverView struct {
	*dashboard.Client
	args []string
}

func (v *serverView) Refresh(ctx context.Context) (bool, error) {
	changed, err := v.Client.Refresh(ctx)
	if !errors.Is(err, dashboard.ErrNoSuchApp) {
		return changed, err
	}
	names, _ := v.Names(ctx) // if it fails, nothing is suggested
	if near := rollout.DidYouMean(v.args[0], names); near != "" {
		err = fmt.Errorf("%w; %s", err, near)
	}
	return false, &failure{code: exitFailed, err: err}
}

func (v *serverView) Listing(context.Context, []string, time.Time) (status.Listing, error) {
	return v.Client.Listing(), nil
}
