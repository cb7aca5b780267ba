package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// watcher redraws a listing on a terminal, or else prints changes.
type watcher struct {
	*lookCommand
	view    viewer
	changed <-chan struct{}  // by the cluster
	resized <-chan os.Signal // by the terminal

	screen  terminal.Screen
	news    terminal.News
	seen    status.Listing // without an error
	looked  time.Time
	trouble string // why the last refresh failed, or ""
}

// follow prints listings until ctx ends. After a failed refresh, it adds a note and tries again.
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
			f.trouble = "as of the last look that worked: " + err.Error()
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
	case ctx.Err() == nil && (f.seen.Apps == nil || ends): // nothing was read yet, or the app no longer exists
		return err
	default:
		f.trouble = "as of the last look that worked: " + err.Error()
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

// pause waits for a refresh, a change or a resize; on a terminal at most 1 second.
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
		return sleep(ctx, 100*time.Millisecond) // show further changes together
	}
	return true
}
