package rollout

import "errors"

// EntryKind is the kind of a path in a commit's tree.
type EntryKind string

const (
	File      EntryKind = "file"
	Dir       EntryKind = "dir"
	Symlink   EntryKind = "symlink"
	Submodule EntryKind = "submodule"
)

// ErrTooLarge means that a file's content was not kept. The file, or all large files together, exceeded a limit.
var ErrTooLarge = errors.New("is too large: its content is not kept")

// Entry is one entry of a commit's tree. ID is the Git object's hash, so equal IDs mean equal content.
type Entry struct {
	Name string // last element of the path
	ID   string
	Kind EntryKind
}

// Tree reads one commit's content. Paths are slash-separated and relative; "" is the root, which always exists. An
// error means that the store cannot be read. An absent path is no error.
type Tree interface {
	// Lookup returns the entry at a path, without following symlinks.
	Lookup(path string) (entry Entry, found bool, err error)
	// ReadDir returns the entries of a folder.
	ReadDir(path string) ([]Entry, error)
	// ReadBlob returns a file's content, or a symlink's target.
	ReadBlob(id string) ([]byte, error)
}
