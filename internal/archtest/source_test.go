package archtest

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	module = "gitrollout.dev/gitrollout"
	root   = "../.."
)

// source is one Go file of the repository. Its path is relative to the root.
type source struct {
	path string
	file *ast.File
	set  *token.FileSet
}

func (s source) dir() string { return path.Dir(s.path) }

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s source) line(p token.Pos) int { return s.set.Position(p).Line }

func (s source) functions() (all []*ast.FuncDecl) {
	for _, decl := range s.file.Decls {
		if f, is := decl.(*ast.FuncDecl); is {
			all = append(all, f)
		}
	}
	return all
}

func (s source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

func (s source) lines() int { return s.set.File(s.file.FileStart).LineCount() }

// parsed is package state, so that the files are parsed once for all tests.
var parsed = sync.OnceValues(parse)

// sources returns all Go files of the repository, including nested modules.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatalf("read the repository's Go files: %v", err)
	}
	if len(all) < 50 {
		t.Fatalf("found %d Go files: is %s the repository's root?", len(all), root)
	}
	return all
}

func parse() (all []source, err error) {
	files, err := find(".go")
	for _, name := range files {
		set := token.NewFileSet()
		file, failed := parser.ParseFile(set, filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		all, err = append(all, source{path: name, file: file, set: set}), errors.Join(err, failed)
	}
	return all, err
}

func product(t *testing.T) []source {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(sources(t)), func(s source) bool { return !s.isProduct() })
}

// find returns the files with the given ending, as paths relative to the root. It skips bin, testdata and hidden folders.
func find(ending string) (files []string, err error) {
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		base := entry.Name()
		switch {
		case entry.IsDir() && rel != "." && (strings.HasPrefix(base, ".") || base == "bin" || base == "testdata"):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(rel, ending):
			files = append(files, filepath.ToSlash(rel))
		}
		return err
	})
	return files, err
}

// testNames returns all tests of the repository, as folder:name.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, s := range sources(t) {
		for _, f := range s.functions() {
			if s.isTest() {
				names[s.dir()+":"+f.Name.Name] = true
			}
		}
	}
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	must(t, err)
	return string(data)
}

// section returns a part of a page: the text after a title, up to the next title of its level.
func section(t *testing.T, page, title string) string {
	t.Helper()
	_, text, _ := strings.Cut(read(t, page), "\n## "+title+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
