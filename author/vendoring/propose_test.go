package vendoring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/gittest"
)

// TestWorkingCopy makes a deterministic commit with all changes, whatever is staged, and leaves the working copy
// unchanged. Files that vendor did not bring in are refused.
func TestWorkingCopy(t *testing.T) {
	for _, env := range gittest.Env() {
		if name, value, _ := strings.Cut(env, "="); strings.HasPrefix(name, "GIT_") {
			t.Setenv(name, value)
		}
	}
	repo := gittest.New(t)
	head := repo.CommitFiles("first", map[string]string{"a/vendor.yaml": "x\n", ".gitignore": "*.log\n", "a/gone.txt": "x\n"})
	w := WorkingCopy(filepath.Join(repo.Work, "a"))
	commit := func() string {
		t.Helper()
		id, err := w.Commit(t.Context(), "vendored", "Vendor: x")
		must(t, err)
		return id
	}
	must(t, w.Clean(t.Context()))
	if id := commit(); id != "" {
		t.Errorf("a commit of nothing: %s", id)
	}
	repo.Write(map[string]string{"a/charts/x.yaml": "1\n", "b/other.yaml": "1\n", "a/run.log": "1\n"})
	must(t, os.Remove(filepath.Join(repo.Work, "a/gone.txt")))
	if err := w.Clean(t.Context()); err == nil || !strings.Contains(err.Error(), "commit or stash it") {
		t.Errorf("with changes: %v", err)
	}
	first := commit()
	must(t, w.Push(t.Context(), first, "vendored"))
	if files := strings.Join(repo.Files("vendored"), " "); files != ".gitignore a/charts/x.yaml a/vendor.yaml b/other.yaml" {
		t.Errorf("it has %s", files)
	}
	if again := commit(); again != first {
		t.Errorf("the same is %s, and then %s", first, again)
	}
	if status := repo.Git("status", "--porcelain"); !strings.Contains(status, "?? a/charts/") || repo.Git("rev-parse", "HEAD") != head {
		t.Errorf("the working copy has %s", status)
	}
	repo.Write(map[string]string{"a/charts/x.yaml": "2\n"})
	second := commit()
	if second == first || second == "" {
		t.Errorf("another content is %q after %s", second, first)
	}
	must(t, w.Push(t.Context(), second, "vendored"))
	if parent := repo.InBare("rev-parse", "vendored^"); parent != head {
		t.Errorf("it stands on %s, not on %s", parent, head)
	}
	if _, err := WorkingCopy(t.TempDir()).Commit(t.Context(), "x", "x"); err == nil {
		t.Error("a folder that is no clone")
	}
}
