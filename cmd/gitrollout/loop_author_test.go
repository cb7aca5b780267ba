package main

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestAuthorsOfOneLook: of two pushes that are seen at one look, a release and a promotion have the author of the commit that
// made them, and the release its commit: not those of the other one, which is the head.
func TestAuthorsOfOneLook(t *testing.T) {
	const ann, bob = "Ann Lee <ann@example.com>", "Bob Roe <bob@example.com>"
	w := newLoopWorld(t, version("v1", halfThenGate))
	as := func(author string, files map[string]string) string {
		w.repo.Pull()
		w.repo.Write(files)
		w.repo.Git("add", "--all")
		w.repo.Git("commit", "-q", "-m", "by "+author, "--author", author)
		return w.repo.Push()
	}
	app := func(tag string) map[string]string {
		files := map[string]string{}
		for name, content := range version(tag, halfThenGate) {
			files["apps/"+w.app+"/"+name] = strings.ReplaceAll(content, "APP", w.app)
		}
		return files
	}
	p := w.start()
	p.awaitHealthy(w.repo.Head())

	released := as(ann, app("v2"))
	as(bob, map[string]string{"README.md": "not of the app\n"})
	s := p.awaitPaused(released)
	if s.Release.Author != ann {
		t.Errorf("the release is by %s, want %s", s.Release.Author, ann)
	}
	decision := rollout.Promotion{Release: s.Release.Hash, Decision: rollout.Promote}
	data, err := decision.Encode()
	if err != nil {
		t.Fatal(err)
	}
	as(bob, map[string]string{rollout.PromotionPath("test", w.app): string(data)})
	as(ann, map[string]string{"README.md": "not of the app either\n"})
	s = p.await("it was let pass", func(s rollout.State) bool {
		return len(s.Progress) > 0 && s.Progress[0].Opened != "" || s.Phase == rollout.Healthy
	})
	w.wantText(strings.Join(w.history(), "\n"), "promoted by "+bob)
}
