package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// These limits are in uncompressed bytes, because a pack can expand a thousandfold.
const (
	maxBlob   = 16 << 20 // maximum of a file; apps need no larger files
	largeBlob = 1 << 20
	maxLarge  = 128 << 20 // maximum sum of the kept large files of one pack
	maxOther  = 64 << 20  // maximum of a tree or commit; a larger object is an error
	maxBases  = 32 << 20  // maximum sum of omitted files that stay in memory as bases of later deltas

	mostBetween = 4 << 20 // compressed, for Question.Between; a larger pack means rewritten history
)

type bounds struct {
	blob, large, allLarge, other, bases int64
	between                             int64
}

func boundsOver(n int64) bounds {
	return bounds{blob: maxBlob / n, large: largeBlob / n, allLarge: maxLarge / n, other: maxOther / n,
		bases: maxBases / n, between: mostBetween / n}
}

// Store holds the objects of packs.
type Store interface {
	Content(id plumbing.Hash) (kind plumbing.ObjectType, data []byte, has bool)
	// Keep stores an object, and takes ownership of data.
	Keep(kind plumbing.ObjectType, data []byte) plumbing.Hash
	// Omit records a file that is too large to store. The id is zero if the server did not send the file, or its delta
	// was not applied.
	Omit(id plumbing.Hash)
}

// unpacking reads a pack into a store. A delta that precedes its base waits in memory.
type unpacking struct {
	bounds
	from    *packfile.Scanner
	into    Store
	at      map[int64]plumbing.Hash // by offset: the id, or zero if unknown
	omitted map[plumbing.Hash]bool
	leaned  map[plumbing.Hash][]byte // omitted files that may be bases
	spent   int64
	spread  int64 // bytes of the pack's large files in the store
	waiting []delta
}

type delta struct {
	offset int64
	base   plumbing.Hash
	data   []byte
}

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
				return fmt.Errorf("the base of a delta is at offset %d, where there is no object", h.OffsetReference)
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
		return fmt.Errorf("a %s of %d bytes exceeds the limit", h.Type, h.Length)
	}
	data, err := u.read(h)
	if err == nil {
		u.at[h.Offset] = u.into.Keep(h.Type, data)
	}
	return err
}

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

// lean omits a file from the store, but keeps it in memory for later deltas.
func (u *unpacking) lean(offset int64, data []byte) {
	id := plumbing.ComputeHash(plumbing.BlobObject, data)
	u.leaned[id], u.spent = data, u.spent+int64(len(data))
	u.omit(offset, id)
}

func (u *unpacking) isLost(base plumbing.Hash) bool {
	return base.IsZero() || u.omitted[base] && u.leaned[base] == nil
}

func (u *unpacking) omit(offset int64, id plumbing.Hash) {
	u.at[offset], u.omitted[id] = id, true
	u.into.Omit(id)
}

func (u *unpacking) skip(to io.Writer) error {
	_, _, err := u.from.NextObject(to)
	return err
}

func (u *unpacking) read(h *packfile.ObjectHeader) ([]byte, error) {
	c := content{make([]byte, 0, min(h.Length, u.large)), int(h.Length)}
	err := u.skip(&c)
	return c.data, err
}

// content collects an object's data. A large object gets memory of the declared length only after largeBlob bytes have
// arrived.
type content struct {
	data   []byte
	length int
}

func (c *content) Write(p []byte) (int, error) {
	if len(c.data)+len(p) > cap(c.data) {
		c.data = append(make([]byte, 0, max(c.length, len(c.data)+len(p))), c.data...)
	}
	c.data = append(c.data, p...)
	return len(p), nil
}

func (u *unpacking) delta(d delta) error {
	kind, old := plumbing.BlobObject, u.leaned[d.base]
	if old == nil {
		var has bool
		if kind, old, has = u.into.Content(d.base); !has {
			u.waiting = append(u.waiting, d)
			return nil
		}
	}
	_, of := binary.Uvarint(d.data) // skips the size of the base
	if of <= 0 {
		return packfile.ErrInvalidDelta
	}
	size, of := binary.Uvarint(d.data[of:])
	tooLarge := kind == plumbing.BlobObject && u.isTooLarge(int64(min(size, 1<<40)))
	switch {
	case of <= 0 || size > uint64(u.other) && kind != plumbing.BlobObject:
		return packfile.ErrInvalidDelta
	case tooLarge && size > uint64(u.bases-u.spent):
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
			return fmt.Errorf("the base %s of a delta is missing: %w", before[0].base, plumbing.ErrObjectNotFound)
		}
	}
	return nil
}
