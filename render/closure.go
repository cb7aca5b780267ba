package render

import (
	"path"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// closure is everything a build asked the tree about at a path and below: path by path, what was there. It is a tree of
// its own, so that a look at the id of one folder answers for all that lies below: an app that did not change costs
// about one look-up for each folder that it reads from. Asked is whether the build asked about the path itself, or it
// is only on the way to one that was.
type closure struct {
	asked    bool
	was      string // mark of what was there
	lists    bool   // the build is made of all that the folder has
	isDir    bool   // with children only, or if it lists: a folder was there
	folder   string // its id
	children map[string]*closure
}

// newClosure makes a closure of what was looked at in a tree.
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
	return root, root.fill("", tree)
}

// at is that of a path below.
func (n *closure) at(p string) *closure {
	for _, name := range segments(p) {
		next := n.children[name]
		if next == nil {
			if n.children == nil {
				n.children = map[string]*closure{}
			}
			next = &closure{}
			n.children[name] = next
		}
		n = next
	}
	return n
}

// fill notes the ids of the folders on the way. Below what was no folder there
// is nothing to note: every path there was looked for in vain.
func (n *closure) fill(p string, tree rollout.Tree) error {
	if len(n.children) == 0 && !n.lists {
		return nil
	}
	entry, found, err := tree.Lookup(p)
	if err != nil || markOf(entry, found) != markDir {
		return err
	}
	n.isDir, n.folder = true, entry.ID
	for name, child := range n.children {
		if err := child.fill(path.Join(p, name), tree); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether all that the build asked about is the same in a tree. It is the closure of a path.
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
		return false, nil // a folder came or went, and with it perhaps what was looked for below
	case !n.isDir || entry.ID == n.folder && entry.ID != "":
		return true, nil
	}
	for name, child := range n.children {
		same, err := child.holds(tree, path.Join(p, name))
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// segments splits a path into its names, none for the root.
func segments(p string) []string {
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}
