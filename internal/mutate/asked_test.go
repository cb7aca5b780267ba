package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
)

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func namesOf(tests []test) (names []string) {
	for _, x := range tests {
		names = append(names, x.name)
	}
	return names
}

// TestWho checks the tests chosen for a mutant: only tests that execute the mutant, fast tests first.
func TestWho(t *testing.T) {
	known := asked{tests: []test{
		{name: "TestSlow", took: time.Minute, ran: map[int]bool{1: true, 2: true}},
		{name: "TestQuick", took: time.Second, ran: map[int]bool{1: true}},
	}}
	for number, want := range [][]string{nil, {"TestQuick", "TestSlow"}, {"TestSlow"}} {
		compare.CheckNamed(t, fmt.Sprint("mutant ", number), want, namesOf(known.who(&mutant{number: number})))
	}
}

// TestGroups checks that fast tests run first, and that the subtests of a slow test are a separate group.
func TestGroups(t *testing.T) {
	var got [][]string
	for _, group := range groups([]test{
		{name: "TestA", took: 1}, {name: "TestS/a", took: 2}, {name: "TestB", took: 3},
		{name: "TestS/b", took: time.Minute}, {name: "TestC", took: time.Minute},
	}) {
		got = append(got, namesOf(group))
	}
	compare.Check(t, [][]string{{"TestA", "TestB"}, {"TestS/a", "TestS/b"}, {"TestC"}}, got)
}

// write writes a file, with its folder.
func write(t *testing.T, file, content string) {
	t.Helper()
	must(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)))
}

// moduleOf writes a module with one package in the folder "a". It returns the package's drawn mutants and their tests.
func moduleOf(t *testing.T, files map[string]string) ([]draw, tests) {
	t.Helper()
	root := t.TempDir()
	files["go.mod"] = "module example.org/m\n\ngo 1.26\n"
	for name, content := range files {
		write(t, filepath.Join(root, name), content)
	}
	own, err := sourcesOf(root, "a")
	must(t, err)
	sources := map[string][]*source{"a": own}
	compiler, err := newChecker(root, "example.org/m", []string{"a"})
	must(t, err)
	drawn, err := compiler.draw(1000, 1, own[0].mutants, sources)
	must(t, err)
	asking, err := compiler.tests(root, sources, drawn)
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(asking.copy.dir) })
	asking.limit = time.Minute
	return drawn, asking
}

// TestTry checks the verdicts on the mutants of a small package. A mutant survives if only a failing or flaky test executes it. A mutant
// that cannot be switched is built by itself. A mutant that does not compile gets no verdict.
func TestTry(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	t.Setenv("MARK", mark)
	drawn, asking := moduleOf(t, map[string]string{"a/a.go": `package a

func Less(x, y int) bool { return x < y }
func Broken(x int) bool { return x != 0 }
func Chance(x, y bool) bool { return x && y }
func Sum(x, y int) int { return x*1 + y }
func Text(x, y string) string { return x + y }
func Room() int { return len([4]int{}) }
func Elsewhere(x bool) bool { return !x }
`, "a/a_test.go": `package a

import (
	"os"
	"os/exec"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		os.Exit(m.Run())
	}
	if Elsewhere(true) {
		os.Exit(1)
	}
}

func TestElsewhere(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.Dir = []string{}, "/"
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
}

func TestLess(t *testing.T) {
	if Less(1, 1) {
		t.Error("1 < 1")
	}
}

func TestRoom(t *testing.T) {
	if Room() != 4 {
		t.Error("not 4")
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
`})
	want := map[string]string{
		"3: < becomes <=": caught + " (./a TestLess)", "4: != becomes ==": survives, "4: 0 becomes 1": survives,
		"5: && becomes ||": survives, "6: + becomes -": caught + " (./a TestParts)",
		"6: * becomes /": survives, "6: 1 becomes 2": caught + " (./a TestParts)",
		"8: 4 becomes 5": caught + " (./a TestRoom)", "9: ! goes from !x": caught + " (./a TestElsewhere)",
	}
	for name, c := range map[string]struct {
		slow  []string
		worth time.Duration
	}{
		"a package of quick tests": {nil, time.Hour}, "a package of slow ones": {[]string{"./a"}, time.Hour},
		"a package of many mutants": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(mark)
			got := map[string]string{}
			asking.slow, asking.worth, asking.known = c.slow, c.worth, map[string]*asked{}
			for _, d := range drawn {
				verdict, by, err := asking.try(d.mutant, []string{"./a"})
				must(t, err)
				what := fmt.Sprintf("%d: %s", d.at[0], d.what)
				if got[what] = verdict + by; d.own != (what == "8: 4 becomes 5") {
					t.Errorf("%s is built by itself: %t", what, d.own)
				}
				write(t, mark, "") // with this file, TestByChance fails once for the next mutant
			}
			compare.Check(t, want, got)
		})
	}
}

