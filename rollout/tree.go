package rollout

import "errors"

// EntryKind is the kind of a tree's entry.
type EntryKind string

const (
	File      EntryKind = "file"
	Dir       EntryKind = "dir"
	Symlink   EntryKind = "symlink"
	Submodule EntryKind = "submodule"
)

// ErrTooLarge means that a file's content was not kept: the file, or all large files together, exceeded a limit.
var ErrTooLarge = errors.New("is too large: its content is not kept")

// Entry is an entry of a commit's tree. Equal IDs (Git objects' hashes) mean equal content.
type Entry struct {
	Name string // the path's last element
	ID   string
	Kind EntryKind
}

// Tree reads one commit. Paths are slash-separated and relative; "" is the root, which always exists. Errors mean
// unreadable content, never a missing path.
type Tree interface {
	// Lookup returns the entry at a path, without following symlinks.
	Lookup(path string) (entry Entry, found bool, err error)
	// ReadDir returns a folder's entries.
	ReadDir(path string) ([]Entry, error)
	// ReadBlob returns a file's content, or a symlink's target.
	ReadBlob(id string) ([]byte, error)
}
