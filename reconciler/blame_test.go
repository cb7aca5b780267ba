package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// pastOf reads the history of a mirror's commits, and counts these reads.
type pastOf struct {
	*mirror
	lines int
	most  int          // if set, a longer history gives only its newest commits, and an error
	then  func() error // if set, is called at each read; its error ends the read
}

func (p *pastOf) Between(ctx context.Context, from, to string) ([]reconciler.Snapshot, error) {
	p.lines++
	if p.then != nil {
		if err := p.then(); err != nil {
			return nil, err
		}
	}
	line, err := p.mirror.Between(ctx, from, to)
	if p.most > 0 && len(line) > p.most {
		return line[len(line)-p.most:], fmt.Errorf("not within %d commits", p.most)
	}
	return line, err
}

// meanwhile sets p.then, so that the next read of the history first calls a function and fetches Git.
func (p *pastOf) meanwhile(w *world, pushed func()) {
	p.then = func() error {
		p.then = nil
		pushed()
		return w.r.Look(w.Context())
	}
}

// These edits change no app.
var readme, readmeAgain = map[string]string{"README.md": "not of the app\n"}, map[string]string{"README.md": "again\n"}

// TestAStartNamesTheCommitThatMadeTheRelease restarts the process after several pushes. The release must name the last commit that changed
// its app, not the newest commit. The process reads the history only when an app moves to a new commit. A rollback does not wait for the
// history.
func TestAStartNamesTheCommitThatMadeTheRelease(t *testing.T) {
	start := func(t *testing.T) (*world, *pastOf) {
		w := newWorld(t, nil)
		return w, &pastOf{mirror: w.git}
	}
	follows := func(w *world, past *pastOf, commit string, lines int) {
		w.Helper()
		if s := w.state(); s.Release == nil || s.Release.Commit != commit || past.lines != lines {
			w.Errorf("the release is %+v, want of %s; the history was read %d times, want %d", s.Release, commit, past.lines, lines)
		}
	}
	t.Run("of several pushes", func(t *testing.T) {
		w, past := start(t)
		w.commit("v2", shopAt("v2"))
		made := w.commit("v3", shopAt("v3"))
		w.commit("readme", readme)
		w.restart(past)
		w.settle()
		follows(w, past, made, 1)
		compare.CheckNamed(t, "source", made, w.state().Source)
		// One more read returns the commits since the previous fetch.
		w.follow("readme again", readmeAgain)
		if follows(w, past, made, 2); w.state().Source != made {
			t.Errorf("it is at %s, want %s", w.state().Source, made)
		}
	})
	t.Run("while more is pushed", func(t *testing.T) {
		w, past := start(t)
		made := w.commit("v2", shopAt("v2"))
		w.restart(past)
		w.commit("readme", readme)
		past.meanwhile(w, func() { w.commit("readme again", readmeAgain) })
		w.settle()
		follows(w, past, made, past.lines)
	})
	t.Run("history that is gone", func(t *testing.T) {
		w, past := start(t)
		w.commit("v2", shopAt("v2"))
		head := w.commit("readme", readme)
		past.most = 1
		w.restart(past)
		w.settle()
		follows(w, past, head, 1)
	})
	for _, failure := range []error{fmt.Errorf("%w: 503", rollout.ErrUnreachable), errors.New("the token is refused")} {
		t.Run("history out of reach for a while: "+failure.Error(), func(t *testing.T) {
			w, past := start(t)
			made := w.commit("v2", shopAt("v2"))
			w.commit("readme", readme)
			past.then = func() error { return failure }
			w.restart(past)
			w.recordsNothing(func() { w.passes(5) })
			past.then = nil
			w.settle()
			follows(w, past, made, past.lines)
		})
	}
	t.Run("nothing of the app", func(t *testing.T) {
		w, past := start(t)
		at := w.state().Source
		w.commit("readme", readme)
		w.restart(past)
		w.settle()
		compare.CheckNamed(t, "source, and reads of the history", []any{at, 0}, []any{w.state().Source, past.lines})
	})
	t.Run("a rollback", func(t *testing.T) {
		w, past := start(t)
		w.follow("v2", shopAt("v2"))
		w.commit("v1", shopAt("v1"))
		w.commit("readme", readme)
		past.then = func() error { return errors.New("no route") }
		w.restart(past)
		w.pass()
		compare.CheckNamed(t, "phase, and reads of the history", []any{rollout.Aborting, 0}, []any{w.state().Phase, past.lines})
	})
}

