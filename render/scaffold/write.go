package scaffold

import (
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Write writes a file that is not there, or the one that gets a line more, into a folder.
func (f File) Write(dir string) error {
	name := filepath.Join(dir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if f.Changes {
		how = os.O_WRONLY | os.O_TRUNC
	}
	file, err := os.OpenFile(name, how, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(f.Content)
	return errors.Join(err, file.Close())
}

// Folders are those to add to Git: .gitrollout, and those of documents of apps.
func Folders(files []File) []string {
	set := map[string]bool{}
	for _, f := range files {
		if dir, _, inside := strings.Cut(f.Path, "/"); inside && dir == ".gitrollout" {
			set[dir] = true
		} else {
			set[path.Dir(f.Path)] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
