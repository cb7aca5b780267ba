package archtest

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var updateConformance = flag.Bool("update", false, "rewrite docs/conformance.md")

const conformancePage = "docs/conformance.md"

// suite is a file in testdata/conformance with another tool's end-to-end tests. The first line is
// "NAME | VERSION | NUMBER | ADDRESS | NOTE". After a line "VERDICT | TESTS", each indented line names a scenario with this verdict.
// "×2" marks a scenario for two API versions.
type suite struct {
	name, version, address, note string
	want                         int // the number of scenarios
	groups                       []verdict
}

// verdict compares gitrollout's behaviour with scenarios: same, differs or refused. The tests (DIR:TEST or DIR:TEST/SUBTEST) prove the
// verdict.
type verdict struct {
	text      string
	tests     []string
	scenarios []string
}

func (v verdict) kind() string {
	kind, _, _ := strings.Cut(v.text, ":")
	return kind
}

func (v verdict) count() (n int) {
	for _, scenario := range v.scenarios {
		n += 1 + strings.Count(scenario, "×2")
	}
	return n
}

func readSuite(t *testing.T, name string) suite {
	t.Helper()
	first, rest, _ := strings.Cut(read(t, "internal/archtest/testdata/conformance/"+name+".txt"), "\n")
	head := strings.Split(first, " | ")
	if len(head) != 5 {
		t.Fatalf("%s begins with %q, want NAME | VERSION | NUMBER | ADDRESS | NOTE", name, first)
	}
	s := suite{name: head[0], version: head[1], address: head[3], note: head[4]}
	var err error
	s.want, err = strconv.Atoi(head[2])
	must(t, err)
	for line := range strings.Lines(rest) {
		line = strings.TrimSuffix(line, "\n")
		scenario, isScenario := strings.CutPrefix(line, "  ")
		switch last := len(s.groups) - 1; {
		case isScenario:
			s.groups[last].scenarios = append(s.groups[last].scenarios, scenario)
		case line != "":
			text, tests, _ := strings.Cut(line, " | ")
			s.groups = append(s.groups, verdict{text: text, tests: strings.Split(tests, ", ")})
		}
	}
	return s
}

// TestConformance checks that docs/conformance.md lists the scenarios in testdata/conformance, and that each verdict names tests that
// exist.
func TestConformance(t *testing.T) {
	var suites []suite
	tests := testNames(t)
	valid := regexp.MustCompile(`^(same|(differs|refused): \S.*)$`)
	for _, name := range []string{"argo-rollouts", "kruise-rollouts", "flagger"} {
		s, seen, n := readSuite(t, name), map[string]bool{}, 0
		for _, v := range s.groups {
			if !valid.MatchString(v.text) || len(v.scenarios) == 0 {
				t.Errorf("%s: the verdict %q for %q is none of same, differs: why, refused: why", name, v.text, v.scenarios)
			}
			for _, test := range v.tests {
				if !exists(t, tests, test) {
					t.Errorf("%s: %s does not exist, which is to prove %q", name, test, v.text)
				}
			}
			for _, scenario := range v.scenarios {
				if seen[scenario] {
					t.Errorf("%s: the scenario %q is listed twice", name, scenario)
				}
				seen[scenario] = true
			}
			n += v.count()
		}
		if n != s.want {
			t.Errorf("%s: %d scenarios, want %d", name, n, s.want)
		}
		suites = append(suites, s)
	}
	page := conformance(suites)
	if *updateConformance {
		must(t, os.WriteFile(filepath.Join(root, conformancePage), []byte(page), 0o644))
		return
	}
	if read(t, conformancePage) != page {
		t.Errorf("%s differs from testdata/conformance, rewrite it with -update", conformancePage)
	}
}

// exists returns whether a test exists. A subtest S exists if the package's testdata has a file S.txtar.
func exists(t *testing.T, tests map[string]bool, name string) bool {
	t.Helper()
	dir, test, _ := strings.Cut(name, ":")
	test, sub, isSub := strings.Cut(test, "/")
	if !tests[dir+":"+test] || !isSub {
		return tests[dir+":"+test]
	}
	found := false
	data := filepath.Join(root, filepath.FromSlash(dir), "testdata")
	must(t, filepath.WalkDir(data, func(name string, _ fs.DirEntry, err error) error {
		found = found || strings.HasSuffix(filepath.ToSlash(name), "/"+sub+".txtar")
		return err
	}))
	return found
}

// conformance returns docs/conformance.md: for each tool, the number of scenarios per verdict, and a table of scenarios, sorted by verdict.
func conformance(suites []suite) string {
	var b strings.Builder
	b.WriteString("# Conformance\n\n<!-- written by go test ./internal/archtest -run TestConformance -update -->\n\n" +
		"These tables list the end-to-end tests of three other tools, and how gitrollout behaves in each:\n\n" +
		"- **same**: the same pods, weights and result\n- **differs**: another behaviour on purpose\n" +
		"- **refused**: an error before anything changes\n\n" +
		"The last column names the tests of this repository that prove the verdict. [A comparison](comparison.md) describes the tools.\n")
	for _, s := range suites {
		numbers := map[string]int{}
		for _, v := range s.groups {
			numbers[v.kind()] += v.count()
		}
		fmt.Fprintf(&b, "\n## %s\n\n[The tests](%s) of %s: %d scenarios, %d the same, %d different, %d refused. %s\n\n"+
			"| scenarios | verdict | tests |\n|---|---|---|\n",
			s.name, s.address, s.version, s.want, numbers["same"], numbers["differs"], numbers["refused"], s.note)
		kinds := []string{"same", "differs", "refused"}
		slices.SortStableFunc(s.groups, func(a, b verdict) int {
			return slices.Index(kinds, a.kind()) - slices.Index(kinds, b.kind())
		})
		for _, v := range s.groups {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", quoted(v.scenarios), v.text, quoted(v.tests))
		}
	}
	return b.String()
}

func quoted(texts []string) string { return "`" + strings.Join(texts, "`, `") + "`" }
