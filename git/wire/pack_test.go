package wire

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// packText builds a pack for tests.
type packText struct {
	bytes.Buffer
	offsets []int
}

func newPack(objects uint32) *packText {
	p := &packText{}
	p.WriteString("PACK")
	_ = binary.Write(p, binary.BigEndian, []uint32{2, objects})
	return p
}

// add appends an object: its type, its declared length (told), the bytes before its content (such as a delta's base), and its content.
func (p *packText) add(kind byte, told int, between, content []byte) *packText {
	p.offsets = append(p.offsets, p.Len())
	head := kind<<4 | byte(told&15)
	for told >>= 4; told > 0; told >>= 7 {
		p.WriteByte(head | 0x80)
		head = byte(told & 0x7f)
	}
	p.WriteByte(head)
	p.Write(between)
	z := zlib.NewWriter(p)
	_, _ = z.Write(content)
	_ = z.Close()
	return p
}

func (p *packText) blob(content string) *packText {
	return p.add(aBlob, len(content), nil, []byte(content))
}

// delta appends a delta. Its base is a hash, or a distance in the pack.
func (p *packText) delta(kind byte, base, delta []byte) *packText {
	return p.add(kind, len(delta), base, delta)
}

func (p *packText) end() io.Reader {
	sum := sha1.Sum(p.Bytes())
	p.Write(sum[:])
	return bytes.NewReader(p.Bytes())
}

// appending returns a delta that copies a base of the given length, and appends text.
func appending(base int, text string) []byte { return appendingTo(base, base, text) }

// appendingTo returns a delta that copies only the first bytes of a base, and appends text. Both numbers are lengths.
func appendingTo(base, first int, text string) []byte {
	d := binary.AppendUvarint(nil, uint64(base))
	d = binary.AppendUvarint(d, uint64(first+len(text)))
	d = append(d, 0x80|0x10|0x20|0x40, byte(first), byte(first>>8), byte(first>>16)) // copies from offset 0
	return append(append(d, byte(len(text))), text...)
}

const (
	aBlob, anOffsetDelta, aReferenceDelta = 3, 6, 7
)

// testStore is a Store in memory, which also records omitted files.
type testStore struct {
	kinds   map[plumbing.Hash]plumbing.ObjectType
	objects map[plumbing.Hash][]byte
	omitted []plumbing.Hash
	kept    int // total bytes of kept objects
}

func newTestStore() *testStore {
	return &testStore{kinds: map[plumbing.Hash]plumbing.ObjectType{}, objects: map[plumbing.Hash][]byte{}}
}

func (s *testStore) Content(id plumbing.Hash) (plumbing.ObjectType, []byte, bool) {
	data, has := s.objects[id]
	return s.kinds[id], data, has
}

func (s *testStore) Keep(kind plumbing.ObjectType, data []byte) plumbing.Hash {
	id := plumbing.ComputeHash(kind, data)
	s.kinds[id], s.objects[id], s.kept = kind, data, s.kept+len(data)
	return id
}

func (s *testStore) Omit(id plumbing.Hash) { s.omitted = append(s.omitted, id) }

func blobID(content string) plumbing.Hash {
	return plumbing.ComputeHash(plumbing.BlobObject, []byte(content))
}

// TestDeltasInAnyOrder checks a delta before its base, a delta after its base, and a delta of a delta.
func TestDeltasInAnyOrder(t *testing.T) {
	base := "the base of all of them\n"
	p := newPack(4)
	p.delta(aReferenceDelta, hashOf(base+"one"), appending(len(base)+3, "more"))
	p.delta(aReferenceDelta, hashOf(base), appending(len(base), "one"))
	p.blob(base)
	p.delta(anOffsetDelta, []byte{byte(p.Len() - p.offsets[2])}, appending(len(base), "two"))
	into := newTestStore()
	must(t, readPack(p.end(), into, boundsOver(1)))
	for _, content := range []string{base, base + "one", base + "onemore", base + "two"} {
		if string(into.objects[blobID(content)]) != content {
			t.Errorf("%q is missing", content)
		}
	}
}

