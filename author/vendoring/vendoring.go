// Package vendoring copies external charts, repositories and artifacts into the repository, so that renders need no
// network. Responses are not trusted: archives are unpacked in memory, within limits, and may contain only regular
// files and folders.
package vendoring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

type lockFile struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Sources    []Pin  `json:"sources"`
}

const lockKind = "VendorLock"

// All selects all sources.
const All = "*"

func read(dir *os.Root) (sources []rollout.VendorSource, locked []Pin, err error) {
	data, err := dir.ReadFile(rollout.VendorFile)
	if err == nil {
		sources, err = rollout.ParseVendor(rollout.VendorFile, data)
	}
	if err != nil {
		return nil, nil, err
	}
	data, err = dir.ReadFile(rollout.VendorLock)
	if errors.Is(err, fs.ErrNotExist) {
		return sources, nil, nil
	}
	var lock lockFile
	if err == nil {
		err = yaml.UnmarshalStrict(data, &lock)
	}
	if err == nil {
		err = rollout.CheckVersion("", lockKind, lock.APIVersion)
	}
	if err == nil && lock.Kind != lockKind {
		err = fmt.Errorf("its kind is not %s", lockKind)
	}
	for _, p := range lock.Sources {
		if err == nil && (!rollout.IsPlainPath(p.Into) || rollout.ReservedPart(p.Into) != "" || p.Into == ".") {
			err = fmt.Errorf("%q is not a folder beside it", p.Into)
		}
	}
	if err != nil {
		return nil, nil, &rollout.InvalidError{File: rollout.VendorLock,
			Msg: "cannot be read: " + rollout.OneLine(err.Error()), Fix: "restore it from Git"}
	}
	return sources, lock.Sources, nil
}

func pinOf(s rollout.VendorSource, pins []Pin) *Pin {
	i := slices.IndexFunc(pins, func(p Pin) bool {
		return p.Wants == s.Wants() && (p.Into == s.Into || s.Chart != nil && path.Dir(p.Into) == path.Clean(s.Into))
	})
	if i < 0 {
		return nil
	}
	return &pins[i]
}

// Check compares folders with vendor.lock. It sends no requests.
func Check(dir *os.Root) (wrong []string, err error) {
	sources, locked, err := read(dir)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, s := range sources {
		p := pinOf(s, locked)
		if p == nil {
			wrong = append(wrong, fmt.Sprintf("%s is not in vendor.lock", s.Wants()))
			continue
		}
		known[p.Into] = true
		wrong = append(wrong, leftOver(dir, s, locked)...)
		all, err := onDisk(dir, p.Into)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			wrong = append(wrong, p.Into+" is missing")
		case err != nil:
			wrong = append(wrong, err.Error())
		case all.tree() != p.Tree:
			wrong = append(wrong, p.Into+" differs from vendor.lock")
		}
	}
	for _, p := range locked {
		if !known[p.Into] {
			wrong = append(wrong, fmt.Sprintf("%s is in vendor.lock, and not in vendor.yaml", p.Into))
		}
	}
	return wrong, nil
}

func leftOver(dir *os.Root, s rollout.VendorSource, locked []Pin) (wrong []string) {
	if s.Chart == nil {
		return nil
	}
	found, _ := fs.Glob(dir.FS(), path.Join(s.Into, s.Chart.Name+"-*", s.Chart.Name, "Chart.yaml"))
	for _, file := range found {
		if at := path.Dir(path.Dir(file)); !slices.ContainsFunc(locked, func(p Pin) bool { return p.Into == at }) {
			wrong = append(wrong, at+" is not in vendor.lock")
		}
	}
	return wrong
}

func onDisk(dir *os.Root, at string) (files, error) {
	all := files{}
	err := fs.WalkDir(dir.FS(), at, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || e.IsDir():
			return err
		case !e.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", name)
		}
		data, err := dir.ReadFile(name)
		all[strings.TrimPrefix(name, at+"/")] = data
		return err
	})
	return all, err
}

// Update fetches the sources and writes vendor.lock. Only the source with the given name may get a newer version. ""
// names no source, and All names all sources. If a source fails or differs from its lock, Update writes nothing.
func (g *Getter) Update(ctx context.Context, dir *os.Root, name string) (said []string, err error) {
	sources, locked, err := read(dir)
	if err != nil {
		return nil, err
	}
	isNamed := func(s rollout.VendorSource) bool { return name == All || s.Name() == name }
	if name != "" && !slices.ContainsFunc(sources, isNamed) {
		return nil, fmt.Errorf("vendor.yaml has no source that is called %s", name)
	}
	var pins []Pin
	var contents []files
	for _, s := range sources {
		old := pinOf(s, locked)
		if isNamed(s) {
			old = nil
		}
		p, all, err := g.fetch(ctx, dir, s, old)
		if err != nil {
			return nil, err
		}
		if old != nil && !p.is(*old) {
			return nil, moved(s, *old, p)
		}
		pins, contents = append(pins, p), append(contents, all)
	}
	if err := apart(dir, pins, locked); err != nil {
		return nil, err
	}
	return write(dir, pins, contents, locked)
}

func moved(s rollout.VendorSource, old, now Pin) error {
	if old.names() == now.names() {
		return fmt.Errorf("%s: vendor.lock records other files for %s than the source has: restore vendor.lock and "+
			"%s from Git, and check their history", s.Wants(), now.names(), now.Into)
	}
	return fmt.Errorf("%s has moved: %s is locked to %s, but is %s now; find out why, and accept the change with "+
		"--update=%s", s.Wants(), now.Into, old.names(), now.names(), s.Name())
}

func (p Pin) names() string {
	if id := cmp.Or(p.Commit, p.Digest); id != "" {
		return strings.TrimSpace(p.Version + " " + id)
	}
	return p.Tree
}