// byThemselves builds one test program that has, for each mutant, a package with only this mutant, and a test that
// runs the package. Separate programs would take ten times as long.
func byThemselves(t *testing.T, of tests, drawn []draw, lived string) (binary string) {
	t.Helper()
	imports, calls := "import \"testing\"\n", ""
	for _, d := range drawn {
		only := fmt.Sprintf("only%d", d.number)
		write(t, filepath.Join(of.root, only, "a.go"), string(d.apply(of.files[d.file].content)))
		write(t, filepath.Join(of.root, only, "live.go"), lived)
		imports += fmt.Sprintf("import %s \"example.org/m/%s\"\n", only, only)
		calls += fmt.Sprintf("func TestOnly%d(*testing.T) { %s.Live() }\n", d.number, only)
	}
	write(t, filepath.Join(of.root, "all", "all_test.go"), "package all\n"+imports+calls)
	one, err := newBuild(of.root)
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(one.dir) })
	binary = filepath.Join(one.dir, "test")
	must(t, one.compile("./all", binary))
	return binary
}

// TestSwitched checks that each mutant has the same effect behind a switch in the common build and in a separate build.
func TestSwitched(t *testing.T) {
	const lived = `package a

func Live() {
	for x := range 4 {
		for y := range 5 {
			Write(x, y, size(x), float64(y)/4, []string{"a", "b"})
		}
	}
}
`
	drawn, asking := moduleOf(t, map[string]string{"a/a.go": `package a

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

type size int64

type reader interface{ Len() int }

func told(what string, is bool) bool { fmt.Print(what, " "); return is }

func Write(x, y int, s size, f float64, texts []string) {
	if told("a", x < y) && told("b", !(x == 2)) || told("c", y >= 3) && (told("d", f > 0.5) || x <= 1) {
		fmt.Print("first ")
	} else if x != y && true {
		fmt.Print("second ")
	}
	s = s*2 + 7 - size(x)/1
	f += float64(x)/3 + 10/4.0 + 3/2
	wait := 5 * time.Second
	const fixed = 3
	switch fixed + x {
	case 4, 1 + 1:
		wait = 2 * time.Minute
		fmt.Print("moved ")
	}
	var none error
	if err := errors.New("x"); none == nil && none != err {
		texts = append(texts[:len(texts)-1], strings.SplitN("a,b,c", ",", 2)...)
	}
	var r reader = strings.NewReader("four")
	if _, is := r.(*strings.Reader); is == true && r.Len() != 4 {
		fmt.Print("text ")
	}
	if !told("e", x > 1) &&
		x < 3 {
		fmt.Print(s, f, wait, texts, [3]string{1: "middle"}, uint8(200+x), 1<<3, -1)
	}
	func() { x = 9 /* a comment */ }()
	fmt.Println(x, y, s, f, wait, texts, none)
}
`, "a/live.go": lived, "a/a_test.go": `package a

import "testing"

func TestWrite(*testing.T) { Live() }
`})
	drawn = slices.DeleteFunc(drawn, func(d draw) bool { return d.own })
	alone := byThemselves(t, asking, drawn, lived)
	known, err := asking.about("./a")
	must(t, err)
	said := func(binary string, number int, test string) string {
		a := asking.run("./a", question{binary: binary, mutant: number, limit: time.Minute, names: []string{test}})
		out, _, _ := strings.Cut(a.out, "--- FAIL") // durations and addresses differ
		return out
	}
	asIs, switched := said(known.binary, 0, "TestWrite"), 0
	for _, d := range drawn {
		one, other := said(alone, 0, fmt.Sprintf("TestOnly%d", d.number)), said(known.binary, d.number, "TestWrite")
		compare.CheckNamed(t, fmt.Sprintf("line %d: %s", d.at[0], d.what), one, other)
		if one != asIs {
			switched++
		}
	}
	if switched < 60 {
		t.Errorf("of %d mutants, %d are switched and can be seen", len(drawn), switched)
	}
}

// TestPatience checks that the timeout of slow tests allows for their normal duration, and that the
// name of a hanging test is found in the output.
func TestPatience(t *testing.T) {
	of := tests{limit: 10 * time.Minute}
	for took, want := range map[time.Duration]time.Duration{
		0: 20 * time.Second, time.Second: 30 * time.Second, 2 * time.Minute: 10 * time.Minute, 8 * time.Minute: 24 * time.Minute,
	} {
		if got := of.timeout([]test{{took: took / 2}, {took: took - took/2}}); got != want {
			t.Errorf("of %s: %s, want %s", took, got, want)
		}
	}
	out := "panic: test timed out after 1s\n\trunning tests:\n\t\tTestHangs (1s)\n\ngoroutine 1 [running]:\n"
	if found := failure.FindStringSubmatch(out); found == nil || found[1] != "TestHangs" {
		t.Errorf("%q names %q", out, found)
	}
}
