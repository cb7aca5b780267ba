package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// The usual bounds of what is kept of one pack, in bytes as they are without compression, which makes a thousand of
// one.
const (
	maxBlob   = 16 << 20  // of one file: no app reads a larger one
	largeBlob = 1 << 20   // what makes a file a large one
	maxLarge  = 128 << 20 // of all large files
	maxOther  = 64 << 20  // of a folder or a commit; more is refused
	maxBases  = 32 << 20  // of files that are not kept, while the pack is read: others may lean on them
)

// bounds are the usual ones, or all of them so many times smaller.
type bounds struct {
	blob, large, allLarge, other, bases int64
	between                             int64
}

func boundsOver(n int64) bounds {
	return bounds{blob: maxBlob / n, large: largeBlob / n, allLarge: maxLarge / n, other: maxOther / n,
		bases: maxBases / n, between: mostBetween / n}
}

// Store is where the objects of packs are.
type Store interface {
	// Content is that of an object, which nobody changes.
	Content(id plumbing.Hash) (kind plumbing.ObjectType, data []byte, has bool)
	// Keep takes an object's content as its own, without a copy.
	Keep(kind plumbing.ObjectType, data []byte) plumbing.Hash
	// Omit tells of a file that is too large to be kept. The id is unknown, and zero, where Git sent what is different
	// from another file that is not kept either.
	Omit(id plumbing.Hash)
}

// unpacking is a pack that is being read into a store. Objects are kept as they come, so that no more than one is in
// memory besides; deltas lean on what came before, nearly always.
type unpacking struct {
	bounds
	from    *packfile.Scanner
	into    Store
	at      map[int64]plumbing.Hash // by offset; zero: omitted, and of unknown id
	omitted map[plumbing.Hash]bool
	leaned  map[plumbing.Hash][]byte // content of those that are omitted, as far as there is room
	spent   int64                    // on bases
	spread  int64                    // on large files that are kept
	waiting []delta
}

// delta is an object that says what is different in it from its base.
type delta struct {
	offset int64
	base   plumbing.Hash
	data   []byte
}

