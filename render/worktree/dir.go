// Package worktree reads a folder as a rollout.Tree, as if its files were committed.
package worktree

import (
	"cmp"
	"crypto/sha1" // Git's file ids are SHA-1
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"

	"gitrollout.dev/gitrollout/rollout"
)

// Dir is a folder as a rollout.Tree, without .git. The folder must not change during use. A file's id is its path.
type Dir struct{ root *os.Root }

var _ rollout.Tree = Dir{}

// Open opens a folder.
func Open(dir string) (Dir, error) {
	root, err := os.OpenRoot(dir)
	return Dir{root}, err
}

// Lookup implements rollout.Tree.
func (t Dir) Lookup(name string) (rollout.Entry, bool, error) {
	if name == "" || name == "." {
		return rollout.Entry{ID: ".", Kind: rollout.Dir}, true, nil
	}
	if name == ".git" || strings.HasPrefix(name, ".git/") || !fs.ValidPath(name) {
		return rollout.Entry{}, false, nil
	}
	at := ""
	for part := range strings.SplitSeq(name, "/") {
		at = path.Join(at, part)
		info, err := t.root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return rollout.Entry{}, false, nil
		case err != nil:
			return rollout.Entry{}, false, fmt.Errorf("look up %s: %w", name, err)
		case at == name:
			e, ok := dirEntry(part, name, info.Mode())
			return e, ok, nil
		case !info.IsDir(): // as in Git
			return rollout.Entry{}, false, nil
		}
	}
	return rollout.Entry{}, false, nil
}

// ReadDir implements rollout.Tree.
func (t Dir) ReadDir(name string) (entries []rollout.Entry, err error) {
	name = cmp.Or(name, ".")
	listed, err := fs.ReadDir(t.root.FS(), name)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", name, err)
	}
	for _, l := range listed {
		if name == "." && l.Name() == ".git" {
			continue
		}
		if e, ok := dirEntry(l.Name(), path.Join(name, l.Name()), l.Type()); ok {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// ReadBlob implements rollout.Tree.
func (t Dir) ReadBlob(id string) ([]byte, error) {
	info, err := t.root.Lstat(id)
	if err == nil && info.Mode().Type() == fs.ModeSymlink {
		target, err := t.root.Readlink(id)
		return []byte(target), err
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", id, err)
	}
	return t.root.ReadFile(id)
}

func dirEntry(name, id string, mode fs.FileMode) (rollout.Entry, bool) {
	e := rollout.Entry{Name: name, ID: id}
	switch mode.Type() {
	case fs.ModeDir:
		e.Kind = rollout.Dir
	case fs.ModeSymlink:
		e.Kind = rollout.Symlink
	case 0:
		e.Kind = rollout.File
	default:
		return e, false // Git does not commit sockets and devices
	}
	return e, true
}

// Hashed is a Dir with Git's ids for files, so that cached renders of the same files can be reused. Folders have no id.
type Hashed struct {
	Dir
	mu    sync.Mutex
	paths map[string]string // paths by Git's ids
}

var _ rollout.Tree = (*Hashed)(nil)

// OpenHashed opens a folder.
func OpenHashed(dir string) (*Hashed, error) {
	tree, err := Open(dir)
	return &Hashed{Dir: tree, paths: map[string]string{}}, err
}

// Lookup implements rollout.Tree.
func (t *Hashed) Lookup(name string) (rollout.Entry, bool, error) {
	e, found, err := t.Dir.Lookup(name)
	if err != nil || !found {
		return e, found, err
	}
	if e.Kind == rollout.Dir {
		e.ID = ""
		return e, true, nil
	}
	content, err := t.Dir.ReadBlob(e.ID)
	if err != nil {
		return e, false, err
	}
	id := fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)))
	t.mu.Lock()
	t.paths[id] = e.ID
	t.mu.Unlock()
	e.ID = id
	return e, true, nil
}

// ReadBlob implements rollout.Tree.
func (t *Hashed) ReadBlob(id string) ([]byte, error) {
	t.mu.Lock()
	name, hashed := t.paths[id]
	t.mu.Unlock()
	if !hashed {
		name = id // ReadDir's ids are paths
	}
	return t.Dir.ReadBlob(name)
}
