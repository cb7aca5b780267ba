package git

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// TestRenewalKeepsWhatIsUsed checks that a renewal keeps the heads, and recently read commits up to a total size.
func TestRenewalKeepsWhatIsUsed(t *testing.T) {
	const size, commits = 8 << 20, 16
	r := &mirror{store: newStore(), recent: map[plumbing.Hash]int{}}
	add := func(n int) plumbing.Hash {
		t.Helper()
		blob := r.store.Keep(plumbing.BlobObject, bytes.Repeat([]byte{byte(n)}, size))
		entries := []object.TreeEntry{{Name: "f", Mode: filemode.Regular, Hash: blob}}
		tree := r.store.Keep(plumbing.TreeObject, encodeTree(entries))
		data, err := encodeCommit(tree, plumbing.ZeroHash, Self, time.Unix(1, 0), "m")
		if err != nil {
			t.Fatal(err)
		}
		id := r.store.Keep(plumbing.CommitObject, data)
		if err := r.store.verify(id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	main := add(0)
	r.heads.Main = main.String()
	var ids []plumbing.Hash
	for i := range commits {
		id := add(i + 1)
		ids = append(ids, id)
		if _, held := r.held(id); !held {
			t.Fatal("the added commit is not held")
		}
	}
	r.held(ids[0]) // marks the first commit as most recently read
	unused := add(commits + 1)

	r.downloads = 1
	r.renew()
	if !r.store.holds(unused) {
		t.Fatal("the store was renewed while a download leaned on it")
	}
	r.downloads = 0
	r.renew()
	if _, got := r.store.usage(); got > 2*size+recentBytes+1<<20 {
		t.Errorf("%d bytes are kept", got)
	}
	for id, want := range map[plumbing.Hash]bool{
		main: true, ids[0]: true, ids[commits-1]: true, ids[commits-2]: true, ids[1]: false, unused: false,
	} {
		if r.store.holds(id) != want {
			t.Errorf("commit %s is held: %t, want %t", id, !want, want)
		}
	}
	for _, id := range append(ids, main) {
		if r.store.holds(id) {
			if s, err := newSnapshot(r.store, id); err != nil {
				t.Error(err)
			} else if content, err := s.ReadFile("f"); err != nil || len(content) != size {
				t.Errorf("commit %s has a file of %d bytes: %v", id, len(content), err)
			}
		}
	}
}

// TestStoreIsShared writes and reads a store concurrently, for the race detector.
func TestStoreIsShared(t *testing.T) {
	const writers, objects = 8, 500
	st := newStore()
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for n := range objects {
				id := st.Keep(plumbing.BlobObject, []byte{byte(n), byte(n >> 8)})
				if st.get(id) == nil {
					t.Errorf("object %d is not there", n)
				}
				st.usage()
			}
		})
	}
	wg.Wait()
	got, kept := st.usage()
	if got != objects || kept != objects*(2+overhead) {
		t.Errorf("%d objects of %d bytes, want %d of %d", got, kept, objects, objects*(2+overhead))
	}
}
