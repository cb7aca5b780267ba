package worktree_test

import (
	"os"
	"path/filepath"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render/worktree"
	"gitrollout.dev/gitrollout/rollout"
)

// TestLookup checks that a folder on disk has the entries that a commit of this folder would have. Lookup must find neither .git nor a path
// below a file or a symlink.
func TestLookup(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".git/config", "apps/shop/web.yaml"} {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("content"), 0o644))
	}
	for link, target := range map[string]string{"link": "apps", "apps/dead": "nowhere", "away": t.TempDir()} {
		must(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	tree, err := worktree.Open(dir)
	must(t, err)
	for name, want := range map[string]rollout.EntryKind{
		"": rollout.Dir, ".": rollout.Dir, "apps": rollout.Dir, "apps/shop": rollout.Dir, "apps/shop/web.yaml": rollout.File,
		"link": rollout.Symlink, "apps/dead": rollout.Symlink, "away": rollout.Symlink,
		".git": "", ".git/config": "", "apps/none": "", "apps/none/web.yaml": "", "apps/../apps": "", "apps/shop/web.yaml/x": "",
		"link/shop": "", "link/shop/web.yaml": "", "apps/dead/web.yaml": "", "away/web.yaml": "",
	} {
		e, found, err := tree.Lookup(name)
		must(t, err)
		compare.CheckNamed(t, name, want, e.Kind)
		compare.CheckNamed(t, name+" is found", want != "", found)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
