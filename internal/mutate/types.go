package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// checker decides which mutants compile. It checks types and does not run the compiler.
type checker struct {
	libraries types.Importer
	on        *types.Package
	path      string              // import path of package "on"
	built     map[string]bool     // the files that are built on this system
	folders   map[string]*checked // checked packages by folder
}

// checked is a type-checked package without mutants.
type checked struct {
	sources []*source
	info    *types.Info
}

// newChecker runs the go command to find the export data of the packages that the given folders import.
func newChecker(root, module string, folders []string) (*checker, error) {
	const format = `{{.ImportPath}} {{.Export}}{{if not .Standard}}{{range .GoFiles}} {{$.Dir}}/{{.}}{{end}}{{end}}`
	list := exec.Command("go", "list", "-export", "-deps", "-f", format)
	for _, folder := range folders {
		list.Args = append(list.Args, "./"+folder)
	}
	list.Args = append(list.Args, "cmp", "os", "path/filepath", "strconv", "strings", "sync/atomic") // for the package on
	list.Dir, list.Stderr = root, os.Stderr
	listed, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -export: %w", err)
	}
	c := &checker{path: module + "/internal/mutate/on", built: map[string]bool{}, folders: map[string]*checked{}}
	compiled := map[string]string{}
	for line := range strings.Lines(string(listed)) {
		path, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		export, files, _ := strings.Cut(rest, " ")
		compiled[path] = export
		for file := range strings.FieldsSeq(files) {
			c.built[file] = true
		}
	}
	c.libraries = importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(compiled[path])
	})
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "on.go", onSource, 0)
	if err != nil {
		return nil, err
	}
	config := types.Config{Importer: c}
	c.on, err = config.Check(c.path, set, []*ast.File{file}, nil)
	return c, err
}

// Import implements types.Importer.
func (c *checker) Import(path string) (*types.Package, error) {
	if path == c.path && c.on != nil {
		return c.on, nil
	}
	return c.libraries.Import(path)
}

// types returns the types of the expressions in a folder's files.
func (c *checker) types(folder string, sources []*source) (*types.Info, error) {
	if known := c.folders[folder]; known != nil {
		return known.info, nil
	}
	known := &checked{info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
	var files []*ast.File
	for _, s := range sources {
		if c.built[s.path] {
			known.sources, files = append(known.sources, s), append(files, s.file)
		}
	}
	if len(files) > 0 {
		config := types.Config{Importer: c}
		if _, err := config.Check(folder, known.sources[0].set, files, known.info); err != nil {
			return nil, err
		}
	}
	c.folders[folder] = known
	return known.info, nil
}

// compiles reports whether the package compiles if a file has the given content. It checks the package's other files
// without function bodies, because the change cannot break these bodies.
func (c *checker) compiles(s *source, content []byte) bool {
	if !c.built[s.path] {
		return false
	}
	set := s.set
	changed, err := parser.ParseFile(set, s.path+".changed", content, 0)
	if err != nil {
		return false
	}
	files, good := []*ast.File{changed}, true
	for _, other := range c.folders[filepath.Dir(s.name)].sources {
		if other != s {
			files = append(files, signatures(other.file))
		}
	}
	config := types.Config{Importer: c, Error: func(err error) {
		wrong, is := errors.AsType[types.Error](err)
		good = good && is && set.Position(wrong.Pos).Filename != s.path+".changed"
	}}
	_, _ = config.Check(s.file.Name.Name, set, files, nil)
	return good
}

// signatures returns a file without function bodies. Only generic functions keep their bodies, because go/types
// requires them.
func signatures(file *ast.File) *ast.File {
	without := *file
	without.Decls = nil
	for _, decl := range file.Decls {
		if f, is := decl.(*ast.FuncDecl); is && f.Type.TypeParams == nil {
			signature := *f
			signature.Body = nil
			decl = &signature
		}
		without.Decls = append(without.Decls, decl)
	}
	return &without
}

// program reports whether a file compiles with a mutant.
func (c *checker) program(folder string, sources []*source, m *mutant) (bool, error) {
	if _, err := c.types(folder, sources); err != nil {
		return false, err
	}
	for _, s := range sources {
		if s.name == m.file {
			return c.compiles(s, m.apply(s.content)), nil
		}
	}
	return false, nil
}

// fit returns both lists of mutants. The mutants of the first list compile together. fit marks each mutant of the
// second list that must be compiled separately.
func (c *checker) fit(s *source, in, more []*mutant, info *types.Info) []*mutant {
	all := slices.Concat(in, more)
	if len(more) == 0 || c.compiles(s, s.woven(c.path, all, info)) {
		return all
	}
	if len(more) == 1 {
		more[0].own = true
		return all
	}
	half := len(more) / 2
	return c.fit(s, c.fit(s, in, more[:half], info), more[half:], info)
}
