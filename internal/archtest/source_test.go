package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
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

// dir returns the package's folder.
func (s source) dir() string { return path.Dir(s.path) }

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s source) line(p token.Pos) int { return s.set.Position(p).Line }

// imports returns the paths that the file imports.
func (s source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// lines returns the file's length.
func (s source) lines() int { return s.set.File(s.file.FileStart).LineCount() }

// parsed is package state because all tests use the same files.
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

func parse() ([]source, error) {
	var all []source
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if entry.IsDir() {
			if base := entry.Name(); rel != "." && (strings.HasPrefix(base, ".") || base == "bin" || base == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		all = append(all, source{path: rel, file: file, set: set})
		return nil
	})
	return all, err
}

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return string(data)
}
