package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// store is Git objects in memory, by id. It is safe for concurrent use; go-git's memory storage is not, and
// it never forgets.
type store struct {
	mu      sync.RWMutex
	objects map[plumbing.Hash]*stored
	omitted map[plumbing.Hash]bool // files that are too large to be kept
	lost    bool                   // ids of such files are unknown
	size    int64                  // bytes of content and overhead
	under   *store                 // what can be read here, too; may be nil
}

// stored is one object; its content never changes. Stores share it.
type stored struct {
	kind plumbing.ObjectType
	id   plumbing.Hash
	data []byte
	// entries is a tree decoded and sorted by name, made at its first use.
	entries atomic.Pointer[[]object.TreeEntry]
	// complete is set on a tree or commit once all that it reaches was seen in a store with it.
	complete atomic.Bool
}

// overhead of an object beside its content: map bucket, struct, slice rounding.
const overhead = 160

func newStore() *store {
	return &store{objects: map[plumbing.Hash]*stored{}, omitted: map[plumbing.Hash]bool{}}
}

// Omit is wire.Store's.
func (s *store) Omit(id plumbing.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id.IsZero() {
		s.lost = true
	} else {
		s.omitted[id] = true
	}
}

// forgive says whether files that are missing are taken for those of unknown ids that were omitted, if there are any:
// after a download of all that a commit has, and not after one that leaves out what we should have.
func (s *store) forgive(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = s.lost && is
}

// omits reports whether a file was too large to be kept.
func (s *store) omits(id plumbing.Hash) bool {
	s.mu.RLock()
	omits := s.omitted[id] || s.lost
	s.mu.RUnlock()
	return omits || s.under != nil && s.under.omits(id)
}

// file is a file of a tree; nil without an error if it was too large to be kept.
func (s *store) file(id plumbing.Hash) (*stored, error) {
	o, err := s.typed(plumbing.BlobObject, id)
	if errors.Is(err, errMissing) && s.omits(id) {
		s.Omit(id)
		return nil, nil
	}
	return o, err
}

func (s *store) get(id plumbing.Hash) *stored {
	s.mu.RLock()
	o := s.objects[id]
	s.mu.RUnlock()
	if o == nil && s.under != nil {
		return s.under.get(id)
	}
	return o
}

func (s *store) put(o *stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[o.id] == nil {
		s.objects[o.id] = o
		s.size += int64(len(o.data)) + overhead
	}
}

// Content is wire.Store's.
func (s *store) Content(id plumbing.Hash) (kind plumbing.ObjectType, data []byte, has bool) {
	if o := s.get(id); o != nil {
		return o.kind, o.data, true
	}
	return plumbing.InvalidObject, nil, false
}

// Keep makes an object of content, which is the store's own from then on. It is wire.Store's, too.
func (s *store) Keep(kind plumbing.ObjectType, data []byte) plumbing.Hash {
	o := &stored{kind: kind, id: plumbing.ComputeHash(kind, data), data: data}
	s.put(o)
	return o.id
}

// addAll takes over another store's objects.
func (s *store) addAll(from *store) {
	for _, id := range from.ids() {
		s.put(from.get(id))
	}
}

// ids is all objects, sorted: the same objects make the same pack.
func (s *store) ids() []plumbing.Hash {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(s.objects), func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
}

func (s *store) usage() (objects, size int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return int64(len(s.objects)), s.size
}

var errMissing = errors.New("an object is missing")

// typed is an object that must be of a kind.
func (s *store) typed(kind plumbing.ObjectType, id plumbing.Hash) (*stored, error) {
	o := s.get(id)
	switch {
	case o == nil:
		return nil, fmt.Errorf("%s %s: %w", kind, id, errMissing)
	case o.kind != kind:
		return nil, fmt.Errorf("%s is a %s, not a %s", id, o.kind, kind)
	}
	return o, nil
}