// readPack reads a pack into a store.
func readPack(pack io.Reader, into Store, within bounds) error {
	u := &unpacking{bounds: within, from: packfile.NewScanner(pack), into: into, at: map[int64]plumbing.Hash{},
		omitted: map[plumbing.Hash]bool{}, leaned: map[plumbing.Hash][]byte{}}
	_, count, err := u.from.Header()
	for i := uint32(0); i < count && err == nil; i++ {
		var h *packfile.ObjectHeader
		if h, err = u.from.NextObjectHeader(); err == nil {
			err = u.object(h)
		}
	}
	if err != nil {
		return unexpected(err)
	}
	if _, err = u.from.Checksum(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return u.settle()
}

func (u *unpacking) object(h *packfile.ObjectHeader) error {
	switch h.Type {
	case plumbing.OFSDeltaObject, plumbing.REFDeltaObject:
		base := h.Reference
		if h.Type == plumbing.OFSDeltaObject {
			var known bool
			if base, known = u.at[h.OffsetReference]; !known {
				return fmt.Errorf("a delta leans on offset %d, where no object is", h.OffsetReference)
			}
		}
		if u.isLost(base) || h.Length > u.other {
			u.omit(h.Offset, plumbing.ZeroHash)
			return u.skip(io.Discard)
		}
		data, err := u.read(h)
		if err != nil {
			return err
		}
		return u.delta(delta{h.Offset, base, data})
	case plumbing.BlobObject:
		if u.isTooLarge(h.Length) {
			if u.spent+h.Length <= u.bases {
				data, err := u.read(h)
				u.lean(h.Offset, data)
				return err
			}
			hash := plumbing.NewHasher(h.Type, h.Length)
			err := u.skip(hash)
			u.omit(h.Offset, hash.Sum())
			return err
		}
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.TagObject:
	default:
		return plumbing.ErrInvalidType
	}
	if h.Length > u.other {
		return fmt.Errorf("a %s of %d bytes is more than is taken", h.Type, h.Length)
	}
	data, err := u.read(h)
	if err == nil {
		u.at[h.Offset] = u.into.Keep(h.Type, data)
	}
	return err
}

// isTooLarge reports whether a file of that many bytes is not kept.
func (u *unpacking) isTooLarge(size int64) bool {
	if size <= u.large {
		return false
	}
	if size > u.blob || u.spread+size > u.allLarge {
		return true
	}
	u.spread += size
	return false
}

// lean omits a file of which others may say what is different in them.
func (u *unpacking) lean(offset int64, data []byte) {
	id := plumbing.ComputeHash(plumbing.BlobObject, data)
	u.leaned[id], u.spent = data, u.spent+int64(len(data))
	u.omit(offset, id)
}

// isLost reports whether what leans on an object cannot be told.
func (u *unpacking) isLost(base plumbing.Hash) bool {
	return base.IsZero() || u.omitted[base] && u.leaned[base] == nil
}

func (u *unpacking) omit(offset int64, id plumbing.Hash) {
	u.at[offset], u.omitted[id] = id, true
	u.into.Omit(id)
}

// skip passes an object's content by.
func (u *unpacking) skip(to io.Writer) error {
	_, _, err := u.from.NextObject(to)
	return err
}

// read returns an object's content, which the scanner holds to the length that is told.
func (u *unpacking) read(h *packfile.ObjectHeader) ([]byte, error) {
	c := content{make([]byte, 0, min(h.Length, u.large)), int(h.Length)}
	err := u.skip(&c)
	return c.data, err
}

// content is what has come of a length that was told: it takes as much memory once a large file's least has come.
type content struct {
	data   []byte
	length int
}

// Write adds what has come.
func (c *content) Write(p []byte) (int, error) {
	if len(c.data)+len(p) > cap(c.data) {
		c.data = append(make([]byte, 0, max(c.length, len(c.data)+len(p))), c.data...)
	}
	c.data = append(c.data, p...)
	return len(p), nil
}

// delta keeps what a delta makes of its base, or has it wait for that.
func (u *unpacking) delta(d delta) error {
	kind, old := plumbing.BlobObject, u.leaned[d.base]
	if old == nil {
		var has bool
		if kind, old, has = u.into.Content(d.base); !has {
			u.waiting = append(u.waiting, d)
			return nil
		}
	}
	_, of := binary.Uvarint(d.data) // the size of the base
	if of <= 0 {
		return packfile.ErrInvalidDelta
	}
	size, of := binary.Uvarint(d.data[of:])
	tooLarge := kind == plumbing.BlobObject && u.isTooLarge(int64(min(size, 1<<40)))
	switch {
	case of <= 0 || size > uint64(u.other) && kind != plumbing.BlobObject:
		return packfile.ErrInvalidDelta
	case tooLarge && uint64(u.spent)+size > uint64(u.bases):
		u.omit(d.offset, plumbing.ZeroHash)
		return nil
	}
	data, err := packfile.PatchDelta(old, d.data)
	if err != nil {
		return err
	}
	if tooLarge {
		u.lean(d.offset, data)
	} else {
		u.at[d.offset] = u.into.Keep(kind, data)
	}
	return nil
}

// settle makes the objects of deltas that came before their base.
func (u *unpacking) settle() error {
	for len(u.waiting) > 0 {
		before := u.waiting
		u.waiting = nil
		for _, d := range before {
			if u.isLost(d.base) {
				u.omit(d.offset, plumbing.ZeroHash)
			} else if err := u.delta(d); err != nil {
				return err
			}
		}
		if len(u.waiting) == len(before) {
			return fmt.Errorf("a delta leans on %s, which is not here: %w", before[0].base, plumbing.ErrObjectNotFound)
		}
	}
	return nil
}
