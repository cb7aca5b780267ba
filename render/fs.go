package render

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"gitrollout.dev/gitrollout/render/chart"
	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

// mount is the repository's root for kustomize. It is not "/", because filepath.Join("/", "..") drops "..".
const mount = "/repository-root"

// These constants limit one build, in bytes and symlinks. The largest known CRD bundles are below 4 MiB.
const (
	maxFile  = 16 << 20
	maxTotal = 64 << 20
	maxHops  = 40 // as in Linux
)

// Marks are the recorded results of lookups. All folders have the same mark, because a closure records the lookups
// below a folder separately.
const (
	markAbsent = ""
	markDir    = "dir"
)

func markOf(e rollout.Entry, found bool) string {
	switch {
	case !found:
		return markAbsent
	case e.Kind == rollout.Dir:
		return markDir
	default:
		return string(e.Kind) + ":" + e.ID
	}
}

type lookup struct {
	entry rollout.Entry
	found bool
}

// treeFS is a commit's tree as a file system for one build in one goroutine. It follows symlinks and records lookups.
type treeFS struct {
	filesys.FileSystem // nil, because builds call only treeFS's own methods (TestSameBytesAsKustomize)

	tree    rollout.Tree
	made    map[string][]byte // generated files, in place of the tree's files
	listed  map[string]bool
	asked   map[string]lookup
	blobs   map[string][]byte // by path without symlinks
	total   int
	refused *rollout.InvalidError
	failed  error

	unlock    func([]sops.Lock) ([]byte, error) // returns the data key; if nil, values stay sealed
	twin      bool                              // true in the second sealed build, which has other substitutes
	keysIn    string                            // the name of the Secret with the keys
	encrypted map[string][]sops.Lock            // by path of each encrypted file that was read

	draw    chart.Draw
	chances []chart.Chance // objects that depend on random functions
}

func newTreeFS(tree rollout.Tree) *treeFS {
	return &treeFS{
		tree: tree, made: map[string][]byte{}, listed: map[string]bool{}, asked: map[string]lookup{},
		blobs: map[string][]byte{}, encrypted: map[string][]sops.Lock{},
	}
}

func (f *treeFS) files() []string { return slices.Sorted(maps.Keys(f.blobs)) }

func (f *treeFS) lookup(p string) (rollout.Entry, bool, error) {
	entry, found, err := f.ask(p)
	if _, made := f.made[p]; made && err == nil {
		return rollout.Entry{Name: path.Base(p), Kind: rollout.File}, true, nil
	}
	return entry, found, err
}

func (f *treeFS) ask(p string) (rollout.Entry, bool, error) {
	if l, ok := f.asked[p]; ok {
		return l.entry, l.found, nil
	}
	if f.failed != nil {
		return rollout.Entry{}, false, f.failed
	}
	if p != "" && !fs.ValidPath(p) {
		return rollout.Entry{}, false, nil // for example, a symlink's target is not UTF-8
	}
	entry, found, err := f.tree.Lookup(p)
	if err != nil {
		f.failed = err
		return rollout.Entry{}, false, err
	}
	f.asked[p] = lookup{entry, found}
	return entry, found, nil
}

// resolve follows symlinks and returns the real path with its entry. For a missing path, the error is fs.ErrNotExist.
// For a path that leads out of the repository or into a submodule, the error is an InvalidError without a field.
func (f *treeFS) resolve(p string) (string, rollout.Entry, error) {
	entry, found, err := f.lookup(p)
	if err != nil {
		return "", entry, err
	}
	if found && (entry.Kind == rollout.File || entry.Kind == rollout.Dir) {
		return p, entry, nil
	}
	return f.walk(p)
}

func (f *treeFS) walk(p string) (string, rollout.Entry, error) {
	rest, at, hops := segments(p), "", 0
	entry := rollout.Entry{Kind: rollout.Dir}
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			if at == "" {
				return "", entry, f.refuse(p, "leads out of the repository through a symlink", "put the files into the repository")
			}
			at = parent(at)
			continue
		}
		next := path.Join(at, name)
		var found bool
		var err error
		if entry, found, err = f.lookup(next); err != nil {
			return "", entry, err
		}
		switch {
		case !found || entry.Kind == rollout.File && len(rest) > 0:
			return "", entry, &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
		case entry.Kind == rollout.Submodule:
			return "", entry, f.refuse(next, "is a submodule, and its content is not in this repository",
				"copy the files into the repository")
		case entry.Kind == rollout.Symlink:
			target, err := f.target(next, entry)
			if err != nil {
				return "", entry, err
			}
			if hops++; hops > maxHops {
				return "", entry, f.refuse(next, "is a symlink that leads back to itself", "")
			}
			rest = append(strings.Split(target, "/"), rest...)
			entry = rollout.Entry{Kind: rollout.Dir}
		default:
			at = next
		}
	}
	entry, found, err := f.lookup(at) // after "..", entry may belong to another path
	if err != nil || found {
		return at, entry, err
	}
	return "", entry, &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
}

