package git

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"gitrollout.dev/gitrollout/rollout"
)

// Snapshot reads a commit's files from memory. It is safe for concurrent use. Paths use slashes, and are relative to
// the root. The root's own path is "" or ".". Symbolic links are not followed.
type Snapshot struct {
	store   *store
	commit  rollout.Commit
	parents []string
	root    plumbing.Hash // zero if there are no files
}

func newSnapshot(s *store, id plumbing.Hash) (*Snapshot, error) {
	c, err := s.commit(id)
	if err != nil {
		return nil, err
	}
	author := fmt.Sprintf("%s <%s>", c.Author.Name, c.Author.Email)
	if c.Author.Email == Self.Email {
		author = "a merged proposal" // without a merge commit, Git does not record who merged
	}
	subject, _, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n")
	return &Snapshot{
		store:  s,
		commit: rollout.Commit{ID: id.String(), Author: author, When: rollout.Second(c.Author.When), Subject: subject},
		root:   c.TreeHash, parents: rollout.Mapped(c.ParentHashes, plumbing.Hash.String),
	}, nil
}

// EmptySnapshot returns a snapshot for a branch that does not exist.
func EmptySnapshot() *Snapshot { return &Snapshot{store: newStore()} }

// Commit returns the commit, with ID "" for the empty snapshot.
func (s *Snapshot) Commit() rollout.Commit { return s.commit }

// Verifier returns a commit's signer, or why the signature is missing or refused.
type Verifier interface {
	Verify(commit []byte) (signer string, err error)
}

// SignedBy returns the commit's signer, or why v refuses the signature.
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

// Lookup returns the entry at a path, if the path exists.
func (s *Snapshot) Lookup(path string) (entry rollout.Entry, ok bool, err error) {
	at, ok, err := s.lookup(path)
	return entryOf(at), ok, err
}

func (s *Snapshot) lookup(path string) (entry object.TreeEntry, ok bool, err error) {
	if path == "." {
		path = ""
	}
	switch {
	case path != "" && !fs.ValidPath(path):
		return entry, false, &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid}
	case s.root.IsZero():
		return entry, false, nil
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
		i, found := slices.BinarySearchFunc(entries, name,
			func(e object.TreeEntry, name string) int { return strings.Compare(e.Name, name) })
		if !found {
			return entry, false, nil
		}
		at = entries[i]
	}
	return at, true, nil
}

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

// ReadFile returns a copy of a file's content or a link's target. If the path is missing, the error is fs.ErrNotExist.
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

// ReadDir returns sorted entries. If the directory is missing, the error is fs.ErrNotExist.
func (s *Snapshot) ReadDir(path string) ([]rollout.Entry, error) {
	dir, ok, err := s.lookup(path)
	switch {
	case err != nil:
		return nil, err
	case !ok && (path == "" || path == "."):
		return nil, nil
	case !ok:
		return nil, &fs.PathError{Op: "readdir", Path: path, Err: fs.ErrNotExist}
	case dir.Mode != filemode.Dir:
		return nil, &fs.PathError{Op: "readdir", Path: path, Err: errors.New("not a directory")}
	}
	names, err := s.store.tree(dir.Hash)
	return rollout.Mapped(names, entryOf), err
}

// ReadBlob returns a copy of a blob: a file's content or a link's target.
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
