package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/internal/mutate/on"
)

// asked has the tests of a package, with data from a run in which no mutant is enabled.
type asked struct {
	tests  []test
	binary string
}

// test is a test function or a subtest, with the mutants that the test executed.
type test struct {
	name  string // "TestX", or "TestX/part"
	took  time.Duration
	ran   map[int]bool
	parts []string // names of the subtests, which learn may run separately
}

// about returns the tests of a package. The first call for a package builds the tests and runs them without a mutant.
func (t tests) about(pkg string) (known *asked, err error) {
	t.knows.Lock()
	defer t.knows.Unlock()
	if t.known[pkg] == nil {
		t.known[pkg], err = t.find(pkg)
	}
	return t.known[pkg], err
}

func (t tests) find(pkg string) (*asked, error) {
	known := &asked{binary: filepath.Join(t.copy.dir, strings.ReplaceAll(pkg[2:], "/", "_")+".test")}
	if err := t.copy.compile(pkg, known.binary); err != nil {
		return nil, err
	}
	if _, err := os.Stat(known.binary); err != nil {
		return known, nil // the package has no tests
	}
	names, err := t.names(pkg, known.binary)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(t.slow, pkg) {
		began := time.Now()
		known.tests = t.pass(pkg, known.binary, names)
		if len(known.tests) == 0 || time.Since(began)*time.Duration(t.drawn[pkg]) < t.worth {
			return known, nil
		}
	}
	known.tests = t.learn(pkg, known.binary, names)
	return known, nil
}

// passed matches a passed test in the output of all tests.
var passed = regexp.MustCompile(`(?m)^--- PASS: (\w+) \((.+)s\)`)

// pass runs all tests of a package together, with no mutant enabled. For each passing test, it records all mutants that
// the whole run executed.
func (t tests) pass(pkg, binary string, names []string) (found []test) {
	missing := slices.Clone(names)
	all := t.run(pkg, question{binary: binary, mutant: on.Noting, limit: t.limit, names: names, all: true})
	for _, line := range passed.FindAllStringSubmatch(all.out, -1) {
		seconds, _ := strconv.ParseFloat(line[2], 64)
		found = append(found, test{name: line[1], took: time.Duration(seconds * float64(time.Second)), ran: all.ran})
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == line[1] })
	}
	if all.err != nil {
		fmt.Printf("%s without a mutant: %v; these tests are not used: %s\n", pkg, all.err, strings.Join(missing, ", "))
	}
	return found
}

// learn runs each test of a package separately, and divides long tests into subtests. It skips a test that fails without a mutant.
func (t tests) learn(pkg, binary string, names []string) (found []test) {
	for _, x := range t.each(pkg, binary, names, true) {
		if x.took > t.divided && len(x.parts) > 1 {
			if parts := t.each(pkg, binary, x.parts, false); len(parts) == len(x.parts) {
				found = append(found, parts...)
				continue
			}
		}
		x.parts = nil
		found = append(found, x)
	}
	return found
}

// each returns the passing tests. It runs each test separately.
func (t tests) each(pkg, binary string, names []string, tell bool) (passed []test) {
	ran := make([]test, len(names))
	failed := atOnce(4, len(names), func(i int) (err error) {
		if ran[i], err = t.alone(pkg, binary, names[i]); err != nil {
			ran[i], err = t.alone(pkg, binary, names[i]) // try again: a busy machine may have caused a timeout
		}
		return err
	})
	for i, err := range failed {
		switch {
		case err == nil:
			passed = append(passed, ran[i])
		case tell:
			fmt.Printf("%s %s fails without a mutant and is skipped: %v\n", pkg, names[i], err)
		}
	}
	return passed
}

// names lists the names of a package's tests, fuzz tests and examples. Fuzz tests run only with their seeds.
func (t tests) names(pkg, binary string) (names []string, err error) {
	list := exec.Command(binary, "-test.list=^(Test|Fuzz|Example)")
	list.Dir = filepath.Join(t.root, pkg)
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", pkg, err)
	}
	return strings.Fields(string(out)), nil
}

