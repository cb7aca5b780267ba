package dashboard

import (
	"context"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// Feed queues apps' last reports for a board.
type Feed struct {
	board *Board
	warn  func(what string, facts ...any)
	fail  func(what string, facts ...any)

	mu    sync.Mutex
	looks map[string]report.App
	gone  map[string]bool
	note  string // last Problem
	news  chan struct{}
}

// NewFeed returns a Feed. It calls warn for errors, and fail for panics.
func NewFeed(board *Board, warn, fail func(what string, facts ...any)) *Feed {
	return &Feed{board: board, warn: warn, fail: fail, looks: map[string]report.App{}, gone: map[string]bool{},
		news: make(chan struct{}, 1)}
}

// Tell queues a report for Run. It does not delay the reconciler.
func (f *Feed) Tell(r report.Report) {
	f.mu.Lock()
	news := len(r.Apps)+len(r.Gone) > 0
	if p := r.Problem; p != nil {
		f.board.Staged.Store(r.Staged)
		news = news || *p != f.note
		f.note = *p
	}
	for _, name := range r.Gone {
		f.gone[name] = true
		delete(f.looks, name)
	}
	for _, a := range r.Apps {
		f.looks[a.Input.App.Name] = a
		delete(f.gone, a.Input.App.Name)
	}
	f.mu.Unlock()
	if !news {
		return
	}
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// Run copies reports to the board until ctx ends.
func (f *Feed) Run(ctx context.Context, now func() time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.news:
		}
		f.mu.Lock()
		looks, left, note := f.looks, f.gone, f.note
		f.looks, f.gone = map[string]report.App{}, map[string]bool{}
		f.mu.Unlock()
		apps := rollout.Mapped(slices.Collect(maps.Values(looks)), f.statusOf)
		if err := f.board.Show(now(), note, apps, slices.Collect(maps.Keys(left))); err != nil {
			f.warn("the dashboard is behind", "error", err)
		}
	}
}

func (f *Feed) statusOf(l report.App) (a status.App) {
	defer func() {
		if trouble := recover(); trouble != nil {
			f.fail("an app cannot be shown", "app", l.Input.App.Name, "panic", trouble, "stack", string(debug.Stack()))
			a = status.App{App: l.Input.App.Name, Cluster: l.Cluster, Path: l.Input.App.Path, Phase: l.Input.State.Phase,
				Note: "the app cannot be shown; see the log of gitrollout"}
		}
	}()
	a = status.Of(l.Input, l.Cluster, l.Proposals)
	if l.Err != nil {
		a.Warnings = append(a.Warnings[:len(a.Warnings):len(a.Warnings)], "the last pass: "+l.Err.Error())
	}
	return a
}
