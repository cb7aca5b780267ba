package memgit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Snapshot is one commit.
type Snapshot struct {
	Parent string // a commit, or ""
	commit rollout.Commit
	files  map[string]file
	tree   *tree // nil until read
}

type file struct {
	content string
	kind    rollout.EntryKind
	id      string
}

type tree struct {
	id      string
	entries map[string]rollout.Entry
	folders map[string][]rollout.Entry
	blobs   map[string]string
}

func (s *Snapshot) root() *tree {
	if s.tree == nil {
		s.tree = &tree{entries: map[string]rollout.Entry{}, folders: map[string][]rollout.Entry{}, blobs: map[string]string{}}
		s.tree.id = s.tree.folder("", slices.Sorted(maps.Keys(s.files)), s.files).ID
	}
	return s.tree
}

func (t *tree) folder(dir string, names []string, files map[string]file) rollout.Entry {
	prefix := strings.TrimPrefix(dir+"/", "/")
	var list []rollout.Entry
	for i := 0; i < len(names); i++ {
		name := strings.TrimPrefix(names[i], prefix)
		if first, _, nested := strings.Cut(name, "/"); nested {
			below := prefix + first + "/"
			end := i
			for end < len(names) && strings.HasPrefix(names[end], below) {
				end++
			}
			list = append(list, t.folder(prefix+first, names[i:end], files))
			i = end - 1
			continue
		}
		f := files[names[i]]
		e := rollout.Entry{Name: name, Kind: f.kind, ID: f.id}
		t.blobs[e.ID], t.entries[names[i]] = f.content, e
		list = append(list, e)
	}
	var sum strings.Builder
	for _, e := range list {
		sum.WriteString(string(e.Kind) + " " + e.Name + " " + e.ID + "\n")
	}
	self := rollout.Entry{Name: dir[strings.LastIndex(dir, "/")+1:], Kind: rollout.Dir, ID: hashOf(sum.String())}
	t.entries[dir], t.folders[dir] = self, list
	return self
}

// Commit returns the metadata.
func (s *Snapshot) Commit() rollout.Commit { return s.commit }

// Lookup implements rollout.Tree.
func (s *Snapshot) Lookup(name string) (rollout.Entry, bool, error) {
	e, found := s.root().entries[name]
	return e, found, nil
}

// ReadDir implements rollout.Tree.
func (s *Snapshot) ReadDir(name string) ([]rollout.Entry, error) {
	list, found := s.root().folders[name]
	if !found {
		return nil, fmt.Errorf("commit %s: %q is not a folder", s.commit.Short(), name)
	}
	return slices.Clone(list), nil
}

// ReadBlob implements rollout.Tree.
func (s *Snapshot) ReadBlob(id string) ([]byte, error) {
	content, found := s.root().blobs[id]
	if !found {
		return nil, fmt.Errorf("commit %s: no file has the id %s", s.commit.Short(), id)
	}
	return []byte(content), nil
}
