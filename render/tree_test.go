package render

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// memTree is a Tree over a map of files. A value that begins with linkTo is a symlink, and one with submodule is a
// submodule. IDs are recursive content hashes, as in Git.
type memTree struct {
	entries map[string]rollout.Entry
	folders map[string][]rollout.Entry
	blobs   map[string]string
	lookups int
	fail    error // returned by every look-up
}

const (
	linkTo    = "-> "
	submodule = "(submodule)"
)

func newTree(files map[string]string) *memTree {
	t := &memTree{entries: map[string]rollout.Entry{}, folders: map[string][]rollout.Entry{}, blobs: map[string]string{}}
	t.folder("", files)
	return t
}

func (t *memTree) folder(dir string, files map[string]string) rollout.Entry {
	below := map[string]map[string]string{}
	var list []rollout.Entry
	for name, content := range files {
		if first, rest, nested := strings.Cut(name, "/"); nested {
			if below[first] == nil {
				below[first] = map[string]string{}
			}
			below[first][rest] = content
			continue
		}
		e := rollout.Entry{Name: name, Kind: rollout.File}
		if target, ok := strings.CutPrefix(content, linkTo); ok {
			e.Kind, content = rollout.Symlink, target
		} else if content == submodule {
			e.Kind = rollout.Submodule
		}
		e.ID = hashOf(content)
		t.blobs[e.ID] = content
		list = append(list, e)
		t.entries[path.Join(dir, name)] = e
	}
	for name, content := range below {
		list = append(list, t.folder(path.Join(dir, name), content))
	}
	slices.SortFunc(list, func(a, b rollout.Entry) int { return strings.Compare(a.Name, b.Name) })
	self := rollout.Entry{Name: path.Base(dir), Kind: rollout.Dir, ID: hashOf(fmt.Sprint(list))}
	t.entries[dir], t.folders[dir] = self, list
	return self
}

func hashOf(content string) string {
	sum := sha1.Sum([]byte(content))
	return hex.EncodeToString(sum[:])
}

func (t *memTree) Lookup(p string) (rollout.Entry, bool, error) {
	t.lookups++
	if p != "" && !fs.ValidPath(p) {
		return rollout.Entry{}, false, fmt.Errorf("%q is not a path", p) // like git.Snapshot
	}
	e, ok := t.entries[p]
	return e, ok, t.fail
}

func (t *memTree) ReadDir(p string) ([]rollout.Entry, error) { return t.folders[p], t.fail }

func (t *memTree) ReadBlob(id string) ([]byte, error) { return []byte(t.blobs[id]), t.fail }

// readFiles reads a folder of the disk as an input for newTree.
func readFiles(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(p)
			files[filepath.ToSlash(rel)] = linkTo + target
			return err
		}
		raw, err := os.ReadFile(p)
		files[filepath.ToSlash(rel)] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// writeFiles writes such a map to the disk like a checkout.
func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(content, linkTo); ok {
			err = os.Symlink(target, p)
		} else {
			err = os.WriteFile(p, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// with returns a copy of files with one added or changed; an empty content removes the file.
func with(files map[string]string, name, content string) map[string]string {
	out := map[string]string{}
	for k, v := range files {
		out[k] = v
	}
	out[name] = content
	if content == "" {
		delete(out, name)
	}
	return out
}