// part matches the result of a test's direct subtest in the output of the test.
var part = regexp.MustCompile(`(?m)^    --- PASS: (\w+/\S+) `)

// alone runs one test, and returns the mutants that the test and its child processes executed.
func (t tests) alone(pkg, binary, name string) (test, error) {
	began := time.Now()
	one := t.run(pkg, question{binary: binary, mutant: on.Noting, limit: t.limit, names: []string{name}, all: true})
	if one.err != nil {
		return test{}, fmt.Errorf("%w: %s", one.err, one.out)
	}
	x := test{name: name, took: time.Since(began), ran: one.ran}
	for _, found := range part.FindAllStringSubmatch(one.out, -1) {
		if !strings.Contains(name, "/") {
			x.parts = append(x.parts, found[1])
		}
	}
	return x, nil
}

// question is a request to run a package's tests.
type question struct {
	binary string
	mutant int // number of the enabled mutant
	limit  time.Duration
	names  []string // names of tests, or of subtests of a single test
	all    bool     // continue after a failure, and print all results
}

// answer is the result of a run of tests.
type answer struct {
	out string
	ran map[int]bool // the executed mutants, if they are recorded
	err error
}

// memory limits the address space of a test's process in KiB, because a mutant may allocate memory in an endless loop.
const memory = 8 << 20

// run runs tests. It links the test program into a new folder, beside a file with the number of the enabled mutant.
func (t tests) run(pkg string, q question) (a answer) {
	dir, err := os.MkdirTemp(t.copy.dir, "run")
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "test")
	chosen := os.WriteFile(filepath.Join(dir, on.Chosen), []byte(strconv.Itoa(q.mutant)), 0o600)
	if err := errors.Join(os.Link(q.binary, program), chosen); err != nil {
		return answer{err: err}
	}
	// The test program's own timeout is shorter than this timeout, so that the program can print where a test hangs.
	ctx, cancel := context.WithTimeout(context.Background(), q.limit+10*time.Second)
	defer cancel()
	flags := []string{"-test.short", "-test.timeout=" + q.limit.String(), "-test.run=" + pattern(q.names)}
	if flags = append(flags, "-test.failfast"); q.all {
		flags[len(flags)-1] = "-test.v"
	}
	bounded := []string{"-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, memory), program}
	cmd := exec.CommandContext(ctx, "sh", append(bounded, flags...)...)
	cmd.Dir, cmd.WaitDelay = filepath.Join(t.root, pkg), 10*time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	a.err = cmd.Run()
	a.out, a.ran = out.String(), map[int]bool{}
	noted, _ := os.ReadFile(filepath.Join(dir, on.Ran)) // missing if no mutant was executed
	for line := range strings.FieldsSeq(string(noted)) {
		n, err := strconv.Atoi(line)
		a.ran[n], a.err = true, errors.Join(a.err, err)
	}
	return a
}

// pattern returns the pattern for -test.run that selects the named tests.
func pattern(names []string) string {
	parents, parts := map[string]bool{}, []string{}
	for _, name := range names {
		parent, rest, is := strings.Cut(name, "/")
		parents[parent] = true
		if is {
			parts = append(parts, regexp.QuoteMeta(rest))
		}
	}
	pattern := "^(" + strings.Join(slices.Sorted(maps.Keys(parents)), "|") + ")$"
	if len(parts) > 0 {
		pattern += "/^(" + strings.Join(parts, "|") + ")$"
	}
	return pattern
}

// who returns the tests that execute a mutant, the fastest first. Other tests cannot detect the mutant.
func (a *asked) who(m *mutant) []test {
	able := slices.DeleteFunc(slices.Clone(a.tests), func(t test) bool { return !t.ran[m.number] })
	slices.SortStableFunc(able, func(x, y test) int { return int(x.took - y.took) })
	return able
}
