package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/views/status"
)

// watcher shows the same look again and again: in place on a terminal, otherwise a
// line whenever something has changed.
type watcher struct {
	*lookCommand
	view    viewer
	changed <-chan struct{}  // something in the cluster has
	resized <-chan os.Signal // the window is

	screen  screen
	seen    status.Listing    // as of the last look that worked
	looked  time.Time         // at Git
	trouble string            // why the last look did not work, "" if it did
	lines   map[string]string // the last that was printed of each app
	note    string
}

// follow watches until ctx ends. A look that fails is shown as a note on what
// was seen before, and the next one tries again.
func (c *lookCommand) follow(ctx context.Context, v viewer, changed <-chan struct{}) error {
	_, _, terminal := terminalSize(c.out)
	f := &watcher{lookCommand: c, view: v, changed: changed, screen: screen{out: c.out}, looked: time.Now()}
	told, stop := resizes()
	defer stop()
	f.resized = told
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
			f.trouble = "as of the last look that worked: " + err.Error()
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
		f.trouble = "as of the last look that worked: " + err.Error()
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

// print writes for a pipe: everything at first, and then a line for each app of
// which there is news; with -o wide everything each time.
func (f *watcher) print() error {
	l := f.chosen(f.seen)
	first := f.lines == nil
	if first {
		f.lines = map[string]string{}
	}
	var news []string
	for _, a := range l.Apps {
		if line := watchLine(a); line != f.lines[a.App] {
			f.lines[a.App] = line
			news = append(news, line)
		}
	}
	for _, app := range slices.Sorted(maps.Keys(f.lines)) {
		if !slices.ContainsFunc(l.Apps, func(a status.App) bool { return a.App == app }) {
			delete(f.lines, app)
			news = append(news, app+" is no longer among them")
		}
	}
	if l.Note != f.note {
		f.note = l.Note
		news = append(news, cmp.Or(clean(l.Note), "everything can be read again"))
	}
	var text string
	now := time.Now().UTC().Format(time.RFC3339)
	switch {
	case first:
		text = f.text(f.color.lookOf(f.out)) + "\n"
	case len(news) > 0 && f.output.format == "wide":
		text = now + "\n" + f.text(f.color.lookOf(f.out)) + "\n"
	default:
		for _, line := range news {
			text += now + " " + line + "\n"
		}
	}
	_, err := io.WriteString(f.out, text)
	return err
}

// watchLine is where an app stands, with its pods and what was measured.
func watchLine(a status.App) string {
	line := statusLine(a)
	_, _, _, ready := summary(a)
	if a.Note == "" {
		line += ", " + ready + " ready"
	}
	for _, r := range a.Analyses {
		if a.Release != nil {
			line += ", analysis " + r.Name + " " + string(r.Phase)
		}
	}
	return line
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
	case <-f.resized:
	case <-f.changed:
		select { // what belongs together arrives together
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
	return true
}
