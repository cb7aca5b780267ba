package archtest

import (
	"go/ast"
	"strings"
	"testing"
)

// Limits on one function and one file. The aim is 60 and 400.
const (
	maxFunction = 80
	maxFile     = 450
)

// tooLong lists the files and functions that may be longer, each with its reason.
var tooLong = map[string]string{}

func TestLength(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.isTest() {
			continue // a table of cases may have any length
		}
		if n := s.lines(); n > maxFile && !excused(used, s.path) {
			t.Errorf("%s has %d lines, more than %d: split it by subject", s.path, n, maxFile)
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := s.line(f.End()) - s.line(f.Pos()) + 1; n > maxFunction && !excused(used, s.path+":"+f.Name.Name) {
				t.Errorf("%s: %s has %d lines, more than %d", s.path, f.Name.Name, n, maxFunction)
			}
		}
	}
	for name := range tooLong {
		if !used[name] {
			t.Errorf("%s need not be excused any more", name)
		}
	}
}

func excused(used map[string]bool, name string) bool {
	_, ok := tooLong[name]
	used[name] = used[name] || ok
	return ok
}

func TestNoInit(t *testing.T) {
	for _, s := range sources(t) {
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function: nothing happens because a package was imported", s.path)
			}
		}
	}
}

// clocks are the files that may read the clock, besides commands, tests and test helpers. All other code is given the
// time.
var clocks = map[string]string{
	"reconciler/run.go":      "it makes passes at intervals, and hands each the time",
	"reconciler/watchdog.go": "work that hangs is told by the time since it was last seen to get on",
	"cluster/apply.go":       "two writers of one field are told by how often they write it in a minute",
	"cluster/feed.go":        "a server that does not answer a watch is told by how long it takes",
	"cluster/event.go":       "an Event says when it was made; nothing follows from it",
}

func TestClock(t *testing.T) {
	asked := map[string]bool{}
	for _, s := range sources(t) {
		if s.isTest() || strings.HasPrefix(s.path, "cmd/") || strings.HasPrefix(s.path, "internal/") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok || pkg.Name != "time" || (sel.Sel.Name != "Now" && sel.Sel.Name != "Since" && sel.Sel.Name != "Until") {
				return true
			}
			asked[s.path] = true
			if clocks[s.path] == "" {
				t.Errorf("%s:%d: time.%s: take the time as an argument", s.path, s.line(n.Pos()), sel.Sel.Name)
			}
			return true
		})
	}
	for name := range clocks {
		if !asked[name] {
			t.Errorf("%s need not be excused any more", name)
		}
	}
}

func TestOnlyTheLoopAndTheCommandsLog(t *testing.T) {
	for _, s := range sources(t) {
		dir := s.dir()
		if s.isTest() || dir == "reconciler" || strings.HasPrefix(dir, "cmd/") || strings.HasPrefix(dir, "internal/") {
			continue
		}
		for _, p := range s.imports() {
			if p == "log" || p == "log/slog" {
				t.Errorf("%s imports %s: return an error instead", s.path, p)
			}
		}
	}
}

// TestPackagesSayWhatTheyAreFor checks that each package has one package comment.
func TestPackagesSayWhatTheyAreFor(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		documented[s.dir()] = documented[s.dir()] || s.file.Doc.Text() != ""
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}