// tree is a tree's entries, sorted by name as plain bytes (Git's own order puts a directory after the files
// that begin with its name and a dot). The slice is shared: do not change it.
func (s *store) tree(id plumbing.Hash) ([]object.TreeEntry, error) {
	o, err := s.typed(plumbing.TreeObject, id)
	if err != nil {
		return nil, err
	}
	if entries := o.entries.Load(); entries != nil {
		return *entries, nil
	}
	var t object.Tree
	if err := t.Decode(o); err != nil {
		return nil, fmt.Errorf("tree %s: %w", id, err)
	}
	slices.SortFunc(t.Entries, func(a, b object.TreeEntry) int { return strings.Compare(a.Name, b.Name) })
	o.entries.Store(&t.Entries)
	return t.Entries, nil
}

func (s *store) commit(id plumbing.Hash) (*object.Commit, error) {
	o, err := s.typed(plumbing.CommitObject, id)
	if err != nil {
		return nil, err
	}
	c := &object.Commit{}
	if err := c.Decode(o); err != nil {
		return nil, fmt.Errorf("commit %s: %w", id, err)
	}
	return c, nil
}

// holds tells whether a commit can be read in full.
func (s *store) holds(commit plumbing.Hash) bool {
	o := s.get(commit)
	return o != nil && o.complete.Load()
}

// verify walks what a commit reaches and marks it complete. It descends only into trees that were never
// verified, so after a fetch it costs what is new; it makes sure that a server which misunderstands shallow
// clones is noticed at the fetch and not in the middle of a release.
func (s *store) verify(commit plumbing.Hash) error {
	o, err := s.typed(plumbing.CommitObject, commit)
	if err != nil || o.complete.Load() {
		return err
	}
	c, err := s.commit(commit)
	if err != nil {
		return err
	}
	if err := s.verifyTree(c.TreeHash); err != nil {
		return err
	}
	o.complete.Store(true)
	return nil
}

func (s *store) verifyTree(id plumbing.Hash) error {
	o, err := s.typed(plumbing.TreeObject, id)
	if err != nil || o.complete.Load() {
		return err
	}
	err = s.below(id, s.verifyTree, func(file plumbing.Hash) error {
		_, err := s.file(file)
		return err
	})
	if err == nil {
		o.complete.Store(true)
	}
	return err
}

// below visits the folders and the files that are directly in a tree. Submodules are elsewhere.
func (s *store) below(id plumbing.Hash, folder, file func(plumbing.Hash) error) error {
	entries, err := s.tree(id)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Mode {
		case filemode.Dir:
			err = folder(e.Hash)
		case filemode.Submodule:
		default:
			err = file(e.Hash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reach copies all that a commit reaches into another store.
func (s *store) reach(commit plumbing.Hash, into *store) error {
	c, err := s.commit(commit)
	if err != nil {
		return err
	}
	into.put(s.get(commit))
	return s.reachTree(c.TreeHash, into)
}

func (s *store) reachTree(id plumbing.Hash, into *store) error {
	if o := into.get(id); o != nil && o.complete.Load() { // else a download that was cut off may have left it
		return nil
	}
	folder := func(id plumbing.Hash) error { return s.reachTree(id, into) }
	err := s.below(id, folder, func(file plumbing.Hash) error {
		blob, err := s.file(file)
		if blob != nil {
			into.put(blob)
		} else if err == nil {
			into.Omit(file)
		}
		return err
	})
	if err == nil {
		into.put(s.get(id))
	}
	return err
}

// What follows makes stored a plumbing.EncodedObject, of which go-git decodes trees and commits.

func (o *stored) Hash() plumbing.Hash             { return o.id }
func (o *stored) Type() plumbing.ObjectType       { return o.kind }
func (o *stored) Size() int64                     { return int64(len(o.data)) }
func (o *stored) SetType(plumbing.ObjectType)     {}
func (o *stored) SetSize(int64)                   {}
func (o *stored) Reader() (io.ReadCloser, error)  { return io.NopCloser(bytes.NewReader(o.data)), nil }
func (o *stored) Writer() (io.WriteCloser, error) { return nil, errors.New("objects do not change") }
