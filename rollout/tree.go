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

// ErrTooLarge is the error for a file over 16 MiB, or one of many large ones, whose content is not kept.
var ErrTooLarge = errors.New("is too large: its content is not kept")

// Entry is one entry of a commit's tree. Equal IDs, the objects' hashes, are equal content, for folders recursively.
type Entry struct {
	Name string // last element of the path
	ID   string
	Kind EntryKind
}

// Tree reads one commit's content. Paths are slash-separated and relative; "" is the root, which always exists. An
// error means an unreadable store, never an absent path.
type Tree interface {
	// Lookup returns the entry at a path, without following symlinks.
	Lookup(path string) (entry Entry, found bool, err error)
	// ReadDir returns the entries of a folder.
	ReadDir(path string) ([]Entry, error)
	// ReadBlob returns a file's content, or a symlink's target.
	ReadBlob(id string) ([]byte, error)
}
