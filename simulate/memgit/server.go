package memgit

import (
	"crypto/sha1"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Server is a Git server in memory.
type Server struct {
	Commits map[string]*Snapshot // by id
	refs    map[string]string
	moved   func(by string, branch, from, to string)
}

// self is the author of reconcilers' commits, as in a Snapshot of package git.
const self = "a merged proposal"

// New returns a server without branches. The server calls the function, if set, after each move of a branch.
func New(moved func(by string, branch, from, to string)) *Server {
	if moved == nil {
		moved = func(string, string, string, string) {}
	}
	return &Server{Commits: map[string]*Snapshot{}, refs: map[string]string{}, moved: moved}
}

// Head returns a branch's newest commit, or "".
func (g *Server) Head(branch string) string { return g.refs[branch] }

// Branches returns the branches with a prefix, sorted.
func (g *Server) Branches(prefix string) []string {
	var names []string
	for name := range g.refs {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Files returns a commit's files by path, without symbolic links.
func (g *Server) Files(id string) map[string]string {
	files := map[string]string{}
	for name, f := range g.at(id).files {
		if f.kind == rollout.File {
			files[name] = f.content
		}
	}
	return files
}

func (g *Server) at(id string) *Snapshot {
	if c := g.Commits[id]; c != nil {
		return c
	}
	return &Snapshot{}
}

// Subject returns a commit's subject.
func (g *Server) Subject(id string) string { return g.at(id).commit.Subject }

// Change is a user's commit on top of a branch.
type Change struct {
	Branch, Author, Message string
	When                    time.Time
	Edits                   map[string][]byte // by path; nil deletes the file or folder
	Links                   map[string]string // targets of symbolic links, by path
}

// Commit makes a user's commit, moves the branch, and returns the id.
func (g *Server) Commit(c Change) string {
	id := g.Make(g.refs[c.Branch], c)
	g.Set(c.Author, c.Branch, id)
	return id
}

// Make makes a commit on a parent, or a first commit if parent is "". It moves no branch.
func (g *Server) Make(parent string, c Change) string {
	files := map[string]file{}
	maps.Copy(files, g.at(parent).files)
	for name, content := range c.Edits {
		if content == nil {
			maps.DeleteFunc(files, func(path string, _ file) bool { return path == name || strings.HasPrefix(path, name+"/") })
		}
	}
	for name, content := range c.Edits {
		if content != nil {
			files[name] = file{string(content), rollout.File, hashOf(string(rollout.File) + string(content))}
		}
	}
	for name, target := range c.Links {
		files[name] = file{target, rollout.Symlink, hashOf(string(rollout.Symlink) + target)}
	}
	subject, _, _ := strings.Cut(c.Message, "\n")
	made := &Snapshot{
		commit: rollout.Commit{Author: c.Author, When: rollout.Second(c.When), Subject: subject},
		Parent: parent, files: files,
	}
	made.commit.ID = hashOf(fmt.Sprint(made.root().id, parent, c.Author, made.commit.When.Unix(), c.Message))
	if g.Commits[made.commit.ID] == nil {
		g.Commits[made.commit.ID] = made
	}
	return made.commit.ID
}

// Set moves a branch to any commit.
func (g *Server) Set(by, branch, id string) {
	was := g.refs[branch]
	if g.refs[branch] = id; id == "" {
		delete(g.refs, branch)
	}
	g.moved(by, branch, was, id)
}

func hashOf(content string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(content))) }
