package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWho asks the tests that ran what a mutant changes, the quick ones first; where no block of the profile has the
// place, those that ran its file; and all, where a process may have run it that could not say so.
func TestWho(t *testing.T) {
	const profile = `mode: set
example.org/m/a/a.go:3.10,5.2 2 1
example.org/m/a/a.go:5.2,9.3 1 0
example.org/m/render/r.go:1.1,9.9 1 1
`
	ran := blocks(profile, "example.org/m/", false)
	all := blocks(profile, "example.org/m/", true)
	if len(ran["a/a.go"]) != 1 || len(all["a/a.go"]) != 2 {
		t.Fatalf("ran %v of %v", ran, all)
	}
	file := func(name string, b ...block) map[string][]block { return map[string][]block{name: b} }
	first, second := all["a/a.go"][0], all["a/a.go"][1]
	tests := []test{
		{name: "TestSlow", took: time.Minute, ran: file("a/a.go", first, second)},
		{name: "TestQuick", took: time.Second, ran: file("a/a.go", first)},
		{name: "TestElsewhere", took: time.Second, ran: file("a/b.go", first)},
	}
	for name, c := range map[string]struct {
		file   string
		at     [2]int
		killed bool
		want   []string
	}{
		"both ran it":            {"a/a.go", [2]int{4, 1}, false, []string{"TestQuick", "TestSlow"}},
		"a block ends before":    {"a/a.go", [2]int{5, 2}, false, []string{"TestSlow"}},
		"a column is of a line":  {"a/a.go", [2]int{3, 9}, false, []string{"TestQuick", "TestSlow"}},
		"nobody ran it":          {"render/r.go", [2]int{2, 1}, false, nil},
		"the killed may have":    {"a/c.go", [2]int{2, 1}, true, []string{"TestQuick", "TestElsewhere", "TestSlow"}},
		"the killed need not":    {"a/a.go", [2]int{5, 2}, true, []string{"TestSlow"}},
		"the killed have render": {"render/r.go", [2]int{2, 1}, true, []string{"TestQuick", "TestElsewhere", "TestSlow"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			known := asked{tests: tests, blocks: all, killed: c.killed}
			for _, x := range known.who(mutant{file: c.file, at: c.at}) {
				got = append(got, x.name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestGroups asks the quick first, and the subtests of one test apart from all others.
func TestGroups(t *testing.T) {
	var got [][]string
	for _, group := range groups([]test{
		{name: "TestA", took: 1}, {name: "TestS/a", took: 2}, {name: "TestB", took: 3},
		{name: "TestS/b", took: time.Minute}, {name: "TestC", took: time.Minute},
	}) {
		var names []string
		for _, x := range group {
			names = append(names, x.name)
		}
		got = append(got, names)
	}
	if diff := cmp.Diff([][]string{{"TestA", "TestB"}, {"TestS/a", "TestS/b"}, {"TestC"}}, got); diff != "" {
		t.Error(diff)
	}
}

// TestTry tries the mutants of a small package: one that a test notices, one that a subtest does, one that only a
// test runs which is broken anyway, one that does not compile, and one that a test runs which fails by chance.
func TestTry(t *testing.T) {
	root, mark := t.TempDir(), filepath.Join(t.TempDir(), "mark")
	t.Setenv("MARK", mark)
	for name, content := range map[string]string{
		"go.mod": "module example.org/m\n\ngo 1.24\n",
		"a/a.go": `package a

func Less(x, y int) bool { return x < y }
func Broken(x int) bool { return x != 0 }
func Chance(x, y bool) bool { return x && y }
func Sum(x, y int) int { return x*1 + y }
func Text(x, y string) string { return x + y }
`,
		"a/a_test.go": `package a

import (
	"os"
	"testing"
)

func TestLess(t *testing.T) {
	if Less(1, 1) {
		t.Error("1 < 1")
	}
}

func TestParts(t *testing.T) {
	t.Run("a sum", func(t *testing.T) {
		if Sum(1, 1) != 2 {
			t.Error("1 + 1 != 2")
		}
	})
	t.Run("another", func(t *testing.T) {})
}

func TestBroken(t *testing.T) { t.Error(Broken(1)) }

func TestByChance(t *testing.T) {
	Chance(true, true)
	if os.Remove(os.Getenv("MARK")) == nil {
		t.Error("fails once")
	}
}
`,
	} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := mutantsOf(root, "a")
	if err != nil {
		t.Fatal(err)
	}
	covdata, err := exec.Command("go", "tool", "-n", "covdata").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"3: < becomes <=": caught + " (./a TestLess)", "4: != becomes ==": survives, "4: 0 becomes 1": survives,
		"5: && becomes ||": survives, "6: + becomes -": caught + " (./a TestParts)",
		"6: * becomes /": survives, "6: 1 becomes 2": caught + " (./a TestParts)", "7: + becomes -": noGo,
	}
	for name, slow := range map[string][]string{"a package of quick tests": nil, "a package of slow ones": {"./a"}} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(mark)
			got := map[string]string{}
			asking := tests{root, "example.org/m", strings.TrimSpace(string(covdata)), time.Minute, slow, 0, map[string]*asked{}}
			for _, m := range all {
				verdict, by, err := asking.try(m, []string{"./a"})
				if err != nil {
					t.Fatal(err)
				}
				got[fmt.Sprintf("%d: %s", m.at[0], m.what)] = verdict + by
				if err := os.WriteFile(mark, nil, 0o600); err != nil { // from the second mutant on
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
