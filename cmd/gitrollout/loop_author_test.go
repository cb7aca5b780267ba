package main

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

const ann, bob = "Ann Lee <ann@example.com>", "Bob Roe <bob@example.com>"

func (w *loopWorld) as(author string, files map[string]string) string {
	w.Helper()
	w.repo.Pull()
	w.repo.Write(files)
	w.repo.Git("add", "--all")
	w.repo.Git("commit", "-q", "-m", "by "+author, "--author", author)
	return w.repo.Push()
}

// promoted returns a promotion file that promotes the given release of the app.
func (w *loopWorld) promoted(release rollout.Hash) map[string]string {
	w.Helper()
	promotion := rollout.Promotion{Release: release, Decision: rollout.Promote}
	return map[string]string{rollout.PromotionPath("test", w.app): encoded(w, promotion)}
}

// halfway returns the files, by path, of a version whose release pauses at a weight of 50%.
func (w *loopWorld) halfway(tag string) map[string]string {
	files := map[string]string{}
	for name, content := range version(tag, halfThenGate) {
		files["apps/"+w.app+"/"+name] = strings.ReplaceAll(content, "APP", w.app)
	}
	return files
}

// TestAuthorsOfOneLook pushes a release and later its promotion, each followed by another author's unrelated commit. One poll can fetch
// both commits of such a pair. The record must name the authors of the release and of the promotion, and the release's commit, not the
// head.
func TestAuthorsOfOneLook(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	as, app := w.as, w.halfway
	p := w.startHealthy()

	released := as(ann, app("v2"))
	as(bob, map[string]string{"README.md": "not of the app\n"})
	s := p.awaitPaused(released)
	if s.Release.Author != ann {
		t.Errorf("the release is by %s, want %s", s.Release.Author, ann)
	}
	as(bob, w.promoted(s.Release.Hash))
	as(ann, map[string]string{"README.md": "not of the app either\n"})
	p.await("it was let pass", func(s rollout.State) bool {
		return len(s.Progress) > 0 && s.Progress[0].Opened != "" || s.Phase == rollout.Healthy
	})
	w.wantText(strings.Join(w.history(), "\n"), "promoted by "+bob)
}

// TestAuthorsAfterAStart pushes a release while no process runs. The record of the next process has the author and the ID of the commit
// that changed the app. If no commit changed the app, a process does not fetch the history.
func TestAuthorsAfterAStart(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	p.end()
	w.as(bob, map[string]string{"README.md": "not of the app\n"})
	quiet := w.start()
	quiet.passes(3)
	before := quiet.created.Stats()
	quiet.end()

	w.as(bob, w.halfway("v2"))
	released := w.as(ann, w.halfway("v3"))
	for range 3 {
		w.as(bob, map[string]string{"README.md": w.repo.Head()})
	}
	p = w.start()
	s := p.awaitPaused(released)
	if s.Release.Author != ann || s.Source != released {
		t.Errorf("the release is by %s, want %s; the app is at %s, want %s", s.Release.Author, ann, s.Source, released)
	}
	if before.Fetches != 2 {
		t.Errorf("a process with nothing new fetched %d times, want 2: both branches, and the commit that the app is at", before.Fetches)
	}
	if got := p.created.Stats(); got.Fetches > before.Fetches+2 {
		t.Errorf("it fetched %d times, want at most 2 more: the history, and pushes made meanwhile", got.Fetches)
	}
}

// TestPromoterAfterAStart pushes a promotion, and then other commits, while no process runs. The record must name the promotion's author.
func TestPromoterAfterAStart(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	s := p.awaitPaused(w.as(ann, w.halfway("v2")))
	p.end()
	w.as(bob, w.promoted(s.Release.Hash))
	for range 3 {
		w.as(ann, map[string]string{"README.md": w.repo.Head()})
	}
	p = w.start()
	p.awaitPhase(rollout.Healthy)
	w.wantText(strings.Join(w.history(), "\n"), "promoted by "+bob)
	if got := p.created.Stats(); got.Fetches > 4 {
		t.Errorf("it fetched %d times, want both branches, the commit that the app is at, and the history", got.Fetches)
	}
}
