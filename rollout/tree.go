package rollout

import "errors"

// EntryKind is the kind of an entry in a commit's tree.
type EntryKind string

const (
	File      EntryKind = "file"
	Dir       EntryKind = "dir"
	Symlink   EntryKind = "symlink"
	Submodule EntryKind = "submodule"
)

// ErrTooLarge means that the content of a file was not kept: the file, or all large files together, exceeded a limit.
var ErrTooLarge = errors.New("is too large: its content is not kept")

// Entry is one entry in a commit's tree. ID is the Git object's hash, so equal IDs mean equal content.
type Entry struct {
	Name string // last element of the path
	ID   string
	Kind EntryKind
}

// Tree reads the content of one commit. Paths are slash-separated and relative; "" is the root, which always exists. An
// error means that the content cannot be read. A missing path is no error.
type Tree interface {
	// Lookup returns the entry at a path. It does not follow symlinks.
	Lookup(path string) (entry Entry, found bool, err error)
	// ReadDir returns the entries of a folder.
	ReadDir(path string) ([]Entry, error)
	// ReadBlob returns the content of a file, or the target of a symlink.
	ReadBlob(id string) ([]byte, error)
}
