package archtest

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// These limits are for the size of the code. The product is every Go file except tests and files below internal. Files below
// internal (servers, harnesses, a control plane) count as tests. budgets_test.go limits the lines of each top-level folder.
const (
	leastTestShare    = 1.0 // lines of tests per line of the product
	mostMethods       = 35  // methods of one receiver
	mostTopFolders    = 18
	longestFile       = 400
	mostColumns       = 120
	mostTestColumns   = 140
	longestFunction   = 60
	medianFunction    = 12
	ninetiethFunction = 32
	mostInterface     = 4 // methods
)

// isProduct reports whether a file belongs to the program, and not to the program's tests.
func (s source) isProduct() bool {
	return !s.isTest() && !strings.HasPrefix(s.path, "internal/")
}

func TestSizeOfTheProduct(t *testing.T) {
	product, tests := 0, 0
	for _, s := range sources(t) {
		n := strings.Count(read(t, s.path), "\n")
		if s.isProduct() && n > longestFile {
			t.Errorf("%s has %d lines, more than %d: which two things is it?", s.path, n, longestFile)
		}
		if s.isProduct() {
			product += n
		} else {
			tests += n
		}
	}
	share := float64(tests) / float64(product)
	t.Logf("product %d lines, tests %d, %.2f of it", product, tests, share)
	if share < leastTestShare {
		t.Errorf("there are %.2f lines of tests for each line of the product, less than %.2f", share, leastTestShare)
	}
}

func TestSizeOfFunctions(t *testing.T) {
	var lengths []int
	for _, s := range product(t) {
		for _, f := range s.functions() {
			n := s.line(f.End()) - s.line(f.Pos()) + 1
			lengths = append(lengths, n)
			if n > longestFunction {
				t.Errorf("%s: %s has %d lines, more than %d", s.path, f.Name.Name, n, longestFunction)
			}
		}
	}
	slices.Sort(lengths)
	median, ninetieth := lengths[len(lengths)/2], lengths[len(lengths)*9/10]
	t.Logf("%d functions: median %d lines, nine of ten within %d, at most %d", len(lengths), median, ninetieth, lengths[len(lengths)-1])
	if median > medianFunction || ninetieth > ninetiethFunction {
		t.Errorf("half of the functions have more than %d lines (want %d), a tenth more than %d (want %d)",
			median, medianFunction, ninetieth, ninetiethFunction)
	}
}

func TestReceivers(t *testing.T) {
	methods := map[string]int{}
	for _, s := range product(t) {
		for _, f := range s.functions() {
			if f.Recv != nil {
				methods[s.dir()+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		if n := methods[name]; n > mostMethods {
			t.Errorf("%s has %d methods, more than %d: which things is it?", name, n, mostMethods)
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

func TestInterfaces(t *testing.T) {
	for _, s := range product(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if i, ok := spec.Type.(*ast.InterfaceType); ok && i.Methods.NumFields() > mostInterface {
				t.Errorf("%s: interface %s has %d methods, more than %d", s.path, spec.Name.Name, i.Methods.NumFields(), mostInterface)
			}
			return true
		})
	}
}

func TestTopFolders(t *testing.T) {
	entries, err := os.ReadDir(root)
	must(t, err)
	var folders []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "bin" { // bin is not in Git
			folders = append(folders, e.Name())
		}
	}
	if len(folders) > mostTopFolders {
		t.Errorf("there are %d folders at the top, more than %d: %v", len(folders), mostTopFolders, folders)
	}
}

// TestColumns limits the length of lines. Lines with string literals or fields' tags may be longer, because Go cannot break them.
func TestColumns(t *testing.T) {
	for _, s := range sources(t) {
		limit := mostTestColumns
		switch {
		case s.isProduct():
			limit = mostColumns
		case !s.isTest():
			continue // files below internal may have long lines of data, such as attacks
		}
		text := read(t, s.path)
		texts, tags := linesOfText(text), s.linesOfTags()
		for i, line := range strings.Split(text, "\n") {
			if columns(line) > limit && !texts[i+1] && !tags[i+1] {
				t.Errorf("%s:%d has %d columns, more than %d", s.path, i+1, columns(line), limit)
			}
		}
	}
}

// linesOfTags returns the numbers of the lines that have a struct field's tag.
func (s source) linesOfTags() map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && f.Tag != nil {
			lines[s.line(f.Tag.Pos())] = true
		}
		return true
	})
	return lines
}

// columns returns the width of a line. A tab counts as one column, as in golangci-lint's linter lll.
func columns(line string) int { return utf8.RuneCountInString(line) }

// linesOfText returns the numbers of two kinds of lines: lines with only string literals and
// punctuation, and lines inside a string literal of several lines.
func linesOfText(file string) map[int]bool {
	set := token.NewFileSet()
	f := set.AddFile("", -1, len(file))
	var s scanner.Scanner
	s.Init(f, []byte(file), nil, 0)
	texts, others := map[int]bool{}, map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		switch line := f.Line(pos); tok {
		case token.EOF:
			maps.DeleteFunc(texts, func(line int, _ bool) bool { return others[line] })
			return texts
		case token.STRING:
			for i := range strings.Count(lit, "\n") + 1 {
				texts[line+i] = true
			}
		case token.ADD, token.COMMA, token.LPAREN, token.RPAREN, token.LBRACE, token.RBRACE, token.RBRACK, token.SEMICOLON:
		default:
			others[line] = true
		}
	}
}

