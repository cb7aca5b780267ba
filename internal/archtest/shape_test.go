package archtest

import (
	"go/ast"
	"strings"
	"testing"
)

// These limits apply to all files except tests. house_test.go limits the product's functions to 60 lines and the product's files to 400.
const (
	maxFunction = 80
	maxFile     = 450
)

func TestLength(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() {
			continue // a table of cases may have any length
		}
		if n := s.lines(); n > maxFile {
			t.Errorf("%s has %d lines, more than %d: split it by subject", s.path, n, maxFile)
		}
		for _, f := range s.functions() {
			if n := s.line(f.End()) - s.line(f.Pos()) + 1; n > maxFunction {
				t.Errorf("%s: %s has %d lines, more than %d", s.path, f.Name.Name, n, maxFunction)
			}
		}
	}
}

func TestNoInit(t *testing.T) {
	for _, s := range sources(t) {
		for _, f := range s.functions() {
			if f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function: nothing happens because a package was imported", s.path)
			}
		}
	}
}

// clocks has the files that may read the clock, each with the reason. Commands, tests and test helpers may also read
// the clock. All other code gets the time as an argument.
var clocks = map[string]string{
	"reconciler/run.go":      "it makes passes at intervals, and hands each the time",
	"reconciler/watchdog.go": "work that hangs is told by the time since it was last seen to get on",
	"cluster/apply.go":       "two writers of one field are told by how often they write it in a minute",
	"cluster/feed.go":        "a server that does not answer a watch is told by how long it takes",
	"cluster/event.go":       "an Event says when it was made; nothing follows from it",
}

func TestClock(t *testing.T) {
	asked := map[string]bool{}
	for _, s := range product(t) {
		if strings.HasPrefix(s.path, "cmd/") {
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
	for _, s := range product(t) {
		if s.dir() == "reconciler" || strings.HasPrefix(s.path, "cmd/") {
			continue
		}
		for _, p := range s.imports() {
			if p == "log" || p == "log/slog" {
				t.Errorf("%s imports %s: return an error instead", s.path, p)
			}
		}
	}
}

// TestPackagesSayWhatTheyAreFor checks that each package has a package comment.
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
