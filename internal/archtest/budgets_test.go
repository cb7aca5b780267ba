package archtest

import (
	"go/ast"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// budget limits two numbers of a top-level folder: lines outside of tests, and exported names (types, functions, methods, constants,
// variables).
type budget struct{ lines, names int }

// budgets has the limits of each folder. A commit that raises a budget gives the reason in its body, after "budget:".
// Names below internal do not count, because only tests use them.
var budgets = map[string]budget{
	"analysis":   {5_075, 82},
	"author":     {5_390, 91},
	"call":       {601, 23},
	"cluster":    {5_260, 90},
	"cmd":        {8_020, 12},
	"git":        {5_550, 149},
	"internal":   {11_472, 0},
	"publish":    {4_520, 100},
	"reconciler": {9_310, 191},
	"render":     {9_520, 107},
	"rollout":    {6_790, 577},
	"simulate":   {3_510, 100},
	"strategies": {9_090, 243},
	"traffic":    {3_940, 23},
	"views":      {8_030, 210},
}

func TestBudgets(t *testing.T) {
	measured := map[string]budget{}
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		folder, _, _ := strings.Cut(s.path, "/")
		b := measured[folder]
		b.lines += strings.Count(read(t, s.path), "\n")
		if s.isProduct() {
			b.names += exported(s.file)
		}
		measured[folder] = b
	}
	for _, folder := range slices.Sorted(maps.Keys(measured)) {
		switch is, limit := measured[folder], budgets[folder]; {
		case is.lines > limit.lines:
			t.Errorf("%s has %d lines, more than its budget of %d: merge some code, or use a library", folder, is.lines, limit.lines)
		case is.names > limit.names:
			t.Errorf("%s has %d exported names, more than its budget of %d: which are for its own files only?", folder, is.names, limit.names)
		}
	}
	for folder := range budgets {
		if measured[folder].lines == 0 {
			t.Errorf("%s has a budget and no code", folder)
		}
	}
}

func exported(file *ast.File) (n int) {
	count := func(names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() {
				n++
			}
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			count(decl.Name)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					count(spec.Name)
				case *ast.ValueSpec:
					count(spec.Names...)
				}
			}
		}
	}
	return n
}

var budgetRow = regexp.MustCompile(`(?m)^([-+])\t"(\w+)": +\{([\d_]+), ([\d_]+)\},$`)

// TestRaisedBudgetHasAReason checks, in this file's history, that every commit that raises a budget gives a reason.
func TestRaisedBudgetHasAReason(t *testing.T) {
	out, err := exec.Command("git", "-C", root, "log", "-p", "-U0", "--format=%x00%h %B", "--", "internal/archtest/budgets_test.go").Output()
	if err != nil {
		t.Fatalf("read the history of the budgets: %v", err)
	}
	for _, commit := range strings.Split(string(out), "\x00")[1:] {
		message, changes, _ := strings.Cut(commit, "\ndiff --git ")
		before := map[string]budget{}
		for _, row := range budgetRow.FindAllStringSubmatch(changes, -1) {
			now := budget{number(row[3]), number(row[4])}
			if row[1] == "-" {
				before[row[2]] = now
				continue
			}
			was, had := before[row[2]]
			if had && (now.lines > was.lines || now.names > was.names) && !strings.Contains(message, "budget:") {
				t.Errorf("%.8s raises the budget of %s and gives no reason after \"budget:\"", message, row[2])
			}
		}
	}
}

func number(digits string) int {
	n, _ := strconv.Atoi(strings.ReplaceAll(digits, "_", "")) // cannot fail, because the pattern matches only digits
	return n
}
