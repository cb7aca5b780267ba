package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// asked is what is known of the tests of a package, from a run of each of them where nothing is changed.
type asked struct {
	tests  []test
	blocks map[string][]block // all that there are, of each file below the module that the tests import
	killed bool               // whether they start processes that are killed: what these ran is not known
}

// test is one test function, with what of each file below the module it ran.
type test struct {
	name string
	took time.Duration
	ran  map[string][]block
}

// block is statements that run one after the other: from a place to a place, as line and column.
type block struct{ from, to [2]int }

// killers are the packages whose tests start workers that render, which are killed when they are no longer needed:
// they cannot say what they ran.
var killers = []string{"./cmd/gitrollout", "./render/worker"}

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
	names := t.names(pkg, binary)
	ran, failed := make([]test, len(names)), make([]error, len(names))
	var several sync.WaitGroup
	var once sync.Once
	free := make(chan struct{}, 4) // at once: they wait for servers, most of the time
	for i, name := range names {
		free <- struct{}{}
		several.Go(func() {
			defer func() { <-free }()
			profile, took, err := t.alone(filepath.Join(dir, name), pkg, binary, name)
			if err != nil { // a machine that is busy may have kept it too long
				profile, took, err = t.alone(filepath.Join(dir, name), pkg, binary, name)
			}
			if failed[i] = err; err == nil {
				ran[i] = test{name, took, blocks(profile, t.module+"/", false)}
				once.Do(func() { known.blocks = blocks(profile, t.module+"/", true) })
			}
		})
	}
	several.Wait()
	for i, err := range failed {
		if err != nil {
			fmt.Printf("%s %s fails without any mutant and is not asked: %v\n", pkg, names[i], err)
			continue
		}
		known.tests = append(known.tests, ran[i])
	}
	return known, nil
}

// names lists a package's tests, seeds of fuzz tests and examples.
func (t tests) names(pkg, binary string) (names []string) {
	list := exec.Command(binary, "-test.list=^(Test|Fuzz|Example)")
	list.Dir = filepath.Join(t.root, pkg)
	out, _ := list.Output()
	return strings.Fields(string(out))
}

// alone runs one test, and says what it and the processes that it starts have run.
func (t tests) alone(dir, pkg, binary, name string) (profile string, took time.Duration, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", 0, err
	}
	began := time.Now()
	out, err := t.run(pkg, binary, t.limit, []string{name}, "-test.gocoverdir="+dir)
	took = time.Since(began)
	if err != nil {
		return "", 0, fmt.Errorf("%w: %s", err, out)
	}
	text := dir + ".txt"
	if out, err := exec.Command(t.covdata, "textfmt", "-i="+dir, "-o="+text).CombinedOutput(); err != nil {
		return "", 0, fmt.Errorf("covdata: %w: %s", err, out)
	}
	content, err := os.ReadFile(text)
	return string(content), took, err
}

// run runs tests of a binary by their names.
func (t tests) run(pkg, binary string, limit time.Duration, names []string, flags ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second) // the test itself says where it hangs
	defer cancel()
	pattern := "^(" + strings.Join(names, "|") + ")$"
	cmd := exec.CommandContext(ctx, binary, append(flags, "-test.short", "-test.failfast", "-test.timeout="+limit.String(), "-test.run="+pattern)...)
	cmd.Dir, cmd.WaitDelay = filepath.Join(t.root, pkg), 10*time.Second
	if len(flags) > 0 {
		cmd.Env = append(os.Environ(), "GOCOVERDIR="+strings.TrimPrefix(flags[0], "-test.gocoverdir="))
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
		return known && !has(t.ran[m.file], m.at) || len(t.ran[m.file]) == 0
	})
	if a.killed && (len(able) == 0 || strings.HasPrefix(m.file, "render/")) {
		able = slices.Clone(a.tests)
	}
	slices.SortStableFunc(able, func(x, y test) int { return int(x.took - y.took) })
	return able
}
