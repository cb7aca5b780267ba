package git

import (
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Snapshot is the files of one commit, read without a worktree. It is safe for concurrent use, does no I/O,
// and stays whole for as long as it is held, whatever the Repo fetches or forgets meanwhile.
//
// Paths use slashes and are relative to the root, which is "" or ".". Symbolic links are not followed.
// Looking up a path costs one search per path element, in trees that are decoded once and then shared by
// all snapshots that have them.
type Snapshot struct {
	store  *store
	commit CommitInfo
	root   plumbing.Hash // zero: no files
}

// CommitInfo is what a commit says of itself.
type CommitInfo struct {
	ID          string
	AuthorName  string
	AuthorEmail string
	AuthorTime  time.Time
	CommitTime  time.Time
	Subject     string // the first line of the message
	Message     string
	Parents     []string
}

// Kind is what an Entry is.
type Kind string

// The kinds of entries.
const (
	KindFile      Kind = "file"
	KindDir       Kind = "dir"
	KindSymlink   Kind = "symlink"
	KindSubmodule Kind = "submodule"
)

// Entry is one name in a tree. Two entries with the same ID have the same content, all the way down.
type Entry struct {
	Name       string // the last element of its path; "" for the root
	ID         string // of the blob, tree, or (submodule) commit
	Kind       Kind
	Size       int64 // bytes of a file or of a symbolic link's target
	Executable bool
}

func newSnapshot(s *store, id plumbing.Hash) (*Snapshot, error) {
	c, err := s.commit(id)
	if err != nil {
		return nil, err
	}
	subject, _, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n")
	info := CommitInfo{
		ID: id.String(), AuthorName: c.Author.Name, AuthorEmail: c.Author.Email, AuthorTime: c.Author.When,
		CommitTime: c.Committer.When, Subject: subject, Message: c.Message,
	}
	for _, parent := range c.ParentHashes {
		info.Parents = append(info.Parents, parent.String())
	}
	return &Snapshot{store: s, commit: info, root: c.TreeHash}, nil
}

// Commit is the commit that was read. Its ID is "" for the empty snapshot of a branch that does not exist.
func (s *Snapshot) Commit() CommitInfo { return s.commit }

// Verifier judges the signature of a commit, given as Git stores it: who signed it, or why that does not count.
type Verifier interface {
	Verify(commit []byte) (signer string, err error)
}

// SignedBy tells who signed the commit, in the verifier's words. An error means that the signature does not
// count, and says why; the empty snapshot is signed by nobody.
func (s *Snapshot) SignedBy(v Verifier) (signer string, err error) {
	if s.commit.ID == "" {
		return "", errors.New("there is no commit")
	}
	o, err := s.store.typed(plumbing.CommitObject, plumbing.NewHash(s.commit.ID))
	if err != nil {
		return "", err
	}
	if signer, err = v.Verify(o.data); err != nil {
		return "", fmt.Errorf("commit %s: %w", s.commit.ID[:7], err)
	}
	return signer, nil
}

// Lookup finds what is at a path; ok is false when nothing is.
func (s *Snapshot) Lookup(path string) (entry Entry, ok bool, err error) {
	path, err = cleanPath(path)
	if err != nil || s.root.IsZero() {
		return Entry{}, false, err
	}
	at := object.TreeEntry{Mode: filemode.Dir, Hash: s.root}
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, "/")
		if at.Mode != filemode.Dir {
			return Entry{}, false, nil
		}
		entries, err := s.store.tree(at.Hash)
		if err != nil {
			return Entry{}, false, err
		}
		i := sort.Search(len(entries), func(i int) bool { return entries[i].Name >= name })
		if i == len(entries) || entries[i].Name != name {
			return Entry{}, false, nil
		}
		at = entries[i]
	}
	entry, err = s.entry(at)
	return entry, err == nil, err
}

func (s *Snapshot) entry(e object.TreeEntry) (Entry, error) {
	entry := Entry{Name: e.Name, ID: e.Hash.String()}
	switch e.Mode {
	case filemode.Dir:
		entry.Kind = KindDir
		return entry, nil
	case filemode.Submodule:
		entry.Kind = KindSubmodule
		return entry, nil
	case filemode.Symlink:
		entry.Kind = KindSymlink
	default:
		entry.Kind, entry.Executable = KindFile, e.Mode == filemode.Executable
	}
	blob, err := s.store.typed(plumbing.BlobObject, e.Hash)
	if err != nil {
		return Entry{}, err
	}
	entry.Size = blob.Size()
	return entry, nil
}

// ReadFile is the content of the file at a path, and for a symbolic link its target. A missing file is an
// fs.ErrNotExist. The slice is the caller's own.
func (s *Snapshot) ReadFile(path string) ([]byte, error) {
	entry, ok, err := s.Lookup(path)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	case entry.Kind == KindDir || entry.Kind == KindSubmodule:
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("is a %s", entry.Kind)}
	}
	return s.ReadBlob(entry.ID)
}

// ReadDir is what a directory holds, sorted by name. A missing directory is an fs.ErrNotExist.
func (s *Snapshot) ReadDir(path string) ([]Entry, error) {
	dir, ok, err := s.Lookup(path)
	switch {
	case err != nil:
		return nil, err
	case !ok && (path == "" || path == "."):
		return nil, nil // the empty snapshot
	case !ok:
		return nil, &fs.PathError{Op: "readdir", Path: path, Err: fs.ErrNotExist}
	case dir.Kind != KindDir:
		return nil, &fs.PathError{Op: "readdir", Path: path, Err: errors.New("not a directory")}
	}
	trees, err := s.store.tree(plumbing.NewHash(dir.ID))
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(trees))
	for i, e := range trees {
		if entries[i], err = s.entry(e); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// ReadBlob is the content behind the ID of a file or symbolic link. The slice is the caller's own.
func (s *Snapshot) ReadBlob(id string) ([]byte, error) {
	hash, err := parseID(id)
	if err != nil {
		return nil, err
	}
	blob, err := s.store.typed(plumbing.BlobObject, hash)
	if err != nil {
		return nil, err
	}
	return append([]byte{}, blob.data...), nil
}
