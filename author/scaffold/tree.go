package scaffold

import (
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// With adds files to a tree. Folders with new files have no ID.
func With(tree rollout.Tree, files []File) rollout.Tree {
	t := &overlaid{Tree: tree, files: map[string]rollout.Entry{}, blobs: map[string]string{}}
	for _, f := range files {
		id := fmt.Sprintf("new:%x", sha256.Sum256([]byte(f.Content)))
		t.files[f.Path] = rollout.Entry{Name: path.Base(f.Path), ID: id, Kind: rollout.File}
		t.blobs[id] = f.Content
	}
	return t
}

type overlaid struct {
	rollout.Tree
	files map[string]rollout.Entry
	blobs map[string]string // by ID
}

func (t *overlaid) names(dir string) map[string]bool {
	names := map[string]bool{}
	for file := range t.files {
		if below, is := strings.CutPrefix("/"+file, strings.TrimSuffix("/"+dir, "/")+"/"); is {
			first, _, _ := strings.Cut(below, "/")
			names[first] = true
		}
	}
	return names
}

func (t *overlaid) Lookup(name string) (rollout.Entry, bool, error) {
	if e, is := t.files[name]; is {
		return e, true, nil
	}
	if len(t.names(name)) > 0 {
		return rollout.Entry{Name: path.Base(name), Kind: rollout.Dir}, true, nil
	}
	return t.Tree.Lookup(name)
}

func (t *overlaid) ReadDir(name string) (entries []rollout.Entry, err error) {
	_, found, err := t.Tree.Lookup(name)
	if err == nil && found {
		entries, err = t.Tree.ReadDir(name)
	}
	if err != nil {
		return nil, err
	}
	names := t.names(name)
	entries = slices.DeleteFunc(slices.Clone(entries), func(e rollout.Entry) bool { return names[e.Name] })
	for first := range names {
		e, _, _ := t.Lookup(path.Join(name, first))
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b rollout.Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

func (t *overlaid) ReadBlob(id string) ([]byte, error) {
	if content, is := t.blobs[id]; is {
		return []byte(content), nil
	}
	return t.Tree.ReadBlob(id)
}