// TestRaceListIsComplete checks the Makefile's list of packages for the race detector. The list must have exactly the tested packages that
// use a lock or start a goroutine.
func TestRaceListIsComplete(t *testing.T) {
	out, err := exec.Command("make", "--no-print-directory", "-C", root, "race-list").Output()
	must(t, err)
	listed := map[string]bool{}
	for _, name := range strings.Fields(string(out)) {
		listed[strings.TrimPrefix(name, module+"/")] = true
	}
	concurrent := map[string]bool{}
	for _, s := range product(t) {
		tests, err := filepath.Glob(filepath.Join(root, s.dir(), "*_test.go"))
		must(t, err)
		if len(tests) == 0 {
			continue
		}
		for _, p := range s.imports() {
			concurrent[s.dir()] = concurrent[s.dir()] || p == "sync" || p == "sync/atomic"
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				concurrent[s.dir()] = true
			}
			return true
		})
	}
	for dir, is := range concurrent {
		if is && !listed[dir] {
			t.Errorf("package %s has a lock or a goroutine: add it to RACE in the Makefile", dir)
		}
		if !is && listed[dir] {
			t.Errorf("package %s has neither a lock nor a goroutine: take it out of RACE in the Makefile", dir)
		}
	}
}

// modules returns the folders of all modules except the product's module. It omits a module whose parent folder is a module.
func modules(t *testing.T) (dirs []string) {
	t.Helper()
	files, err := find("/go.mod")
	must(t, err)
	for _, file := range files {
		if dir := path.Dir(file); !slices.Contains(files, path.Join(path.Dir(dir), "go.mod")) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// TestArchitectureNamesEveryPackage checks that the table of docs/architecture.md has a row for each package. A module that does not use
// the product has one row.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	inTree, inTable := map[string]bool{}, map[string]bool{}
	for _, dir := range modules(t) {
		inTree[dir] = true
	}
	for _, s := range sources(t) {
		if i := slices.IndexFunc(nested, func(m string) bool { return hasPrefix(s.dir(), []string{m}) }); i >= 0 {
			inTree[nested[i]] = true
			continue
		}
		inTree[s.dir()] = true
	}
	for line := range strings.Lines(section(t, "docs/architecture.md", "Packages")) {
		first, _, isRow := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !isRow || !strings.HasPrefix(first, "`") {
			continue
		}
		for _, name := range strings.Split(first, ", ") {
			inTable[strings.Trim(name, "`")] = true
		}
	}
	for name := range inTree {
		if !inTable[name] {
			t.Errorf("docs/architecture.md has no row for %s in its table of packages", name)
		}
	}
	for name := range inTable {
		if !inTree[name] {
			t.Errorf("docs/architecture.md has a row for %s, which is no package", name)
		}
	}
}

// oneRow names a test for each kind of extension. The test adds an extension by one table row, and checks that the extension works.
var oneRow = map[string]string{
	"strategy":         "strategies:TestAThirdStrategy",
	"kind of workload": "strategies:TestASecondKind",
	"its cluster side": "cluster:TestStatefulSetIsHeldByItsPartition",
	"router":           "traffic:TestAnotherRouterIsOneRow",
	"metric provider":  "analysis/provider:TestAProviderIsOneRow",
	"notification":     "publish/notify/service:TestAServiceIsOneLine",
	"forge":            "publish/forge:TestAForgeIsOneLine",
}

// namesAKind lists the files that may name a kind of workload, each with the reason.
var namesAKind = map[string]string{
	"rollout/workload.go":                 "the table",
	"strategies/workloads/kind.go":        "the table",
	"cluster/workload.go":                 "the table of the cluster's side",
	"rollout/partition.go":                "the table of those that are known by their fields",
	"strategies/workloads/statefulset.go": "its own",
	"cluster/statefulset.go":              "its own",
	"render/statefulset.go":               "its own",
	"strategies/workloads/daemonset.go":   "its own",
	"cluster/daemonset.go":                "its own",
	"render/daemonset.go":                 "its own",
	"simulate/kube/nodes.go":              "its model",
	"simulate/kube/ordinals.go":           "its model",
	"render/kind.go":                      "the table of the kinds' strategies",
	"render/scope.go":                     "the order of all kinds",
	"author/plan/fixed.go":                "fields of a kind that cannot change",
}

func TestKindsAreNamedInTheirFiles(t *testing.T) {
	named := map[string]bool{}
	for _, s := range product(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			text := ""
			switch n := n.(type) {
			case *ast.Ident:
				text = n.Name
			case *ast.BasicLit:
				text = n.Value
			}
			text = strings.ToLower(text)
			isKind := func(kind string) bool { return strings.Contains(text, kind) }
			if slices.ContainsFunc([]string{"statefulset", "daemonset", "cloneset"}, isKind) {
				if named[s.path] = true; namesAKind[s.path] == "" {
					t.Errorf("%s:%d names a kind of workload: %s", s.path, s.line(n.Pos()), text)
				}
			}
			return true
		})
	}
	for file := range namesAKind {
		if !named[file] {
			t.Errorf("%s is listed as naming a kind of workload, and does not", file)
		}
	}
}

func TestOneMoreIsARow(t *testing.T) {
	tests := testNames(t)
	for what, test := range oneRow {
		if !tests[test] {
			t.Errorf("%s is gone, which adds a %s by a row of a table", test, what)
		}
	}
}
