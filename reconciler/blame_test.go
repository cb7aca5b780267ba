package reconciler

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// pastOf has the history of an origin's commits, and counts the questions for a line of commits.
type pastOf struct {
	*origin
	lines int
	then  func() error // runs while it is read
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

// TestAStartNamesTheCommitThatMadeTheRelease checks commits that were pushed while no process ran. The release names
// the last commit that changed its app, not the newest one. History is read only when an app follows a commit, and a
// rollback never waits for it.
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
		// Commits seen by this process need no history.
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
	t.Run("a rollback", func(t *testing.T) {
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

// TestAStartNamesWhoPromoted checks a promotion pushed while no process ran, followed by other commits. The release
// passes in the name of the promotion's author, once that is known. Without history the newest commit is named, as
// for releases. An abort does not wait, and a file that opens no gate reads no history.
func TestAStartNamesWhoPromoted(t *testing.T) {
	start := func(t *testing.T, files func(w *world) map[string]string) (*world, *pastOf) {
		w := paused(t, nil)
		past := &pastOf{origin: w.git}
		w.git.author = "Bob"
		w.commit("promotion", files(w))
		w.git.author = "Cid"
		w.commit("readme", map[string]string{"README.md": "not of the app\n"})
		w.commit("readme again", map[string]string{"README.md": "again\n"})
		o := w.r.Options
		o.Past = past
		w.r = New(o)
		return w, past
	}
	promote := func(w *world) map[string]string { return promotion(w, "full") }
	want := func(t *testing.T, w *world, past *pastOf, text string, lines int) {
		t.Helper()
		if said := strings.Join(w.git.messages, "\n"); !strings.Contains(said, text) || past.lines != lines {
			t.Errorf("the history was read %d times, want %d; %q is not said:\n%s", past.lines, lines, text, said)
		}
		if said := strings.Join(w.git.messages, "\n"); strings.Contains(said, "by Cid") {
			t.Errorf("another author's name is on it:\n%s", said)
		}
	}
	t.Run("promotion", func(t *testing.T) {
		w, past := start(t, promote)
		w.settle()
		want(t, w, past, "promoted by Bob", 1)
		o := w.r.Options // the file stays afterwards, and opens no gate
		w.r = New(o)
		w.settle()
		want(t, w, past, "promoted by Bob", 1)
	})
	t.Run("while more is pushed", func(t *testing.T) {
		w, past := start(t, promote)
		past.then = func() error {
			past.then = nil
			w.commit("readme", map[string]string{"README.md": "once more\n"})
			return w.r.in.look(w.Context())
		}
		w.settle()
		want(t, w, past, "promoted by Bob", 2) // one more question, for the commits between the two heads
	})
	t.Run("written again meanwhile", func(t *testing.T) {
		w, past := start(t, promote)
		past.then = func() error {
			past.then = nil
			w.git.author = "Dan"
			w.commit("promotion", decision(w, "through: full\nreason: mine"))
			w.git.author = "Cid"
			w.commit("readme", map[string]string{"README.md": "once more\n"})
			return w.r.in.look(w.Context())
		}
		w.settle()
		want(t, w, past, "promoted by Dan", 2)
	})
	t.Run("history that is gone", func(t *testing.T) {
		w, past := start(t, promote)
		past.then = func() error { return errors.New("not within 1000 commits") }
		w.settle()
		if said := strings.Join(w.git.messages, "\n"); !strings.Contains(said, "promoted by Cid") || past.lines != 1 {
			t.Errorf("the history was read %d times, and the head's author is not named:\n%s", past.lines, said)
		}
		if s := w.state(); s.Phase != rollout.Healthy {
			t.Errorf("%s, want it promoted", s.Phase)
		}
	})
	t.Run("hold of a release that Git asks for", func(t *testing.T) {
		w := newWorld(t, nil)
		past := &pastOf{origin: w.git}
		w.git.author = "Bob"
		files := maps.Clone(w.git.commits[w.git.heads.Main].files)
		files["apps/shop/app.yaml"] = version("v2")
		next, err := source.NewReader("prod", render.New(render.InProcess{})).Render(tree{id: "c", files: files}, app("shop"))
		if err != nil {
			t.Fatal(err)
		}
		w.commit("hold", map[string]string{rollout.PromotionPath("prod", "shop"): "apiVersion: gitrollout.dev/v1alpha2\nkind: Promotion\nrelease: " +
			string(next.Release()) + "\ndecision: hold\n", "apps/shop/app.yaml": version("v2")})
		w.settle()
		w.git.author = "Cid"
		w.commit("readme", map[string]string{"README.md": "not of the app\n"})
		w.settle()
		before := len(w.git.messages)
		o := w.r.Options
		o.Past = past
		w.r = New(o)
		w.settle()
		if said := strings.Join(w.git.messages, "\n"); !strings.Contains(said, "hold by Bob") || len(w.git.messages) != before || past.lines != 1 {
			t.Errorf("the history was read %d times, %d commits became %d:\n%s", past.lines, before, len(w.git.messages), said)
		}
	})
	t.Run("hold", func(t *testing.T) {
		w, past := start(t, func(w *world) map[string]string { return decision(w, "decision: hold") })
		w.settle()
		if past.lines != 1 || w.pods("v1") != 2 {
			t.Errorf("the history was read %d times, %d pods of v1", past.lines, w.pods("v1"))
		}
	})
	t.Run("abort", func(t *testing.T) {
		w, past := start(t, func(w *world) map[string]string { return decision(w, "decision: abort\nreason: a bad one") })
		past.then = func() error { return errors.New("no route") }
		if err := w.once(); err != nil {
			t.Fatal(err)
		}
		if s := w.state(); s.Phase != rollout.Aborting || w.pods("v2") != 0 {
			t.Errorf("%s, %d pods of v2", s.Phase, w.pods("v2"))
		}
		want(t, w, past, "aborted by a promotion file: a bad one", past.lines)
	})
}