func (f *treeFS) target(link string, entry rollout.Entry) (string, error) {
	raw, err := f.tree.ReadBlob(entry.ID)
	if err != nil {
		f.failed = fmt.Errorf("read symlink %s: %w", link, err)
		return "", f.failed
	}
	target := string(raw)
	if path.IsAbs(target) {
		return "", f.refuse(link, fmt.Sprintf("is a symlink to the absolute path %s", target),
			"use a relative link inside the repository")
	}
	return target, nil
}

// refuse records the first refusal, because kustomize then tries other paths and returns another error.
func (f *treeFS) refuse(p, msg, fix string) error {
	err := &rollout.InvalidError{File: p, Msg: msg, Fix: fix}
	f.refused = cmp.Or(f.refused, err)
	return err
}

func (f *treeFS) read(real string, entry rollout.Entry) ([]byte, error) {
	if content, made := f.made[real]; made {
		return content, nil
	}
	if content, ok := f.blobs[real]; ok {
		return content, nil
	}
	content, err := f.tree.ReadBlob(entry.ID)
	if errors.Is(err, rollout.ErrTooLarge) {
		return nil, f.refuse(real, fmt.Sprintf("is too large: the limit is %d bytes for one file, and 128 MiB for "+
			"all large files of a repository", maxFile), "split it, or keep it elsewhere")
	}
	if err != nil {
		f.failed = fmt.Errorf("read %s: %w", real, err)
		return nil, f.failed
	}
	if len(content) > maxFile {
		return nil, f.refuse(real, fmt.Sprintf("is %d bytes, more than the %d that one file may have", len(content),
			maxFile), "split it")
	}
	if bytes.HasPrefix(content, []byte("version https://git-lfs.github.com/spec/")) {
		return nil, f.refuse(real, "is a pointer of Git LFS, and its content is not in this repository",
			"commit the file itself: git lfs untrack "+real+", and git add --renormalize "+real)
	}
	if f.total += len(content); f.total > maxTotal {
		return nil, f.refuse(real, fmt.Sprintf("brings the files of this app to more than %d bytes", maxTotal),
			"split the app")
	}
	if sops.Is(content) {
		if content, err = f.decrypt(real, content); err != nil {
			return nil, err
		}
	}
	f.blobs[real] = content
	return content, nil
}

func inside(p string) (string, bool) {
	p = path.Clean(filepath.ToSlash(p))
	if p == mount {
		return "", true
	}
	return strings.CutPrefix(p, mount+"/")
}

func parent(p string) string { return unroot(path.Dir(p)) }

func (f *treeFS) find(p string) (string, rollout.Entry, error) {
	rel, ok := inside(p)
	if !ok {
		return "", rollout.Entry{}, &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
	}
	return f.resolve(rel)
}

func (f *treeFS) IsDir(p string) bool {
	_, entry, err := f.find(p)
	return err == nil && entry.Kind == rollout.Dir
}

func (f *treeFS) Exists(p string) bool {
	_, _, err := f.find(p)
	return err == nil
}

func (f *treeFS) CleanedAbs(p string) (filesys.ConfirmedDir, string, error) {
	real, entry, err := f.find(p)
	if err != nil {
		return "", "", err
	}
	if entry.Kind == rollout.Dir {
		return filesys.ConfirmedDir(path.Join(mount, real)), "", nil
	}
	return filesys.ConfirmedDir(path.Join(mount, parent(real))), path.Base(real), nil
}

func (f *treeFS) ReadFile(p string) ([]byte, error) {
	real, entry, err := f.find(p)
	if err != nil {
		return nil, err
	}
	if entry.Kind != rollout.File {
		return nil, &fs.PathError{Op: "read", Path: p, Err: errors.New("is a directory")}
	}
	data, err := f.read(real, entry)
	return withNames(data), err
}
