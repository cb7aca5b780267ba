package git

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"gitrollout.dev/gitrollout/rollout"
)

// builder adds a commit's changed blobs and trees to the store `made`. It also adds objects that the mirror has,
// because the server may have dropped its copies.
type builder struct {
	from *store
	made *store
}

type edit struct {
	remove   bool
	content  []byte
	children map[string]*edit
}

// plan arranges edits as a tree. Deletions come first, so edits can delete a file "a" and write "a/b".
func plan(edits map[string][]byte) (*edit, error) {
	root := &edit{}
	for path, content := range edits {
		node, err := root.at(path)
		if err != nil {
			return nil, err
		}
		node.content, node.remove = content, content == nil
	}
	return root, root.check("")
}

func (e *edit) at(path string) (*edit, error) {
	if err := checkEditPath(path); err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(path, "/") {
		if e.children == nil {
			e.children = map[string]*edit{}
		}
		if e.children[name] == nil {
			e.children[name] = &edit{}
		}
		e = e.children[name]
	}
	return e, nil
}

func (e *edit) check(path string) error {
	for name, child := range e.children {
		if e.content != nil && !child.onlyRemoves() {
			return fmt.Errorf("%q would be a file and a directory", path)
		}
		if err := child.check(join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// tree applies edits to a tree; a zero id means an empty tree. If no entries are left, the result is zero, because Git
// stores no empty directories.
func (b *builder) tree(id plumbing.Hash, path string, e *edit) (plumbing.Hash, error) {
	var old []object.TreeEntry
	if !id.IsZero() {
		var err error
		if old, err = b.from.tree(id); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	entries := make([]object.TreeEntry, 0, len(old)+len(e.children))
	changed := false
	take := func(was object.TreeEntry, e *edit) error {
		next, keep, err := b.child(was, join(path, was.Name), e)
		if keep {
			entries = append(entries, next)
		}
		changed = changed || keep != (was.Mode != 0) || keep && next != was
		return err
	}
	seen := map[string]bool{}
	for _, entry := range old {
		child := e.children[entry.Name]
		if child == nil {
			entries = append(entries, entry)
			continue
		}
		seen[entry.Name] = true
		if err := take(entry, child); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	for name, child := range e.children {
		if seen[name] {
			continue
		}
		if err := take(object.TreeEntry{Name: name}, child); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	switch {
	case len(entries) == 0:
		return plumbing.ZeroHash, nil
	case !changed:
		return id, nil
	}
	return b.made.Keep(plumbing.TreeObject, encodeTree(entries)), nil
}

func (b *builder) child(old object.TreeEntry, path string, e *edit) (next object.TreeEntry, keep bool, err error) {
	if old, err = b.clear(old, path, e); err != nil {
		return old, false, err
	}
	switch {
	case e.content != nil:
		return b.file(old, e.content), true, nil
	case len(e.children) == 0 || old.Mode != filemode.Dir && e.onlyRemoves():
		return old, old.Mode != 0, nil
	case old.Mode != filemode.Dir && old.Mode != 0:
		return old, false, fmt.Errorf("%s is not a directory: delete it to write files below it", path)
	}
	next = object.TreeEntry{Name: old.Name, Mode: filemode.Dir}
	next.Hash, err = b.tree(old.Hash, path, e)
	return next, err == nil && !next.Hash.IsZero(), err
}

func (b *builder) clear(old object.TreeEntry, path string, e *edit) (object.TreeEntry, error) {
	none := object.TreeEntry{Name: old.Name}
	if e.remove {
		return none, nil
	}
	if e.content == nil || old.Mode != filemode.Dir {
		return old, nil
	}
	left, err := b.tree(old.Hash, path, &edit{children: e.children})
	if err == nil && !left.IsZero() {
		err = fmt.Errorf("%s is a directory: delete it to write a file there", path)
	}
	return none, err
}

func (b *builder) file(old object.TreeEntry, content []byte) object.TreeEntry {
	next := object.TreeEntry{Name: old.Name, Mode: filemode.Regular}
	next.Hash = plumbing.ComputeHash(plumbing.BlobObject, content)
	if old.Mode == filemode.Executable {
		next.Mode = filemode.Executable
	}
	if next != old {
		b.made.Keep(plumbing.BlobObject, append([]byte{}, content...))
	}
	return next
}

func (e *edit) onlyRemoves() bool {
	writes := func(child *edit) bool { return !child.onlyRemoves() }
	return e.content == nil && !slices.ContainsFunc(slices.Collect(maps.Values(e.children)), writes)
}

func encodeTree(entries []object.TreeEntry) []byte {
	sort.Sort(object.TreeEntrySorter(entries))
	var buf bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&buf, "%o %s\x00", uint32(e.Mode), e.Name)
		buf.Write(e.Hash[:])
	}
	return bytes.Clone(buf.Bytes()) // without spare capacity
}

// Self is the default author. RFC 2606 reserves .invalid.
var Self = rollout.Identity{Name: "gitrollout", Email: "gitrollout@noreply.invalid"}

func checkIdentity(i rollout.Identity) error {
	name, email := strings.TrimSpace(i.Name), strings.TrimSpace(i.Email)
	if name == "" || email == "" || strings.ContainsAny(name+email, "<>\n\x00") {
		return fmt.Errorf("identity %q <%s>: a name and an e-mail address without angle brackets are needed", name, email)
	}
	return nil
}

// encodeCommit uses seconds in UTC. Equal input gives equal bytes.
func encodeCommit(tree, parent plumbing.Hash, who rollout.Identity, when time.Time, message string) ([]byte, error) {
	message = strings.TrimRight(strings.ReplaceAll(message, "\r\n", "\n"), " \t\n")
	switch {
	case message == "" || strings.ContainsRune(message, 0):
		return nil, errors.New("a commit needs a message without NUL characters")
	case when.IsZero():
		return nil, errors.New("a commit needs a time")
	}
	var buf bytes.Buffer
	fmt.Fprintf(&buf, "tree %s\n", tree)
	if !parent.IsZero() {
		fmt.Fprintf(&buf, "parent %s\n", parent)
	}
	stamp := fmt.Sprintf("%s <%s> %d +0000", strings.TrimSpace(who.Name), strings.TrimSpace(who.Email), when.Unix())
	fmt.Fprintf(&buf, "author %s\ncommitter %s\n\n%s\n", stamp, stamp, message)
	return buf.Bytes(), nil
}
