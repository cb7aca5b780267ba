package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

const testConfig = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/*\n"

// TestDirTreeIsTheCommit checks that look-ups in a folder give the same results as look-ups in a commit with the same files.
func TestDirTreeIsTheCommit(t *testing.T) {
	remote := gittest.New(t)
	remote.Write(map[string]string{"a/b/c.yaml": "c", "a/d.yaml": "d", "e": ""})
	for link, target := range map[string]string{"a/link": "../e", "a/dir": "b", "out": "/etc"} {
		must(t, os.Symlink(target, filepath.Join(remote.Work, link)))
	}
	remote.CommitFiles("files and links", nil)
	r, err := openRepository(t.Context(), git.Options{URL: remote.Bare, Branch: "main", Cluster: "test"})
	must(t, err)
	heads, err := r.Fetch(t.Context())
	must(t, err)
	commit, err := r.Snapshot(t.Context(), heads.Main)
	must(t, err)
	dir, err := openDir(remote.Work)
	must(t, err)
	for _, path := range []string{
		"", "a", "a/b", "a/b/c.yaml", "a/link", "a/dir", "a/dir/c.yaml", "out", "out/passwd", "e/f",
		"none", "none/none", ".git", ".git/config", "../x", "/etc",
	} {
		want, wantFound, _ := commit.Lookup(path)
		got, found, err := dir.Lookup(path)
		if err != nil || found != wantFound || got.Kind != want.Kind || got.Name != want.Name {
			t.Errorf("Lookup(%q) = %+v, %t, %v; the commit has %+v, %t", path, got, found, err, want, wantFound)
		}
		switch want.Kind {
		case rollout.Dir:
			compare.CheckNamed(t, path, children(t, commit.ReadDir, path), children(t, dir.ReadDir, path))
		case rollout.File, rollout.Symlink:
			wantData, _ := commit.ReadBlob(want.ID)
			data, err := dir.ReadBlob(got.ID)
			if err != nil || string(data) != string(wantData) {
				t.Errorf("%s is %q, error %v; the commit has %q", path, data, err, wantData)
			}
		}
	}
}

func children(t *testing.T, read func(string) ([]rollout.Entry, error), path string) map[string]rollout.EntryKind {
	t.Helper()
	entries, err := read(path)
	must(t, err)
	out := map[string]rollout.EntryKind{}
	for _, e := range entries {
		out[e.Name] = e.Kind
	}
	return out
}

func TestHelpShowsNoCredentials(t *testing.T) {
	t.Setenv("GITROLLOUT_REPO", "https://ann:s3cret@git.example.com/shop.git")
	if out := wantExit(t, exitOK, "run", "--help"); strings.Contains(out, "s3cret") {
		t.Error(out)
	}
}
