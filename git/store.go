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

// store holds Git objects by id. Unlike go-git's store, it allows concurrent use and can drop objects.
type store struct {
	mu      sync.RWMutex
	objects map[plumbing.Hash]*stored
	omitted map[plumbing.Hash]bool
	lost    bool   // a download omitted files with unknown ids
	size    int64  // bytes, with overhead
	under   *store // has objects that this store lacks; may be nil
}

// stored is an immutable object, so stores may share it.
type stored struct {
	kind plumbing.ObjectType
	id   plumbing.Hash
	data []byte

	entries  atomic.Pointer[[]object.TreeEntry] // caches the tree, sorted by name
	complete atomic.Bool                        // verify found all objects below
}

// overhead is an object's memory besides its content.
const overhead = 160

func newStore() *store {
	return &store{objects: map[plumbing.Hash]*stored{}, omitted: map[plumbing.Hash]bool{}}
}

func (s *store) Omit(id plumbing.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id.IsZero() {
		s.lost = true
	} else {
		s.omitted[id] = true
	}
}

// forgive clears the flag `lost`, except with the argument true. While the flag is set, each missing file counts as too
// large. After a request with haves, the flag must be cleared, because the server also omits files that the client has.
func (s *store) forgive(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = s.lost && is
}

func (s *store) omits(id plumbing.Hash) bool {
	s.mu.RLock()
	omits := s.omitted[id] || s.lost
	s.mu.RUnlock()
	return omits || s.under != nil && s.under.omits(id)
}

// file returns nil without an error if the file was too large to keep.
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

func (s *store) Content(id plumbing.Hash) (kind plumbing.ObjectType, data []byte, has bool) {
	if o := s.get(id); o != nil {
		return o.kind, o.data, true
	}
	return plumbing.InvalidObject, nil, false
}

// Keep implements wire.Store.
func (s *store) Keep(kind plumbing.ObjectType, data []byte) plumbing.Hash {
	o := &stored{kind: kind, id: plumbing.ComputeHash(kind, data), data: data}
	s.put(o)
	return o.id
}

func (s *store) addAll(from *store) {
	for _, id := range from.ids() {
		s.put(from.get(id))
	}
}

// ids returns sorted ids, so that equal objects give equal packs.
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

// tree returns entries in the byte order of their names. Callers must not change the entries. Git sorts a directory's
// name as if the name ended with a slash.
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
	entries := slices.Clone(t.Entries) // drops spare capacity
	slices.SortFunc(entries, func(a, b object.TreeEntry) int { return strings.Compare(a.Name, b.Name) })
	o.entries.Store(&entries)
	return entries, nil
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

func (s *store) holds(commit plumbing.Hash) bool {
	o := s.get(commit)
	return o != nil && o.complete.Load()
}

// verify checks that the store has all objects of a commit. It marks complete trees, and skips these later.
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

func (s *store) reach(commit plumbing.Hash, into *store) error {
	c, err := s.commit(commit)
	if err != nil {
		return err
	}
	into.put(s.get(commit))
	return s.reachTree(c.TreeHash, into)
}

func (s *store) reachTree(id plumbing.Hash, into *store) error {
	if o := into.get(id); o != nil && o.complete.Load() {
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

func (o *stored) Hash() plumbing.Hash             { return o.id }
func (o *stored) Type() plumbing.ObjectType       { return o.kind }
func (o *stored) Size() int64                     { return int64(len(o.data)) }
func (o *stored) SetType(plumbing.ObjectType)     {}
func (o *stored) SetSize(int64)                   {}
func (o *stored) Reader() (io.ReadCloser, error)  { return io.NopCloser(bytes.NewReader(o.data)), nil }
func (o *stored) Writer() (io.WriteCloser, error) { return nil, errors.New("objects do not change") }
