package render_test

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// memTree is a rollout.Tree over a map of files. A content that begins with "-> " makes a symlink, and the content "(submodule)" makes a
// submodule. The ids of files and folders are hashes of their contents, as in Git.
type memTree struct {
	entries map[string]rollout.Entry
	folders map[string][]rollout.Entry
	blobs   map[string]string
	lookups int
	fail    func() error // returns the error for the next look-up or read
}

const (
	linkTo    = "-> "
	submodule = "(submodule)"
)

func newTree(files map[string]string) *memTree {
	t := &memTree{entries: map[string]rollout.Entry{}, folders: map[string][]rollout.Entry{}, blobs: map[string]string{}}
	t.fail = func() error { return nil }
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
	if err := t.fail(); err != nil {
		return rollout.Entry{}, false, err
	}
	if p != "" && !fs.ValidPath(p) {
		return rollout.Entry{}, false, fmt.Errorf("%q is not a path", p) // like git.Snapshot
	}
	e, ok := t.entries[p]
	return e, ok, nil
}

func (t *memTree) ReadDir(p string) ([]rollout.Entry, error) {
	if err := t.fail(); err != nil {
		return nil, err
	}
	return t.folders[p], nil
}

func (t *memTree) ReadBlob(id string) ([]byte, error) {
	if err := t.fail(); err != nil {
		return nil, err
	}
	return []byte(t.blobs[id]), nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// demo is an app whose folder is the root of the repository.
var demo = rollout.App{Name: "demo", Namespace: "shop"}

func rendered(files map[string]string, app rollout.App) (*rollout.Render, error) {
	return render.New(render.InProcess{}).Render(newTree(files), app, rollout.Commit{})
}

// mustRender renders an app in a repository with the given files, and fails the test at an error.
func mustRender(t testing.TB, r *render.Renderer, files map[string]string, app rollout.App) *rollout.Render {
	t.Helper()
	got, err := r.Render(newTree(files), app, rollout.Commit{})
	must(t, err)
	return got
}

func renderRepo(t *testing.T, files map[string]string) *rollout.Render {
	t.Helper()
	return mustRender(t, render.New(render.InProcess{}), files, demo)
}

// configured returns a Config with the given entries of apps.
func configured(t *testing.T, entries string) *rollout.Config {
	t.Helper()
	const head = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\nstateBranch: gitrollout/state/x\napps: ["
	config, err := rollout.ParseConfig("c.yaml", []byte(head+entries+"]\n"))
	must(t, err)
	return config
}

// found returns the names of the apps that the given entries match.
func found(t *testing.T, tree rollout.Tree, entries string) string {
	t.Helper()
	apps, err := render.FindApps(tree, configured(t, entries))
	must(t, err)
	return strings.Join(rollout.Mapped(apps, func(a rollout.App) string { return a.Name }), " ")
}

// readFiles reads a folder from disk into a map for newTree.
func readFiles(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if d.Type() == fs.ModeSymlink {
			target, err := os.Readlink(filepath.Join(dir, name))
			files[name] = linkTo + target
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(data)
		return err
	}))
	return files
}

// writeFiles writes files to disk, like a checkout. It is the inverse of readFiles.
func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		if target, ok := strings.CutPrefix(content, linkTo); ok {
			must(t, os.Symlink(target, p))
		} else {
			must(t, os.WriteFile(p, []byte(content), 0o644))
		}
	}
}

// merged returns all files of several maps. Later maps take precedence.
func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, one := range all {
		maps.Copy(out, one)
	}
	return out
}

// with returns a copy of files in which the named file has the given content. Content "" removes the file.
func with(files map[string]string, name, content string) map[string]string {
	out := merged(files, map[string]string{name: content})
	if content == "" {
		delete(out, name)
	}
	return out
}
