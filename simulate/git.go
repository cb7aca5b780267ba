package simulate

import (
	"crypto/sha1"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Git is a Git server in memory. Equal content gives equal commit ids.
type Git struct {
	commits map[string]*commit
	refs    map[string]string
	moved   func(by string, branch, from, to string)
}

type commit struct {
	rollout.Commit
	parent  string
	message string
	files   map[string]file
	tree    *tree // nil until read
}

type file struct {
	content string
	kind    rollout.EntryKind
}

// Self is the author of reconcilers' commits, as in package git's Snapshot.
const Self = "a merged proposal"

// NewGit returns a server without branches. It calls moved after each move.
func NewGit(moved func(by string, branch, from, to string)) *Git {
	if moved == nil {
		moved = func(string, string, string, string) {}
	}
	return &Git{commits: map[string]*commit{}, refs: map[string]string{}, moved: moved}
}

// Head returns a branch's newest commit, or "".
func (g *Git) Head(branch string) string { return g.refs[branch] }

// Branches returns the branches with a prefix, sorted.
func (g *Git) Branches(prefix string) []string {
	names := slices.Sorted(maps.Keys(g.refs))
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
}

// Files returns a commit's files by path, without symbolic links.
func (g *Git) Files(id string) map[string]string {
	files := map[string]string{}
	for name, f := range g.at(id).files {
		if f.kind == rollout.File {
			files[name] = f.content
		}
	}
	return files
}

func (g *Git) at(id string) *commit {
	if c := g.commits[id]; c != nil {
		return c
	}
	return &commit{}
}

// Parent returns a commit's parent, or "".
func (g *Git) Parent(id string) string { return g.at(id).parent }

// Subject returns a commit's subject.
func (g *Git) Subject(id string) string { return g.at(id).Subject }

// Change is a user's commit on top of a branch.
type Change struct {
	Branch, Author, Message string
	When                    time.Time
	Edits                   map[string][]byte // by path; nil deletes the file or folder
	Links                   map[string]string // targets of symbolic links by path
}

// Commit makes a user's commit, moves the branch, and returns the id.
func (g *Git) Commit(c Change) string {
	made := g.make(g.refs[c.Branch], c.Edits, c.Author, c.Message, c.When)
	for name, target := range c.Links {
		made.files[name] = file{content: target, kind: rollout.Symlink}
	}
	g.add(made)
	g.Set(c.Author, c.Branch, made.ID)
	return made.ID
}

// Set moves a branch unconditionally, or deletes it for "".
func (g *Git) Set(by, branch, id string) {
	was := g.refs[branch]
	if g.refs[branch] = id; id == "" {
		delete(g.refs, branch)
	}
	g.moved(by, branch, was, id)
}

// make does not store the commit.
func (g *Git) make(parent string, edits map[string][]byte, author, message string, when time.Time) *commit {
	files := map[string]file{}
	maps.Copy(files, g.at(parent).files)
	for name, content := range edits {
		if content == nil {
			maps.DeleteFunc(files, func(path string, _ file) bool { return path == name || strings.HasPrefix(path, name+"/") })
		}
	}
	for name, content := range edits {
		if content != nil {
			files[name] = file{content: string(content), kind: rollout.File}
		}
	}
	subject, _, _ := strings.Cut(message, "\n")
	return &commit{
		Commit: rollout.Commit{Author: author, When: rollout.Second(when), Subject: subject},
		parent: parent, message: message, files: files,
	}
}

func (g *Git) add(c *commit) {
	c.ID = hashOf(fmt.Sprint(c.root().id, c.parent, c.Author, c.When.Unix(), c.message))
	if g.commits[c.ID] == nil {
		g.commits[c.ID] = c
	}
}

func hashOf(content string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(content))) }
