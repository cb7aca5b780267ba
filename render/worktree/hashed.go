package worktree

import (
	"crypto/sha1" // Git's file ids are SHA-1
	"fmt"
	"sync"

	"gitrollout.dev/gitrollout/rollout"
)

// Hashed is a folder whose files, unlike folders, have Git's ids, to reuse a commit's renders.
type Hashed struct {
	Dir
	mu    sync.Mutex
	paths map[string]string // by Git's ids
}

var _ rollout.Tree = (*Hashed)(nil)

// OpenHashed opens a folder.
func OpenHashed(dir string) (*Hashed, error) {
	tree, err := Open(dir)
	return &Hashed{Dir: tree, paths: map[string]string{}}, err
}

// Lookup implements rollout.Tree.
func (t *Hashed) Lookup(name string) (rollout.Entry, bool, error) {
	e, found, err := t.Dir.Lookup(name)
	if err != nil || !found {
		return e, found, err
	}
	if e.Kind == rollout.Dir {
		e.ID = ""
		return e, true, nil
	}
	content, err := t.Dir.ReadBlob(e.ID)
	if err != nil {
		return e, false, err
	}
	id := fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)))
	t.mu.Lock()
	t.paths[id] = e.ID
	t.mu.Unlock()
	e.ID = id
	return e, true, nil
}

// ReadBlob implements rollout.Tree.
func (t *Hashed) ReadBlob(id string) ([]byte, error) {
	t.mu.Lock()
	name, hashed := t.paths[id]
	t.mu.Unlock()
	if !hashed {
		name = id // ReadDir's ids are paths
	}
	return t.Dir.ReadBlob(name)
}
