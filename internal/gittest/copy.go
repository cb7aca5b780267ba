package gittest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing/fstest"
)

// blank returns the files of a new repository. New repositories differ only by the path in the configuration, so git
// creates the files once per process. The files are in memory, so that no folder must be removed.
var blank = sync.OnceValues(makeBlank)

// blankDir is the placeholder for the folder in a blank repository's configuration. Because of the #, git quotes the
// path, so the real path may also have a #.
const blankDir = "/gittest#blank"

func makeBlank() (fstest.MapFS, error) {
	dir, err := os.MkdirTemp("", "gittest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := in(nil, dir)
	for _, args := range [][]string{
		{dir, "init", "-q", "--template=", "--bare", "--initial-branch=main", r.Bare},
		// Without these two settings, git http-backend and git daemon serve only fetches.
		{r.Bare, "config", "http.receivepack", "true"},
		{r.Bare, "config", "daemon.receivepack", "true"},
		// A background gc would run longer than the test and race with the removal of the test's folder. Even
		// the check whether a gc is due starts a process after each commit.
		{r.Bare, "config", "gc.auto", "0"},
		{r.Bare, "config", "receive.autogc", "false"},
		{r.Bare, "config", "maintenance.auto", "false"},
		{dir, "init", "-q", "--template=", "--initial-branch=main", r.Work},
		{r.Work, "config", "gc.auto", "0"},
		{r.Work, "config", "maintenance.auto", "false"},
		{r.Work, "remote", "add", "origin", blankDir + "/" + filepath.Base(r.Bare)},
	} {
		if _, err := r.try(args[0], args[1:]...); err != nil {
			return nil, err
		}
	}
	files, made := fstest.MapFS{}, os.DirFS(dir)
	return files, fs.WalkDir(made, ".", func(path string, d fs.DirEntry, err error) error {
		f := &fstest.MapFile{Mode: fs.ModeDir}
		if err == nil && !d.IsDir() {
			f.Mode = 0o644
			f.Data, err = fs.ReadFile(made, path)
		}
		files[path] = f
		return err
	})
}

// writeBlank writes a blank repository to a folder.
func writeBlank(dir string) error {
	files, err := blank()
	if err != nil {
		return err
	}
	own := fstest.MapFS{}
	for path, f := range files {
		own[path] = &fstest.MapFile{Mode: f.Mode, Data: bytes.ReplaceAll(f.Data, []byte(blankDir), []byte(dir))}
	}
	return os.CopyFS(dir, own)
}

// Copy returns a copy of the bare repository and the worktree for t, so that tests can share an
// expensive setup. The copy has hard links to the object files, because git never changes these files.
func (r *Repo) Copy(t TB) *Repo {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	c := in(t, t.TempDir())
	c.n = r.n
	if err := copyFolder(filepath.Dir(r.Bare), filepath.Dir(c.Bare), r.Bare, filepath.Join(r.Work, ".git")); err != nil {
		t.Fatalf("gittest: copy: %v", err)
	}
	return c
}

// copyFolder copies a folder that contains the repositories gitDirs. In the repositories' configurations, it replaces
// the path `source` by `target`.
func copyFolder(source, target string, gitDirs ...string) error {
	return filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == source {
			return err
		}
		to := target + strings.TrimPrefix(path, source)
		within := func(dir string) bool { return strings.HasPrefix(path, filepath.Join(dir, "objects")+"/") }
		switch {
		case d.IsDir():
			return os.Mkdir(to, 0o755)
		case d.Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, to)
		case slices.ContainsFunc(gitDirs, within):
			return os.Link(path, to)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.Name() == "config" && slices.Contains(gitDirs, filepath.Dir(path)) {
			content = bytes.ReplaceAll(content, []byte(source), []byte(target))
		}
		return os.WriteFile(to, content, info.Mode().Perm())
	})
}
