package git

import (
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"gitrollout.dev/gitrollout/rollout"
)

// Snapshot is the files of one commit, read without a worktree. It is safe for concurrent use, does no I/O,
// and stays whole for as long as it is held, whatever the Repo fetches or forgets meanwhile.
//
// Paths use slashes and are relative to the root, which is "" or ".". Symbolic links are not followed.
// Looking up a path costs one search per path element, in trees that are decoded once and then shared by
// all snapshots that have them.
type Snapshot struct {
	store   *store
	commit  rollout.Commit
	message string
	parents []string
	root    plumbing.Hash // zero: no files
}

func newSnapshot(s *store, id plumbing.Hash) (*Snapshot, error) {
	c, err := s.commit(id)
	if err != nil {
		return nil, err
	}
	author := fmt.Sprintf("%s <%s>", c.Author.Name, c.Author.Email)
	if c.Author.Email == Self.Email {
		author = "a merged proposal" // merged without a merge commit: Git does not say by whom
	}
	subject, _, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n")
	snapshot := &Snapshot{
		store:   s,
		commit:  rollout.Commit{ID: id.String(), Author: author, When: rollout.Second(c.Author.When), Subject: subject},
		message: c.Message, root: c.TreeHash,
	}
	for _, parent := range c.ParentHashes {
		snapshot.parents = append(snapshot.parents, parent.String())
	}
	return snapshot, nil
}

// EmptySnapshot has no files and no commit: what a branch holds before it exists.
func EmptySnapshot() *Snapshot { return &Snapshot{store: newStore()} }

// Commit is the commit that was read. Its ID is "" for the empty snapshot of a branch that does not exist.
func (s *Snapshot) Commit() rollout.Commit { return s.commit }

// Message is the commit's whole message.
func (s *Snapshot) Message() string { return s.message }

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
	return v.Verify(o.data)
}

// Lookup finds what is at a path; ok is false when nothing is.
func (s *Snapshot) Lookup(path string) (entry rollout.Entry, ok bool, err error) {
	at, ok, err := s.lookup(path)
	if !ok || err != nil {
		return rollout.Entry{}, false, err
	}
	return entryOf(at), true, nil
}

func (s *Snapshot) lookup(path string) (entry object.TreeEntry, ok bool, err error) {
	path, err = cleanPath(path)
	if err != nil || s.root.IsZero() {
		return entry, false, err
	}
	at := object.TreeEntry{Mode: filemode.Dir, Hash: s.root}
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, "/")
		if at.Mode != filemode.Dir {
			return entry, false, nil
		}
		entries, err := s.store.tree(at.Hash)
		if err != nil {
			return entry, false, err
		}
		i := sort.Search(len(entries), func(i int) bool { return entries[i].Name >= name })
		if i == len(entries) || entries[i].Name != name {
			return entry, false, nil
		}
		at = entries[i]
	}
	return at, true, nil
}

// entryOf is a name of a tree in the nouns of package rollout; the zero Entry for none.
func entryOf(e object.TreeEntry) rollout.Entry {
	entry := rollout.Entry{Name: e.Name, ID: e.Hash.String(), Kind: rollout.File}
	switch e.Mode {
	case 0:
		return rollout.Entry{}
	case filemode.Dir:
		entry.Kind = rollout.Dir
	case filemode.Submodule:
		entry.Kind = rollout.Submodule
	case filemode.Symlink:
		entry.Kind = rollout.Symlink
	}
	return entry
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
	case entry.Kind == rollout.Dir || entry.Kind == rollout.Submodule:
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("is a %s", entry.Kind)}
	}
	return s.ReadBlob(entry.ID)
}

// ReadDir is what a directory holds, sorted by name. A missing directory is an fs.ErrNotExist.
func (s *Snapshot) ReadDir(path string) ([]rollout.Entry, error) {
	dir, ok, err := s.lookup(path)
	switch {
	case err != nil:
		return nil, err
	case !ok && (path == "" || path == "."):
		return nil, nil // the empty snapshot
	case !ok:
		return nil, &fs.PathError{Op: "readdir", Path: path, Err: fs.ErrNotExist}
	case dir.Mode != filemode.Dir:
		return nil, &fs.PathError{Op: "readdir", Path: path, Err: errors.New("not a directory")}
	}
	names, err := s.store.tree(dir.Hash)
	if err != nil {
		return nil, err
	}
	entries := make([]rollout.Entry, len(names))
	for i, e := range names {
		entries[i] = entryOf(e)
	}
	return entries, nil
}

// ReadBlob is the content behind the ID of a file or symbolic link. The slice is the caller's own.
func (s *Snapshot) ReadBlob(id string) ([]byte, error) {
	hash, err := parseID(id)
	if err != nil {
		return nil, err
	}
	blob, err := s.store.file(hash)
	switch {
	case err != nil:
		return nil, err
	case blob == nil:
		return nil, fmt.Errorf("file %s: %w", id, rollout.ErrTooLarge)
	}
	return append([]byte{}, blob.data...), nil
}
