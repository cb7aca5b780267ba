package rollout

import "errors"

// EntryKind is the kind of a path in a commit's tree.
type EntryKind string

// The kinds of entries that a Git tree can hold.
const (
	File      EntryKind = "file"
	Dir       EntryKind = "dir"
	Symlink   EntryKind = "symlink"
	Submodule EntryKind = "submodule"
)

// ErrTooLarge is the error of reading a file whose content is not kept: it is larger than 16 MiB, or one of many large
// files.
var ErrTooLarge = errors.New("is too large: its content is not kept")

// Entry is one entry of a commit's tree. ID is the object's hash: equal ids have equal content, for a folder
// recursively.
type Entry struct {
	Name string // last element of the path
	ID   string
	Kind EntryKind
}

// Tree reads one commit's content. Paths are slash-separated and relative; "" is the root, which always exists. An
// error means that the store could not be read, never that a path is absent.
type Tree interface {
	// Lookup returns the entry at a path. It does not follow symlinks.
	Lookup(path string) (entry Entry, found bool, err error)
	// ReadDir returns the entries of a folder.
	ReadDir(path string) ([]Entry, error)
	// ReadBlob returns the content of a file, or the target of a symlink.
	ReadBlob(id string) ([]byte, error)
}
