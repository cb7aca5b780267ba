package rollout

import "errors"

// EntryKind says what a path in a commit's tree is.
type EntryKind string

// The kinds of entries that a Git tree can hold.
const (
	File      EntryKind = "file"
	Dir       EntryKind = "dir"
	Symlink   EntryKind = "symlink"
	Submodule EntryKind = "submodule"
)

// ErrTooLarge is what reading a file gives whose content is not kept: it has more than 16 MiB, or is among many that
// are large.
var ErrTooLarge = errors.New("is too large: its content is not kept")

// Entry is one entry of a commit's tree. ID is the object's hash: equal ids
// have equal content, for a folder all the way down.
type Entry struct {
	Name string // last element of the path
	ID   string
	Kind EntryKind
}
