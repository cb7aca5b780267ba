package git_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// sameAsGit compares the entries of a snapshot with the output of git ls-tree.
func sameAsGit(w *world, r *git.Repo, commit string) {
	w.Helper()
	s := snapshot(w, r, commit)
	want := map[string]string{}
	for _, line := range strings.Split(strings.Trim(w.server.InBare("ls-tree", "-r", "-t", "-z", "--full-tree", commit), "\x00"), "\x00") {
		meta, path, _ := strings.Cut(line, "\t")
		want[path] = strings.Replace(meta, "100755", "100644", 1)
	}
	got := map[string]string{}
	walk(w, s, "", func(path string, e rollout.Entry) {
		found, ok, err := s.Lookup(path)
		if err != nil || !ok || found != e {
			w.Errorf("Lookup(%q) = %+v, %v, %v; ReadDir says %+v", path, found, ok, err, e)
		}
		got[path] = describe(e)
	})
	compare.CheckNamed(w, "snapshot of "+commit, want, got)
}

// walk calls visit for all entries below a folder. It checks that the entries are sorted, and that no folder is empty.
func walk(t testing.TB, s *git.Snapshot, dir string, visit func(path string, e rollout.Entry)) {
	t.Helper()
	entries, err := s.ReadDir(dir)
	must(t, err)
	if !slices.IsSortedFunc(entries, func(a, b rollout.Entry) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("ReadDir(%q) is not sorted", dir)
	}
	if len(entries) == 0 && dir != "" {
		t.Errorf("the folder %q is empty", dir)
	}
	for _, e := range entries {
		file := path.Join(dir, e.Name)
		if visit(file, e); e.Kind == rollout.Dir {
			walk(t, s, file, visit)
		}
	}
}

// describe prints an entry as git ls-tree does. Each file gets the mode 100644, because an Entry has no executable bit.
func describe(e rollout.Entry) string {
	switch e.Kind {
	case rollout.Dir:
		return "040000 tree " + e.ID
	case rollout.Submodule:
		return "160000 commit " + e.ID
	case rollout.Symlink:
		return "120000 blob " + e.ID
	}
	return "100644 blob " + e.ID
}

func everyKindOfFile(t *testing.T, r *gittest.Repo) {
	t.Helper()
	r.Write(map[string]string{
		"empty": "", "a": "file", "a.b": "sorts before a/", "d/x": "1", "d.x": "2", "d-x/y": "3", "d0/y": "4",
		"deep/er/and/deeper/file": "x", "späße/日本.yaml": "unicode", "with space": "s", "run.sh": "#!/bin/sh\n",
		"binary": "\x00\xff\x00",
	})
	must(t, os.Chmod(r.Work+"/run.sh", 0o755))
	must(t, os.Symlink("deep/er", r.Work+"/link"))
	r.Git("update-index", "--add", "--cacheinfo", "160000,"+r.Head()+",sub/module")
	r.Git("add", "--all")
	r.Git("update-index", "--add", "--cacheinfo", "160000,"+r.Head()+",sub/module")
	r.Git("commit", "-q", "-m", "Subject line\n\nBody.\n\nTrailer: yes")
	r.Push()
}

func snapshotIsGit(w *world) {
	commit := w.server.Head()
	r := w.open()
	s := snapshot(w, r, fetch(w, r).Main)
	sameAsGit(w, r, commit)
	info := s.Commit()
	want := rollout.Commit{ID: commit, Author: "Dev <dev@example.com>", When: info.When, Subject: "Subject line"}
	compare.CheckNamed(w, "commit", want, info)
	if got, err := s.Message(); err != nil || got != "Subject line\n\nBody.\n\nTrailer: yes\n" {
		w.Errorf("message %q, error %v", got, err)
	}
	if got := fmt.Sprint(info.When.Unix()); got != w.server.InBare("log", "-1", "--format=%at", commit) {
		w.Errorf("author time %s", got)
	}
	for path, content := range map[string]string{"binary": "\x00\xff\x00", "empty": "", "link": "deep/er", "späße/日本.yaml": "unicode"} {
		got, err := s.ReadFile(path)
		if err != nil || string(got) != content {
			w.Errorf("ReadFile(%q) = %q, %v", path, got, err)
		}
	}
	for _, path := range []string{"nope", "a/b", "deep/nope/file", "link/and"} {
		_, err := s.ReadFile(path)
		wantError(w, path, err, fs.ErrNotExist)
		if _, ok, err := s.Lookup(path); ok || err != nil {
			w.Errorf("Lookup(%q) = %v, %v", path, ok, err)
		}
	}
	for _, path := range []string{"../x", "/abs", "a/../b", "deep//er"} {
		_, _, err := s.Lookup(path)
		wantError(w, path, err, fs.ErrInvalid)
	}
	for _, path := range []string{"deep", "sub/module"} {
		if _, err := s.ReadFile(path); err == nil || errors.Is(err, fs.ErrNotExist) {
			w.Errorf("ReadFile(%q): %v", path, err)
		}
	}
	concurrently(8, func(int) { sameAsGit(w, r, commit) })
}
