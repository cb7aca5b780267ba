package vendoring_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/author/vendoring"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// TestWorkingCopy checks that Commit makes a deterministic commit of all changes, staged or not, and leaves the working copy unchanged.
// Clean returns an error if there are changes.
func TestWorkingCopy(t *testing.T) {
	for _, env := range gittest.Env() {
		if name, value, _ := strings.Cut(env, "="); strings.HasPrefix(name, "GIT_") {
			t.Setenv(name, value)
		}
	}
	repo := gittest.New(t)
	head := repo.CommitFiles("first", map[string]string{"a/vendor.yaml": "x\n", ".gitignore": "*.log\n", "a/gone.txt": "x\n"})
	w := vendoring.WorkingCopy(filepath.Join(repo.Work, "a"))
	commit := func() string {
		t.Helper()
		id, err := w.Commit(t.Context(), "vendored", "Vendor: x")
		must(t, err)
		return id
	}
	must(t, w.Clean(t.Context()))
	compare.CheckNamed(t, "a commit of nothing", "", commit())
	repo.Write(map[string]string{"a/charts/x.yaml": "1\n", "b/other.yaml": "1\n", "a/run.log": "1\n"})
	must(t, os.Remove(filepath.Join(repo.Work, "a/gone.txt")))
	compare.Contains(t, fmt.Sprint(w.Clean(t.Context())), "commit or stash these changes")
	first := commit()
	must(t, w.Push(t.Context(), first, "vendored"))
	compare.Check(t, ".gitignore a/charts/x.yaml a/vendor.yaml b/other.yaml", strings.Join(repo.Files("vendored"), " "))
	compare.CheckNamed(t, "the same again", first, commit())
	if status := repo.Git("status", "--porcelain"); !strings.Contains(status, "?? a/charts/") || repo.Git("rev-parse", "HEAD") != head {
		t.Errorf("the working copy has %s", status)
	}
	repo.Write(map[string]string{"a/charts/x.yaml": "2\n"})
	second := commit()
	if second == first || second == "" {
		t.Errorf("another content is %q after %s", second, first)
	}
	must(t, w.Push(t.Context(), second, "vendored"))
	compare.CheckNamed(t, "its parent", head, repo.InBare("rev-parse", "vendored^"))
	if _, err := vendoring.WorkingCopy(t.TempDir()).Commit(t.Context(), "x", "x"); err == nil {
		t.Error("a folder that is no clone")
	}
}
