package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	n := flag.Int("n", 100, "how many mutants to draw")
	seed := flag.Uint64("seed", 1, "what is drawn: the same seed and code draw the same mutants")
	limit := flag.Duration("limit", 10*time.Minute, "the time that the tests have; a mutant that uses it up is caught")
	flag.Parse()
	if err := run(*n, *seed, *limit, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// verdicts of a mutant.
const (
	caught   = "caught"
	survives = "SURVIVES"
	noGo     = "no program" // the compiler refuses it: another one is drawn
)

func run(n int, seed uint64, limit time.Duration, patterns []string) error {
	root, folders, err := product(patterns)
	if err != nil {
		return err
	}
	var all []mutant
	for _, folder := range folders {
		found, err := mutantsOf(root, folder)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	fmt.Printf("%d mutants in %d packages, of which %d are drawn\n", len(all), len(folders), n)
	tests := tests{root: root, limit: limit, good: map[string]bool{}}
	tried, found := 0, 0
	for _, m := range all {
		if tried == n {
			break
		}
		verdict, by, err := tests.try(m)
		if err != nil {
			return err
		}
		if verdict == noGo {
			continue
		}
		tried++
		if verdict == caught {
			found++
		}
		fmt.Printf("%3d %-8s %s:%d %s%s\n", tried, verdict, m.file, m.line, m.what, by)
	}
	if tried == 0 {
		return errors.New("there was nothing to change")
	}
	fmt.Printf("%d of %d caught (%d %%)\n", found, tried, 100*found/tried)
	return nil
}

// product lists the folders of the packages that patterns name, all by default,
// without what serves tests alone.
func product(patterns []string) (root string, folders []string, err error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", nil, fmt.Errorf("go list -m: %w", err)
	}
	root = strings.TrimSpace(string(module))
	listed, err := exec.Command("go", append([]string{"list", "-f", "{{.Dir}}"}, patterns...)...).Output()
	if err != nil {
		return "", nil, fmt.Errorf("go list: %w", err)
	}
	for dir := range strings.FieldsSeq(string(listed)) {
		folder, err := filepath.Rel(root, dir)
		if err != nil {
			return "", nil, err
		}
		if !strings.HasPrefix(folder, "internal") {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return root, folders, nil
}

// tests runs the tests of packages on mutants.
type tests struct {
	root  string
	limit time.Duration
	good  map[string]bool // those that pass where nothing is changed
}

// try builds the mutant and runs tests until one of them fails.
func (t tests) try(m mutant) (verdict, by string, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := t.overlay(dir, m)
	if err != nil {
		return "", "", err
	}
	folder := filepath.Dir(m.file)
	build := exec.Command("go", "build", "-overlay", overlay, "-o", os.DevNull, "./"+folder)
	build.Dir = t.root
	if build.Run() != nil {
		return noGo, "", nil
	}
	for _, pkg := range append([]string{"./" + folder}, others(folder)...) {
		if !t.good[pkg] {
			if test, failed := t.fails("", pkg); failed {
				return "", "", fmt.Errorf("%s fails without any mutant: a catch by it means nothing", test)
			}
			t.good[pkg] = true
		}
		if test, failed := t.fails(overlay, pkg); failed {
			return caught, " (" + test + ")", nil
		}
	}
	return survives, "", nil
}

// overlay writes the changed file and what tells the compiler to read it.
func (t tests) overlay(dir string, m mutant) (string, error) {
	path := filepath.Join(t.root, m.file)
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, m.apply(content), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, replace, 0o600)
}

// fails reports whether the tests of a package notice the mutant, and the first that does.
func (t tests) fails(overlay, pkg string) (test string, failed bool) {
	ctx, cancel := context.WithTimeout(context.Background(), t.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay="+overlay, "-short", "-failfast", "-timeout="+t.limit.String(), pkg)
	cmd.Dir, cmd.WaitDelay = t.root, 10*time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if cmd.Run() == nil {
		return "", false
	}
	for line := range strings.Lines(out.String()) {
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			return pkg + " " + strings.Fields(name)[0], true
		}
	}
	return pkg, true
}
