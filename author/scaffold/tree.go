package scaffold

import (
	"path"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// With returns a tree with additional files that are not written yet.
func With(tree rollout.Tree, files []File) rollout.Tree {
	t := &overlaid{Tree: tree, files: map[string]string{}}
	for _, f := range files {
		t.files[f.Path] = f.Content
	}
	return t
}

type overlaid struct {
	rollout.Tree
	files map[string]string
}

// newID is the prefix of an added file's ID.
const newID = "new:"

// Lookup implements rollout.Tree.
func (t *overlaid) Lookup(name string) (rollout.Entry, bool, error) {
	if _, is := t.files[name]; is {
		return rollout.Entry{Name: path.Base(name), ID: newID + name, Kind: rollout.File}, true, nil
	}
	e, found, err := t.Tree.Lookup(name)
	if err != nil || found {
		return e, found, err
	}
	for file := range t.files {
		if strings.HasPrefix(file, name+"/") {
			return rollout.Entry{Name: path.Base(name), Kind: rollout.Dir}, true, nil
		}
	}
	return e, false, nil
}

// ReadDir implements rollout.Tree.
func (t *overlaid) ReadDir(name string) ([]rollout.Entry, error) {
	var entries []rollout.Entry
	_, found, err := t.Tree.Lookup(name)
	if err == nil && found {
		entries, err = t.Tree.ReadDir(name)
	}
	if err != nil {
		return nil, err
	}
	for file := range t.files {
		below, is := strings.CutPrefix(file, name+"/")
		if name == "" {
			below, is = file, true
		}
		if !is {
			continue
		}
		first, _, _ := strings.Cut(below, "/")
		if slices.ContainsFunc(entries, func(e rollout.Entry) bool { return e.Name == first }) {
			continue
		}
		e, _, err := t.Lookup(path.Join(name, first))
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b rollout.Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

// ReadBlob implements rollout.Tree.
func (t *overlaid) ReadBlob(id string) ([]byte, error) {
	if content, is := t.files[strings.TrimPrefix(id, newID)]; is && strings.HasPrefix(id, newID) {
		return []byte(content), nil
	}
	return t.Tree.ReadBlob(id)
}
