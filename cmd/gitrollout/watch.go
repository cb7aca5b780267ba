package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/status"
)

// watcher shows the same look again and again: in place on a terminal,
// otherwise as snapshots whenever something has changed.
type watcher struct {
	*lookCommand
	view    viewer
	changed <-chan struct{} // something in the cluster has

	screen  screen
	seen    status.Listing // as of the last look that worked
	looked  time.Time      // at Git
	trouble string         // why the last look did not work, "" if it did
	printed string
}

// follow watches until ctx ends. A look that fails is shown as a note on what
// was seen before, and the next one tries again.
func (c *lookCommand) follow(ctx context.Context, v viewer, changed <-chan struct{}) error {
	_, _, terminal := terminalSize(c.out)
	f := &watcher{lookCommand: c, view: v, changed: changed, screen: screen{out: c.out}, looked: time.Now()}
	for {
		if err := f.look(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		show := f.print
		if terminal {
			show = f.redraw
		}
		if err := show(); err != nil {
			return err
		}
		if !f.pause(ctx, terminal) {
			return nil
		}
		if time.Since(f.looked) < f.every {
			continue
		}
		f.trouble, f.looked = "", time.Now()
		if _, err := v.refresh(ctx); err != nil {
			f.trouble = "as of the last time that Git could be read: " + err.Error()
		}
	}
}

func (f *watcher) look(ctx context.Context) error {
	now, err := f.view.listing(ctx, f.args, time.Now())
	var stated *failure
	switch {
	case err == nil:
		f.seen = now
	case ctx.Err() == nil && (f.seen.Apps == nil || errors.As(err, &stated)): // there is no such app (any more)
		return err
	default:
		f.trouble = "as of the last time that Git could be read: " + err.Error()
	}
	if f.trouble != "" {
		f.seen.SetNote(f.trouble)
	}
	return nil
}

func (f *watcher) text(k look) string {
	k.wide = f.output.format == "wide"
	return f.draw(f.chosen(f.seen), f.single(), k)
}

// redraw draws in place. What does not fit loses pods first, as what it waits for
// and what to do stand below them.
func (f *watcher) redraw() error {
	columns, rows, _ := terminalSize(f.out)
	k := f.color.lookOf(f.out)
	k.rows = rows - 1
	var text string
	for _, k.fewer = range []int{0, maxPods / 2, maxPods - 1, maxPods} {
		text = f.text(k)
		if height(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), columns) <= k.rows {
			break
		}
	}
	return f.screen.show(text, columns, rows)
}

func (f *watcher) print() error {
	now := still(f.chosen(f.seen))
	if now == f.printed {
		return nil
	}
	f.printed = now
	_, err := fmt.Fprintf(f.out, "%s\n%s\n", time.Now().UTC().Format(time.RFC3339), f.text(f.color.lookOf(f.out)))
	return err
}

// pause waits for the next look: sooner if the cluster changed, and each second
// on a terminal, where seconds count down.
func (f *watcher) pause(ctx context.Context, terminal bool) bool {
	every := f.every
	if terminal {
		every = min(every, time.Second)
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(every):
	case <-f.changed:
		select { // what belongs together arrives together
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
	return true
}

// still is a look without what only time changes.
func still(l status.Listing) string { return drawApps(l, look{wide: true}) }
