package render

import (
	"path"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// closure records a build's lookups at and below one path. A folder's id covers its content, so checking an unchanged
// app takes about one lookup per folder. asked is true if the build looked up this path, not only paths below.
type closure struct {
	asked    bool
	lists    bool
	isDir    bool
	was      string // the found entry's mark, from markOf
	folder   string
	name     string     // relative to the parent; several folders if merged by the method short
	children []*closure // sorted by name; maps would take 1 kB more for each app
}

func newClosure(looked Looked, tree rollout.Tree) (*closure, error) {
	root := &closure{}
	for _, p := range looked.At {
		entry, found, err := tree.Lookup(p)
		if err != nil {
			return nil, err
		}
		n := root.at(p)
		n.asked, n.was = true, markOf(entry, found)
	}
	for _, p := range looked.All {
		root.at(p).lists = true
	}
	err := root.fill("", tree)
	return root.short(), err
}

// short merges a folder with its only subfolder, because the subfolder proves that the folder exists.
func (n *closure) short() *closure {
	if n.lists || len(n.children) != 1 || !n.children[0].isDir {
		return n
	}
	n.children[0].name = path.Join(n.name, n.children[0].name)
	return n.children[0]
}

func (n *closure) at(p string) *closure {
	for _, name := range segments(p) {
		i, known := slices.BinarySearchFunc(n.children, name, func(c *closure, name string) int {
			return strings.Compare(c.name, name)
		})
		if !known {
			n.children = slices.Insert(n.children, i, &closure{name: name})
		}
		n = n.children[i]
	}
	return n
}

// fill records the ids of folders. If p is not a folder, all lookups below p have failed.
func (n *closure) fill(p string, tree rollout.Tree) error {
	if len(n.children) == 0 && !n.lists {
		return nil
	}
	entry, found, err := tree.Lookup(p)
	if err != nil || markOf(entry, found) != markDir {
		return err
	}
	n.isDir, n.folder = true, entry.ID
	n.children = slices.Clip(n.children)
	for i, child := range n.children {
		if err := child.fill(path.Join(p, child.name), tree); err != nil {
			return err
		}
		n.children[i] = child.short()
	}
	return nil
}

func (n *closure) holds(tree rollout.Tree, p string) (bool, error) {
	entry, found, err := tree.Lookup(p)
	if err != nil {
		return false, err
	}
	mark := markOf(entry, found)
	switch {
	case n.asked && mark != n.was:
		return false, nil
	case n.lists && (entry.ID != n.folder || entry.ID == ""):
		return false, nil
	case len(n.children) == 0:
		return true, nil
	case (mark == markDir) != n.isDir:
		return false, nil // the folder was added or removed
	case !n.isDir || entry.ID == n.folder && entry.ID != "":
		return true, nil
	}
	for _, child := range n.children {
		if same, err := child.holds(tree, path.Join(p, child.name)); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func segments(p string) []string { return strings.FieldsFunc(p, func(r rune) bool { return r == '/' }) }