// TestAStartNamesWhoPromoted pushes a promotion, then other commits, and restarts the reconciler. The recorded state must name the author
// of the promotion. If the history does not have the promotion, the state must name no author. An abort does not wait for the history. A
// promotion file without effect causes no read of the history.
func TestAStartNamesWhoPromoted(t *testing.T) {
	start := func(t *testing.T, files func(w *world) map[string]string) (*world, *pastOf) {
		w := paused(t, nil)
		past := &pastOf{mirror: w.git}
		w.git.author = "Bob"
		w.commit("promotion", files(w))
		w.git.author = "Cid"
		w.commit("readme", readme)
		w.commit("readme again", readmeAgain)
		w.restart(past)
		return w, past
	}
	promote := func(w *world) map[string]string { return promotion(w, "full") }
	want := func(t *testing.T, w *world, past *pastOf, text string, lines int) {
		t.Helper()
		said := strings.Join(w.git.messages, "\n")
		if !strings.Contains(said, text) || past.lines != lines || strings.Contains(said, "by Cid") {
			t.Errorf("the history was read %d times, want %d; want %q, and nothing by Cid:\n%s", past.lines, lines, text, said)
		}
	}
	t.Run("promotion", func(t *testing.T) {
		w, past := start(t, promote)
		w.settle()
		want(t, w, past, "promoted by Bob", 1)
		w.restart(past) // the promotion file still exists, but has no effect
		w.settle()
		want(t, w, past, "promoted by Bob", 1)
	})
	t.Run("while more is pushed", func(t *testing.T) {
		w, past := start(t, promote)
		past.meanwhile(w, func() { w.commit("readme", map[string]string{"README.md": "once more\n"}) })
		w.settle()
		want(t, w, past, "promoted by Bob", 2) // the fetch reads the commits from the former head to the new head
	})
	t.Run("written again meanwhile", func(t *testing.T) {
		w, past := start(t, promote)
		past.meanwhile(w, func() {
			w.git.author = "Dan"
			w.commit("promotion", decision(w, "through: full\nreason: mine"))
			w.git.author = "Cid"
			w.commit("readme", map[string]string{"README.md": "once more\n"})
		})
		w.settle()
		want(t, w, past, "promoted by Dan", 2)
	})
	t.Run("history that is gone", func(t *testing.T) {
		w, past := start(t, promote)
		past.most = 1
		w.settle()
		want(t, w, past, "promoted by a promotion file", 1)
		w.want(rollout.Healthy, 4)
	})
	t.Run("app that was away", func(t *testing.T) {
		w, past := start(t, func(w *world) map[string]string {
			files := promotion(w, "full")
			files[configFile] = pruneConfig
			return files
		})
		w.settle()
		want(t, w, past, "promoted by Bob", 1)
		file := rollout.PromotionPath("prod", "shop")
		again := map[string]string{file: w.git.Server.Files(w.git.main())[file]}
		gone := maps.Clone(withoutShop)
		gone[file] = ""
		w.follow("the app leaves", gone)
		clear(w.cluster.Deployments) // as pruned
		w.git.author = "Dan"
		w.follow("the same promotion", again)
		w.git.author = "Cid"
		back := shopAt("v1")
		back["apps/shop/kustomization.yaml"] = "resources: [app.yaml]\n"
		w.follow("the app returns", back)
		w.git.messages = nil
		w.follow("v2", shopAt("v2"))
		compare.Contains(t, strings.Join(w.git.messages, "\n"), "promoted by a promotion file")
	})
	t.Run("hold of a release that Git asks for", func(t *testing.T) {
		w := newWorld(t, nil)
		past := &pastOf{mirror: w.git}
		w.git.author = "Bob"
		files := w.git.Server.Files(w.git.main())
		files["apps/shop/app.yaml"] = version("v2")
		next, err := source.NewReader("prod", render.New(render.InProcess{})).Render(commitOf(files),
			rollout.App{Name: "shop", Path: "apps/shop"})
		must(t, err)
		hold := decisionOn(next.Release(), "decision: hold")
		maps.Copy(hold, shopAt("v2"))
		w.follow("hold", hold)
		w.git.author = "Cid"
		w.follow("readme", readme)
		w.restart(past)
		w.recordsNothing(w.settle)
		compare.Contains(t, strings.Join(w.git.messages, "\n"), "hold by Bob")
		compare.CheckNamed(t, "reads of the history", 1, past.lines)
	})
	t.Run("hold", func(t *testing.T) {
		w, past := start(t, func(w *world) map[string]string { return decision(w, "decision: hold") })
		w.settle()
		compare.CheckNamed(t, "reads of the history, and pods of v1", [2]int{1, 2}, [2]int{past.lines, w.pods("v1")})
	})
	t.Run("abort", func(t *testing.T) {
		w, past := start(t, func(w *world) map[string]string { return decision(w, "decision: abort\nreason: a bad one") })
		past.then = func() error { return errors.New("no route") }
		w.passes(1) // the read of the history fails
		w.want(rollout.Aborting, 0)
		want(t, w, past, "aborted by a promotion file: a bad one", past.lines)
	})
}
