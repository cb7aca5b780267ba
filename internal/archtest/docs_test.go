package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pages returns the repository's Markdown files, relative to its root.
func pages(t *testing.T) []string {
	t.Helper()
	all, err := find(".md")
	must(t, err)
	return all
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := path.Join(path.Dir(page), m[1])
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, target)
			}
		}
	}
}

// TestSimulateComesFirst checks that README.md names the simulator before the demo, because the
// simulator needs no build of a control plane.
func TestSimulateComesFirst(t *testing.T) {
	readme := read(t, "README.md")
	if first := strings.Index(readme, "gitrollout simulate"); first < 0 || first > strings.Index(readme, "make demo") {
		t.Error("README.md names make demo before gitrollout simulate")
	}
}

// mostForNewcomers is the largest total length, in words, of the five pages below docs/start.
const mostForNewcomers = 2_000

// TestIndex checks that docs/README.md links to every page, and that the five pages of docs/start stay short.
func TestIndex(t *testing.T) {
	index, first, words := read(t, "docs/README.md"), 0, 0
	for _, page := range pages(t) {
		name, isDoc := strings.CutPrefix(page, "docs/")
		if !isDoc || name == "README.md" || path.Dir(name) == "adr" && name != "adr/README.md" {
			continue
		}
		if !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md has no link to %s", name)
		}
		if path.Dir(name) == "start" {
			first++
			words += len(strings.Fields(read(t, page)))
		}
	}
	if first != 5 || words > mostForNewcomers {
		t.Errorf("docs/start has %d pages with %d words, want 5 pages with at most %d", first, words, mostForNewcomers)
	}
}

var walkStep = regexp.MustCompile("`([A-Za-z.]+)\\(")

// TestWalksExist checks that each call in the section "Four walks" of docs/architecture.md is a function or method of the product.
func TestWalksExist(t *testing.T) {
	known := map[string]bool{}
	for _, s := range product(t) {
		for _, f := range s.functions() {
			name := f.Name.Name
			if f.Recv != nil {
				name = receiver(f.Recv.List[0].Type) + "." + name
			}
			known[name], known[s.file.Name.Name+"."+name] = true, true
		}
	}
	steps := walkStep.FindAllStringSubmatch(section(t, "docs/architecture.md", "Four walks"), -1)
	if len(steps) < 20 {
		t.Fatalf("found %d calls in docs/architecture.md: is its section read right?", len(steps))
	}
	for _, m := range steps {
		if !known[m[1]] {
			t.Errorf("docs/architecture.md: %s is no function or method of the product", m[1])
		}
	}
}

var commandLine = regexp.MustCompile(`(?m)(?:^\s*\$ |^    |\x60)gitrollout ([^\n\x60]*)`)

// TestCommandsExist checks that each command and flag of gitrollout in a page's command lines exists in the source.
// It finds commands by their field Use, and flags by the call that registers a flag.
func TestCommandsExist(t *testing.T) {
	commands, flags := commandsAndFlags(t)
	if len(commands) < 5 {
		t.Fatalf("found the commands %v in cmd/gitrollout: are they read right?", commands)
	}
	seen := 0
	for _, page := range pages(t) {
		for _, m := range commandLine.FindAllStringSubmatch(read(t, page), -1) {
			seen++
			line, _, _ := strings.Cut(m[1], "#")
			words := strings.Fields(line)
			if len(words) == 0 {
				continue
			}
			if !strings.HasPrefix(words[0], "-") && !slices.Contains(commands, words[0]) {
				t.Errorf("%s: gitrollout %s: there is no command %s", page, m[1], words[0])
			}
			for _, word := range words[1:] {
				name, isFlag := strings.CutPrefix(word, "--")
				name, _, _ = strings.Cut(name, "=")
				if isFlag && !slices.Contains(flags, name) {
					t.Errorf("%s: gitrollout %s: there is no flag --%s", page, m[1], name)
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("found %d command lines in the pages: are they read right?", seen)
	}
}

func commandsAndFlags(t *testing.T) (commands, flags []string) {
	t.Helper()
	commands, flags = []string{"help", "completion"}, []string{"help", "version"}
	ofFlag := regexp.MustCompile(`^([A-Z][A-Za-z0-9]*)?Var(P|PF)?$`)
	for _, s := range product(t) {
		if s.dir() != "cmd/gitrollout" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Use" {
					if use := literal(n.Value); use != "" {
						commands = append(commands, strings.Fields(use)[0])
					}
				}
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 1 && ofFlag.MatchString(sel.Sel.Name) {
					flags = append(flags, literal(n.Args[1]))
				}
			}
			return true
		})
	}
	return commands, flags
}

// literal returns the value of a string literal. For a sum such as "promote" + more, it returns the first operand's value.
func literal(e ast.Expr) string {
	if sum, ok := e.(*ast.BinaryExpr); ok {
		return literal(sum.X)
	}
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		text, _ := strconv.Unquote(lit.Value)
		return text
	}
	return ""
}

// TestSecurityNamesTests checks that each row about attacks in docs/security.md names an existing test.
func TestSecurityNamesTests(t *testing.T) {
	tests := testNames(t)
	name := regexp.MustCompile("`([a-z0-9/]+:(?:Test|Fuzz)[A-Za-z0-9]+)`")
	attacks, rows := false, 0
	for line := range strings.Lines(read(t, "docs/security.md")) {
		switch {
		case strings.HasPrefix(line, "| they try to") || strings.HasPrefix(line, "| it tries to"):
			attacks = true
		case !strings.HasPrefix(line, "|"):
			attacks = false
		case attacks && !strings.HasPrefix(line, "|---"):
			rows++
			found := name.FindAllStringSubmatch(line, -1)
			if len(found) == 0 {
				t.Errorf("no test is named in %s", line)
			}
			for _, m := range found {
				if !tests[m[1]] {
					t.Errorf("%s does not exist, which is to hold %s", m[1], line)
				}
			}
		}
	}
	if rows < 30 {
		t.Errorf("found %d attacks: are they read right?", rows)
	}
}