// apart refuses overlapping folders, existing folders without a lock entry, and local changes. It accepts folders in
// which an interrupted update has written the new content.
func apart(dir *os.Root, pins, locked []Pin) error {
	for i, p := range pins {
		for _, other := range pins[:i] {
			isSame := p.Into == other.Into && p.is(other) && p.Version != "" // two ranges may select the same version
			if one, in := p.Into+"/", other.Into+"/"; !isSame && (strings.HasPrefix(one, in) || strings.HasPrefix(in, one)) {
				return fmt.Errorf("%s and %s are nested: give each source a separate folder", p.Into, other.Into)
			}
		}
		ours := slices.ContainsFunc(locked, func(l Pin) bool { return l.Into == p.Into })
		if _, err := dir.Lstat(p.Into); err == nil && !ours && !p.isIn(dir) {
			return fmt.Errorf("%s exists and is not in vendor.lock: remove it, or name another folder", p.Into)
		}
	}
	for _, l := range locked {
		isNew := slices.ContainsFunc(pins, func(p Pin) bool { return l.Into == p.Into && p.isIn(dir) })
		switch all, err := onDisk(dir, l.Into); {
		case errors.Is(err, fs.ErrNotExist) || isNew:
		case err != nil:
			return err
		case all.tree() != l.Tree:
			return fmt.Errorf("%s differs from vendor.lock: keep your changes elsewhere, and remove the folder", l.Into)
		}
	}
	return nil
}

func (p Pin) isIn(dir *os.Root) bool {
	all, err := onDisk(dir, p.Into)
	return err == nil && all.tree() == p.Tree
}

// Folders returns the folders with a vendor.yaml at and below a path. It skips vendored folders.
func Folders(at string) (dirs []string, err error) {
	err = filepath.WalkDir(at, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{".git", "node_modules", staging}, e.Name()):
			return fs.SkipDir
		case e.Name() == rollout.VendorFile && e.Type().IsRegular():
			dirs = append(dirs, filepath.Dir(name))
		}
		return nil
	})
	return slices.DeleteFunc(dirs, IsIn), err
}

// IsIn reports whether vendor.yaml in a parent folder vendors a path.
func IsIn(name string) bool {
	name, err := filepath.Abs(name)
	if err == nil {
		name, err = filepath.EvalSymlinks(name)
	}
	for dir := name; err == nil && dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		if below, _ := filepath.Rel(dir, name); brings(dir, filepath.ToSlash(below)) {
			return true
		}
	}
	return false
}

func brings(dir, below string) bool {
	// If vendor.yaml is invalid, no folder counts as vendored.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	sources, locked, err := read(root)
	for at := below; err == nil && at != "."; at = path.Dir(at) {
		isLocked := slices.ContainsFunc(locked, func(p Pin) bool { return p.Into == at })
		isOne := func(s rollout.VendorSource) bool { return s.Chart == nil && s.Into == at }
		if isLocked || slices.ContainsFunc(sources, isOne) {
			return true
		}
	}
	return false
}

// staging gets the new files before write moves them, so that a full disk changes nothing.
const staging = ".vendor-new"

// write moves the new folders, and then the lock, so that an interrupted update can be repeated.
func write(dir *os.Root, pins []Pin, contents []files, locked []Pin) (said []string, err error) {
	defer func() { err = errors.Join(err, dir.RemoveAll(staging)) }()
	fresh, err := stage(dir, pins, contents)
	if err != nil {
		return nil, fmt.Errorf("nothing was changed: %w", err)
	}
	away := func(at string, i int) error {
		if err := dir.Rename(at, staged(i)+".old"); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	for _, i := range fresh {
		if err := away(pins[i].Into, i); err != nil {
			return nil, err
		}
		if err := dir.Rename(staged(i), pins[i].Into); err != nil {
			return nil, err
		}
	}
	for i, l := range locked {
		if slices.ContainsFunc(pins, func(p Pin) bool { return p.Into == l.Into }) {
			continue
		}
		if err := away(l.Into, len(pins)+i); err != nil {
			return nil, err
		}
	}
	for i, p := range pins {
		said = append(said, fmt.Sprintf("%s  %s, %d files", p.Into, p.names(), len(contents[i])))
	}
	return said, dir.Rename(path.Join(staging, rollout.VendorLock), rollout.VendorLock)
}

func staged(i int) string { return path.Join(staging, strconv.Itoa(i)) }

func stage(dir *os.Root, pins []Pin, contents []files) (fresh []int, err error) {
	if err := cmp.Or(dir.RemoveAll(staging), dir.Mkdir(staging, 0o755)); err != nil {
		return nil, err
	}
	for i, p := range pins {
		if isTwice := slices.ContainsFunc(pins[:i], func(o Pin) bool { return o.Into == p.Into }); isTwice || p.isIn(dir) {
			continue
		}
		if err := dir.MkdirAll(path.Dir(p.Into), 0o755); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Into, err)
		}
		for name, content := range contents[i] {
			at := path.Join(staged(i), name)
			if err := cmp.Or(dir.MkdirAll(path.Dir(at), 0o755), dir.WriteFile(at, content, 0o644)); err != nil {
				return nil, err
			}
		}
		fresh = append(fresh, i)
	}
	head, _ := dir.ReadFile(rollout.VendorFile)
	like := struct{ APIVersion string }{rollout.APIVersion}
	_ = yaml.Unmarshal(head, &like) // an older gitrollout needs vendor.yaml's API version in the lock
	data, err := yaml.Marshal(lockFile{like.APIVersion, lockKind, pins})
	if err != nil {
		return nil, err
	}
	return fresh, dir.WriteFile(path.Join(staging, rollout.VendorLock), data, 0o644)
}
