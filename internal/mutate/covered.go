package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// asked is what is known of the tests of a package, from a run where nothing is changed.
type asked struct {
	tests  []test
	blocks map[string][]block // all that there are, of each file below the module that the tests import
	killed bool               // whether they start processes that are killed: what these ran is not known
	all    bool               // whether all are asked about each mutant
}

// test is one test function, with what of each file below the module it ran.
type test struct {
	name  string // "TestX", or "TestX/part"
	took  time.Duration
	ran   map[string][]block
	parts []string // its subtests, while they are looked for
}

// block is statements that run one after the other: from a place to a place, as line and column.
type block struct{ from, to [2]int }

// killers are the packages whose tests start workers that render, which are killed when they are no longer needed:
// they cannot say what they ran.
var killers = []string{"./cmd/gitrollout", "./render/worker"}

// passed is a test in the output of all.
var passed = regexp.MustCompile(`(?m)^--- PASS: (\w+) \((.+)s\)`)

// pass lists the tests of a package that pass where nothing is changed.
func (t tests) pass(pkg string) (*asked, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, "test")
	if err := t.build("", "test", "-c", "-o", binary, pkg); err != nil {
		return nil, fmt.Errorf("build the tests of %s: %w", pkg, err)
	}
	known := &asked{all: true}
	if _, err := os.Stat(binary); err != nil {
		return known, nil // it has none
	}
	names, err := t.names(pkg, binary)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, "-test.short", "-test.v", "-test.timeout="+t.limit.String())
	cmd.Dir = filepath.Join(t.root, pkg)
	out, failed := cmd.CombinedOutput()
	for _, found := range passed.FindAllStringSubmatch(string(out), -1) {
		seconds, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			return nil, fmt.Errorf("the time that %s took: %w", found[1], err)
		}
		known.tests = append(known.tests, test{name: found[1], took: time.Duration(seconds * float64(time.Second))})
		names = slices.DeleteFunc(names, func(name string) bool { return name == found[1] })
	}
	if failed != nil {
		fmt.Printf("%s without any mutant: %v, and not asked are %s\n", pkg, failed, strings.Join(names, ", "))
	}
	return known, nil
}

// learn runs each test of a package by itself. One that fails without any mutant is not asked about one.
func (t tests) learn(pkg string) (*asked, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, "test")
	imports := exec.Command("go", "list", "-deps", "-test", "-f", "{{if not .ForTest}}{{.ImportPath}}{{end}}", pkg)
	imports.Dir = t.root
	listed, err := imports.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -deps %s: %w", pkg, err)
	}
	measured := slices.DeleteFunc(strings.Fields(string(listed)), func(path string) bool {
		return !strings.HasPrefix(path, t.module+"/") || strings.HasPrefix(path, t.module+"/internal") || strings.HasSuffix(path, ".test")
	})
	if err := t.build("", "test", "-c", "-cover", "-coverpkg="+strings.Join(measured, ","), "-o", binary, pkg); err != nil {
		return nil, fmt.Errorf("build the tests of %s: %w", pkg, err)
	}
	known := &asked{killed: slices.Contains(killers, pkg)}
	if _, err := os.Stat(binary); err != nil {
		return known, nil // it has none
	}
	names, err := t.names(pkg, binary)
	if err != nil {
		return nil, err
	}
	whole := t.each(known, pkg, binary, names, true)
	for i, x := range whole {
		if x.took > t.divided && len(x.parts) > 1 {
			if parts := t.each(known, pkg, binary, x.parts, false); len(parts) == len(x.parts) {
				whole[i].parts = nil
				known.tests = append(known.tests, parts...)
				continue
			}
		}
		whole[i].parts = nil
		known.tests = append(known.tests, whole[i])
	}
	return known, nil
}

// each runs tests one by one, and leaves out those that fail.
func (t tests) each(known *asked, pkg, binary string, names []string, tell bool) (passed []test) {
	ran, failed := make([]test, len(names)), make([]error, len(names))
	var several sync.WaitGroup
	var once sync.Once
	free := make(chan struct{}, 4) // at once: they wait for servers, most of the time
	for i, name := range names {
		free <- struct{}{}
		several.Go(func() {
			defer func() { <-free }()
			if ran[i], failed[i] = t.alone(known, &once, pkg, binary, name); failed[i] != nil {
				ran[i], failed[i] = t.alone(known, &once, pkg, binary, name) // a busy machine may have kept it too long
			}
		})
	}
	several.Wait()
	for i, err := range failed {
		switch {
		case err == nil:
			passed = append(passed, ran[i])
		case tell:
			fmt.Printf("%s %s fails without any mutant and is not asked: %v\n", pkg, names[i], err)
		}
	}
	return passed
}

