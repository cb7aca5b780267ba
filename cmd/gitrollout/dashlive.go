package main

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/views/dashboard"
	"gitrollout.dev/gitrollout/views/status"
)

// dashFeed takes what the passes of a reconciler have looked at to a board,
// without making a pass wait: of what comes in meanwhile, the newest look at an
// app is kept.
type dashFeed struct {
	board *dashboard.Board
	log   *slog.Logger

	mu    sync.Mutex
	looks map[string]reconciler.App
	gone  map[string]bool
	news  chan struct{}
}

func newDashFeed(board *dashboard.Board, log *slog.Logger) *dashFeed {
	return &dashFeed{board: board, log: log, looks: map[string]reconciler.App{}, gone: map[string]bool{},
		news: make(chan struct{}, 1)}
}

// tell is told what the loop reports.
func (f *dashFeed) tell(r reconciler.Report) {
	if len(r.Apps)+len(r.Gone) == 0 {
		return
	}
	f.mu.Lock()
	for _, name := range r.Gone {
		f.gone[name] = true
		delete(f.looks, name)
	}
	for _, a := range r.Apps {
		f.looks[a.Input.App.Name] = a
		delete(f.gone, a.Input.App.Name)
	}
	f.mu.Unlock()
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// run fills the board until ctx ends.
func (f *dashFeed) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.news:
		}
		f.mu.Lock()
		looks, left := f.looks, f.gone
		f.looks, f.gone = map[string]reconciler.App{}, map[string]bool{}
		f.mu.Unlock()
		apps := make([]status.App, 0, len(looks))
		for _, l := range looks {
			apps = append(apps, f.statusOf(l))
		}
		names := make([]string, 0, len(left))
		for name := range left {
			names = append(names, name)
		}
		if err := f.board.Show(time.Now(), "", apps, names); err != nil {
			f.log.Warn("the dashboard is behind", "error", err)
		}
	}
}

// statusOf is what a look comes to. An app that cannot be explained, which would be
// a mistake of ours, is shown as that: it must not end the process that releases.
func (f *dashFeed) statusOf(l reconciler.App) (a status.App) {
	defer func() {
		if trouble := recover(); trouble != nil {
			f.log.Error("an app cannot be shown", "app", l.Input.App.Name, "panic", trouble, "stack", string(debug.Stack()))
			a = status.App{App: l.Input.App.Name, Cluster: l.Cluster, Path: l.Input.App.Path, Phase: l.Input.State.Phase,
				Note: "it cannot be shown; see the log of gitrollout"}
		}
	}()
	a = status.Of(l.Input, l.Cluster, l.Proposals)
	if l.Err != nil {
		a.Warnings = append(a.Warnings[:len(a.Warnings):len(a.Warnings)], "the last pass: "+l.Err.Error())
	}
	return a
}

// startDashboard serves the dashboard of a loop until the returned function is
// called.
func startDashboard(o dashOptions, l *loop, log *slog.Logger, s streams) (stop func(), err error) {
	listener := o.listen(log)
	if listener == nil {
		return func() {}, nil
	}
	board := dashboard.NewBoard(l.source.cluster,
		"no pass has been made yet: the cluster is being read, or this replica stands by while another one works")
	server, err := o.server(&dashRecords{streams: s, source: l.source, repo: l.created}, board)
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	feed := newDashFeed(board, log)
	l.outlets.others = append(l.outlets.others, feed.tell)
	ctx, cancel := context.WithCancel(context.Background())
	go feed.run(ctx)
	end := o.serve(listener, server, func(err error) { log.Error("the dashboard is no longer served", "error", err) })
	log.Info("serving the dashboard", "url", "http://"+listener.Addr().String(), "actions", o.actions)
	return func() { end(); cancel() }, nil
}
