package program_test

import (
	"path/filepath"
	"testing"

	"gitrollout.dev/gitrollout/git/program"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// TestProgram checks the package's functions with the real git in a clone, in a repository without an origin, and outside of a working
// copy.
func TestProgram(t *testing.T) {
	ctx, repo := t.Context(), gittest.New(t)
	first := repo.CommitFiles("first", map[string]string{"a/b.yaml": "b: 1\n"})
	repo.Git("checkout", "-q", "-b", "other")
	other := repo.CommitFiles("other", map[string]string{"a/b.yaml": "b: 2\n"})
	t.Chdir(filepath.Join(repo.Work, "a"))
	if got := program.Repository(ctx); got != repo.Bare {
		t.Errorf("the origin is %q, want %q", got, repo.Bare)
	}
	for name, want := range map[string]string{"HEAD": other, "HEAD~1": first, first[:10]: first, other: other} {
		if id, known := program.Commit(ctx, name); id != want || !known {
			t.Errorf("%s is %s, %t; want %s", name, id, known, want)
		}
	}
	for _, name := range []string{"nothing", "--all", "HEAD:a"} {
		if id, known := program.Commit(ctx, name); known {
			t.Errorf("%s is said to be commit %s", name, id)
		}
	}
	if id := program.Parted(ctx, first, other); id != first {
		t.Errorf("they parted at %s, want %s", id, first)
	}
	if id := program.Parted(ctx, other, "nothing"); id != other {
		t.Errorf("an unknown commit parted at %s, want %s", id, other)
	}
	env := func(name string) string { return map[string]string{"GIT_AUTHOR_NAME": "Ann"}[name] }
	repo.Git("config", "user.email", "ann@example.com")
	if name, email := program.Author(ctx, env); name != "Ann" || email != "ann@example.com" {
		t.Errorf("%s <%s>", name, email)
	}
	repo.Git("remote", "remove", "origin")
	if got, want := program.Repository(ctx), repo.Work; filepath.Base(got) != filepath.Base(want) {
		t.Errorf("without an origin it is %q, want %q", got, want)
	}
	t.Chdir(t.TempDir())
	if got := program.Repository(ctx); got != "" {
		t.Errorf("a folder that is no working copy is of %q", got)
	}
	if _, err := program.Says(ctx, "rev-parse", "HEAD"); err == nil {
		t.Error("git says something of it")
	}
}
