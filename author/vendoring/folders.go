package vendoring

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Folders returns the folders at and below a path that have a vendor.yaml. It skips vendored folders.
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
	var foreign []string
	for _, dir := range dirs {
		for _, other := range dirs {
			below, isBelow := filepath.Rel(dir, other)
			if isBelow == nil && filepath.IsLocal(below) && brings(dir, filepath.ToSlash(below)) {
				foreign = append(foreign, other)
			}
		}
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return slices.Contains(foreign, dir) }), err
}

func brings(dir, below string) bool {
	// An invalid vendor.yaml vendors nothing.
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