// TestOmitted checks the ids that Omit gets: the id of a too large file, and zero for a delta that is too large or whose base was omitted.
func TestOmitted(t *testing.T) {
	fits, large, huge := strings.Repeat("a", maxBlob), strings.Repeat("b", maxBlob+1), strings.Repeat("c", maxBases+1)
	p := newPack(6).blob(fits).blob(large).delta(aReferenceDelta, hashOf(large), appendingTo(len(large), 10, "small after all"))
	endless := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(large))), math.MaxUint64)
	p.delta(aReferenceDelta, hashOf(large), append(endless, 0x80|0x10, 10)) // the bytes in memory plus the declared size overflow a uint64
	p.blob(huge).delta(aReferenceDelta, hashOf(huge), appendingTo(len(huge), 10, "unknown"))
	into := newTestStore()
	must(t, readPack(p.end(), into, boundsOver(1)))
	for content, kept := range map[string]bool{fits: true, large: false, huge: false, "bbbbbbbbbbsmall after all": true} {
		if _, _, has := into.Content(blobID(content)); has != kept {
			t.Errorf("%.30q of %d bytes: kept %t, want %t", content, len(content), !kept, kept)
		}
	}
	if want := []plumbing.Hash{blobID(large), plumbing.ZeroHash, blobID(huge), plumbing.ZeroHash}; !slices.Equal(into.omitted, want) {
		t.Errorf("omitted %v, want %v", into.omitted, want)
	}
}

// TestPacksThatAreRefused checks that readPack returns an error for invalid packs, even if they declare more bytes than the memory has.
func TestPacksThatAreRefused(t *testing.T) {
	growing := binary.AppendUvarint([]byte{1}, 1<<40)
	for name, p := range map[string]*packText{
		"a tree of a terabyte":           newPack(1).add(2, 1<<40, nil, []byte("x")),
		"a file of fewer bytes":          newPack(1).add(aBlob, 3, nil, []byte("longer than that")),
		"a delta on nothing":             newPack(1).add(aReferenceDelta, 8, bytes.Repeat([]byte{7}, 20), appending(3, "x")[:8]),
		"a delta on no offset":           newPack(1).add(anOffsetDelta, 9, []byte{1}, appending(3, "x")),
		"a delta that is none":           newPack(2).blob("x").delta(aReferenceDelta, hashOf("x"), []byte{0x80}),
		"a delta that grows a folder":    newPack(2).add(2, 1, nil, []byte("x")).add(anOffsetDelta, 6, []byte{10}, growing),
		"more objects than are told of":  newPack(3).blob("x"),
		"a type that Git does not have":  newPack(1).add(5, 1, nil, []byte("x")),
		"an end before the first object": newPack(1),
	} {
		if err := readPack(p.end(), newTestStore(), boundsOver(1)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func hashOf(content string) []byte { id := blobID(content); return id[:] }

// TestContentIsInMemoryOnce checks that reading a large file allocates little more memory than the file's size.
func TestContentIsInMemoryOnce(t *testing.T) {
	const size = 12 << 20
	for name, c := range map[string]struct {
		pack *packText
		kept int
		most uint64 // allowed number of allocated bytes
	}{
		"a large file":         {newPack(1).add(aBlob, size, nil, make([]byte, size)), size, size + 2*largeBlob},
		"one that is not kept": {newPack(1).add(aBlob, maxBlob+size, nil, make([]byte, maxBlob+size)), 0, maxBlob + size + 2*largeBlob},
	} {
		t.Run(name, func(t *testing.T) {
			pack, store := c.pack.end(), newTestStore()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := readPack(pack, store, boundsOver(1))
			runtime.ReadMemStats(&after)
			if err != nil || store.kept != c.kept {
				t.Errorf("%d bytes are kept, error %v", store.kept, err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > c.most {
				t.Errorf("it took %d bytes, want %d at most", took, c.most)
			}
		})
	}
}
