package reconciler

import (
	"context"
	"errors"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// pastOf is what Git tells of an origin's commits, and how often it was asked for a line.
type pastOf struct {
	*origin
	lines int
	then  func() error // happens while it is read
}

func (p *pastOf) Between(ctx context.Context, from, to string) ([]Snapshot, error) {
	p.lines++
	if p.then != nil {
		if err := p.then(); err != nil {
			return nil, err
		}
	}
	return p.origin.Between(ctx, from, to)
}

// TestAStartNamesTheCommitThatMadeTheRelease: what was pushed while no process ran is released as of the commit that
// changed the app, and not of the newest one; of an app that was changed twice, the last of them. History is read only
// where an app follows, and no retreat waits for it.
func TestAStartNamesTheCommitThatMadeTheRelease(t *testing.T) {
	start := func(t *testing.T) (*world, *pastOf) {
		w := newWorld(t, nil)
		return w, &pastOf{origin: w.git}
	}
	again := func(w *world, past *pastOf) {
		o := w.r.Options
		o.Past = past
		w.r = New(o)
	}
	readme := map[string]string{"README.md": "not of the app\n"}
	app := func(v string) map[string]string { return map[string]string{"apps/shop/app.yaml": version(v)} }

	t.Run("of several pushes", func(t *testing.T) {
		w, past := start(t)
		w.commit("v2", app("v2"))
		made := w.commit("v3", app("v3"))
		w.commit("readme", readme)
		again(w, past)
		w.settle()
		if s := w.state(); s.Release == nil || s.Release.Commit != made || s.Source != made || past.lines != 1 {
			t.Errorf("the release is %+v of %s, want of %s; the history was read %d times", s.Release, s.Source, made, past.lines)
		}
		// What this process has seen needs no history.
		w.commit("readme again", map[string]string{"README.md": "again\n"})
		w.settle()
		if s := w.state(); s.Source != made || past.lines != 2 { // from one head to the next
			t.Errorf("it is at %s, want %s; the history was read %d times", s.Source, made, past.lines)
		}
	})
	t.Run("while more is pushed", func(t *testing.T) {
		w, past := start(t)
		made := w.commit("v2", app("v2"))
		again(w, past)
		w.commit("readme", readme)
		past.then = func() error {
			past.then = nil
			w.commit("readme again", map[string]string{"README.md": "again\n"})
			return w.r.in.look(w.Context())
		}
		w.settle()
		if s := w.state(); s.Release == nil || s.Release.Commit != made {
			t.Errorf("the release is %+v, want of %s", s.Release, made)
		}
	})
	t.Run("history that is gone", func(t *testing.T) {
		w, past := start(t)
		w.commit("v2", app("v2"))
		head := w.commit("readme", readme)
		past.then = func() error { return errors.New("not within 1000 commits") }
		again(w, past)
		w.settle()
		if s := w.state(); s.Release == nil || s.Release.Commit != head || past.lines != 1 {
			t.Errorf("the release is %+v, want of %s; the history was read %d times", s.Release, head, past.lines)
		}
	})
	t.Run("nothing of the app", func(t *testing.T) {
		w, past := start(t)
		at := w.state().Source
		w.commit("readme", readme)
		again(w, past)
		w.settle()
		if s := w.state(); s.Source != at || past.lines > 0 {
			t.Errorf("it is at %s, want %s; the history was read %d times", s.Source, at, past.lines)
		}
	})
	t.Run("a retreat", func(t *testing.T) {
		w, past := start(t)
		w.commit("v2", app("v2"))
		w.settle()
		w.commit("v1", app("v1"))
		w.commit("readme", readme)
		past.then = func() error { return errors.New("no route") }
		again(w, past)
		if err := w.once(); err != nil {
			t.Fatal(err)
		}
		if s := w.state(); s.Phase != rollout.Aborting || past.lines > 0 {
			t.Errorf("it is %s; the history was read %d times", s.Phase, past.lines)
		}
	})
}
