package rollout

// EntryKind says what a path in a commit's tree is.
type EntryKind string

// The kinds of entries that a Git tree can hold.
const (
	File      EntryKind = "file"
	Dir       EntryKind = "dir"
	Symlink   EntryKind = "symlink"
	Submodule EntryKind = "submodule"
)

// Entry is one entry of a commit's tree. ID is the object's hash: equal ids
// have equal content, for a folder all the way down.
type Entry struct {
	Name string // last element of the path
	ID   string
	Kind EntryKind
}