// names lists a package's tests, seeds of fuzz tests and examples.
func (t tests) names(pkg, binary string) (names []string, err error) {
	list := exec.Command(binary, "-test.list=^(Test|Fuzz|Example)")
	list.Dir = filepath.Join(t.root, pkg)
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", pkg, err)
	}
	return strings.Fields(string(out)), nil
}

// part is a subtest of the first level in the output of a test.
var part = regexp.MustCompile(`(?m)^    --- PASS: (\w+/\S+) `)

// alone runs one test, and says what it and the processes that it starts have run.
func (t tests) alone(known *asked, once *sync.Once, pkg, binary, name string) (test, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return test{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	data, text := filepath.Join(dir, "data"), filepath.Join(dir, "text")
	if err := os.Mkdir(data, 0o700); err != nil {
		return test{}, err
	}
	began := time.Now()
	out, err := t.run(pkg, binary, t.limit, []string{name}, data)
	took := time.Since(began)
	if err != nil {
		return test{}, fmt.Errorf("%w: %s", err, out)
	}
	if out, err := exec.Command(t.covdata, "textfmt", "-i="+data, "-o="+text).CombinedOutput(); err != nil {
		return test{}, fmt.Errorf("covdata: %w: %s", err, out)
	}
	profile, err := os.ReadFile(text)
	if err != nil {
		return test{}, err
	}
	once.Do(func() { known.blocks = blocks(string(profile), t.module+"/", true) })
	x := test{name: name, took: took, ran: blocks(string(profile), t.module+"/", false)}
	for _, found := range part.FindAllStringSubmatch(out, -1) {
		if is := found[1]; !strings.Contains(name, "/") {
			x.parts = append(x.parts, is)
		}
	}
	return x, nil
}

// run runs tests of a binary by their names: whole ones, or subtests of one. Where there is a folder for it, they write
// there what they cover.
func (t tests) run(pkg, binary string, limit time.Duration, names []string, folders ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second) // the test itself says where it hangs
	defer cancel()
	var parents, parts []string
	for _, name := range names {
		parent, rest, is := strings.Cut(name, "/")
		parents = append(parents, parent)
		if is {
			parts = append(parts, regexp.QuoteMeta(rest))
		}
	}
	pattern := "^(" + strings.Join(slices.Compact(parents), "|") + ")$"
	if len(parts) > 0 {
		pattern += "/^(" + strings.Join(parts, "|") + ")$"
	}
	cmd := exec.CommandContext(ctx, binary, "-test.short", "-test.failfast", "-test.timeout="+limit.String(), "-test.run="+pattern)
	cmd.Dir, cmd.WaitDelay = filepath.Join(t.root, pkg), 10*time.Second
	for _, folder := range folders {
		cmd.Args = append(cmd.Args, "-test.v", "-test.gocoverdir="+folder)
		cmd.Env = append(os.Environ(), "GOCOVERDIR="+folder)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// blocks reads those that ran, or all, from a coverage profile, for each file below the module. Its lines are
// FILE:LINE.COLUMN,LINE.COLUMN STATEMENTS TIMES.
func blocks(profile, module string, all bool) map[string][]block {
	found := map[string][]block{}
	for line := range strings.Lines(profile) {
		file, rest, ok := strings.Cut(strings.TrimPrefix(line, module), ":")
		if !ok || !all && strings.HasSuffix(rest, " 0\n") {
			continue
		}
		var b block
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d", &b.from[0], &b.from[1], &b.to[0], &b.to[1]); err == nil {
			found[file] = append(found[file], b)
		}
	}
	return found
}

func has(blocks []block, at [2]int) bool {
	return slices.ContainsFunc(blocks, func(b block) bool {
		return slices.Compare(b.from[:], at[:]) <= 0 && slices.Compare(at[:], b.to[:]) < 0
	})
}

// who lists the tests that can notice a mutant, the quick ones first: those that ran the statements that it changes.
// Where no block is (the conditions of cases), they ran something of its file.
func (a *asked) who(m mutant) []test {
	known := has(a.blocks[m.file], m.at)
	able := slices.DeleteFunc(slices.Clone(a.tests), func(t test) bool {
		return !a.all && (known && !has(t.ran[m.file], m.at) || len(t.ran[m.file]) == 0)
	})
	if a.killed && (len(able) == 0 || strings.HasPrefix(m.file, "render/")) {
		able = slices.Clone(a.tests)
	}
	slices.SortStableFunc(able, func(x, y test) int { return int(x.took - y.took) })
	return able
}
