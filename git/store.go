package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
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

// Omit is wire.Omitter's.
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

// Keep makes an object of content, which is the store's own from then on. It is wire.Keeper's, too.
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
	ids := make([]plumbing.Hash, 0, len(s.objects))
	for id := range s.objects {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return bytes.Compare(ids[i][:], ids[j][:]) < 0 })
	return ids
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
	sort.Slice(t.Entries, func(i, j int) bool { return t.Entries[i].Name < t.Entries[j].Name })
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
	entries, err := s.tree(id)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Mode {
		case filemode.Dir:
			err = s.verifyTree(e.Hash)
		case filemode.Submodule:
		default:
			_, err = s.file(e.Hash)
		}
		if err != nil {
			return err
		}
	}
	o.complete.Store(true)
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
	if into.get(id) != nil {
		return nil
	}
	entries, err := s.tree(id)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Mode {
		case filemode.Dir:
			err = s.reachTree(e.Hash, into)
		case filemode.Submodule:
		default:
			var blob *stored
			if blob, err = s.file(e.Hash); blob != nil {
				into.put(blob)
			} else if err == nil {
				into.Omit(e.Hash)
			}
		}
		if err != nil {
			return err
		}
	}
	into.put(s.get(id))
	return nil
}

// What follows makes stored a plumbing.EncodedObject and store a storer.EncodedObjectStorer, for go-git's
// pack parser and encoder.

func (o *stored) Hash() plumbing.Hash             { return o.id }
func (o *stored) Type() plumbing.ObjectType       { return o.kind }
func (o *stored) Content() []byte                 { return o.data }
func (o *stored) Size() int64                     { return int64(len(o.data)) }
func (o *stored) SetType(plumbing.ObjectType)     {}
func (o *stored) SetSize(int64)                   {}
func (o *stored) Reader() (io.ReadCloser, error)  { return io.NopCloser(bytes.NewReader(o.data)), nil }
func (o *stored) Writer() (io.WriteCloser, error) { return nil, errors.New("objects do not change") }

func (s *store) NewEncodedObject() plumbing.EncodedObject { return &plumbing.MemoryObject{} }

func (s *store) SetEncodedObject(from plumbing.EncodedObject) (plumbing.Hash, error) {
	r, err := from.Reader()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer r.Close()
	data := make([]byte, from.Size())
	if _, err := io.ReadFull(r, data); err != nil {
		return plumbing.ZeroHash, err
	}
	s.put(&stored{kind: from.Type(), id: from.Hash(), data: data})
	return from.Hash(), nil
}

func (s *store) EncodedObject(kind plumbing.ObjectType, id plumbing.Hash) (plumbing.EncodedObject, error) {
	o := s.get(id)
	if o == nil || kind != plumbing.AnyObject && kind != o.kind {
		return nil, plumbing.ErrObjectNotFound
	}
	return o, nil
}

func (s *store) HasEncodedObject(id plumbing.Hash) error {
	if s.get(id) == nil {
		return plumbing.ErrObjectNotFound
	}
	return nil
}

func (s *store) EncodedObjectSize(id plumbing.Hash) (int64, error) {
	o := s.get(id)
	if o == nil {
		return 0, plumbing.ErrObjectNotFound
	}
	return o.Size(), nil
}

func (s *store) IterEncodedObjects(kind plumbing.ObjectType) (storer.EncodedObjectIter, error) {
	return storer.NewEncodedObjectLookupIter(s, kind, s.ids()), nil
}

func (s *store) AddAlternate(string) error { return errors.New("alternates are not supported") }

var _ storer.EncodedObjectStorer = (*store)(nil)
