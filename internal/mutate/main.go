package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	n := flag.Int("n", 100, "how many mutants to draw")
	seeds := flag.String("seed", "1", "what is drawn, several with commas, -n by each: the same seed and code draw the same mutants")
	limit := flag.Duration("limit", 10*time.Minute, "the time that the tests have; a mutant that uses it up is caught")
	flag.Parse()
	if err := run(*n, *seeds, *limit, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// verdicts of a mutant.
const (
	caught   = "caught"
	lives    = "lives" // through the tests of its package: others are asked later
	survives = "SURVIVES"
	noGo     = "no program" // the compiler refuses it: another one is drawn
)

func run(n int, seeds string, limit time.Duration, patterns []string) error {
	root, module, err := module()
	if err != nil {
		return err
	}
	folders, err := product(root, patterns)
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
	fmt.Printf("%d mutants in %d packages, of which %d are drawn by each of the seeds %s\n", len(all), len(folders), n, seeds)
	covdata, err := exec.Command("go", "tool", "-n", "covdata").Output()
	if err != nil {
		return fmt.Errorf("go tool -n covdata: %w", err)
	}
	slow := []string{"./cmd/gitrollout", "./cluster", "./simulate"}
	tests := tests{root, module, strings.TrimSpace(string(covdata)), limit, slow, 10 * time.Second, map[string]*asked{}}
	var drawn []draw
	for word := range strings.SplitSeq(seeds, ",") {
		seed, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return fmt.Errorf("seed %q: %w", word, err)
		}
		more, err := tests.draw(n, seed, slices.Clone(all))
		if err != nil {
			return err
		}
		drawn = append(drawn, more...)
	}
	if len(drawn) == 0 {
		return errors.New("there was nothing to change")
	}
	found := 0
	for _, d := range drawn {
		if d.verdict == lives {
			if err := tests.ask(&d, others(filepath.Dir(d.file))); err != nil {
				return err
			}
		}
		if d.verdict == caught {
			found++
		}
	}
	fmt.Printf("%d of %d caught (%d %%)\n", found, len(drawn), 100*found/len(drawn))
	return nil
}

// draw is a mutant that was drawn, and what became of it.
type draw struct {
	mutant
	number  string // "7:12", the twelfth of seed 7
	verdict string
}

// draw tries n mutants of all on the tests of their packages.
func (t tests) draw(n int, seed uint64, all []mutant) (drawn []draw, err error) {
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, m := range all {
		if len(drawn) == n {
			break
		}
		d := draw{mutant: m, number: fmt.Sprintf("%d:%d", seed, len(drawn)+1)}
		if err := t.ask(&d, []string{"./" + filepath.Dir(m.file)}); err != nil {
			return nil, err
		}
		if d.verdict != noGo {
			drawn = append(drawn, d)
		}
	}
	return drawn, nil
}

// ask has the tests of packages tried on a mutant, and says what they say.
func (t tests) ask(d *draw, patterns []string) error {
	began, first := time.Now(), d.verdict == ""
	by, err := "", error(nil)
	if d.verdict, by, err = t.try(d.mutant, patterns); err != nil || d.verdict == noGo {
		return err
	}
	if first && d.verdict == survives && len(others(filepath.Dir(d.file))) > 0 {
		d.verdict = lives
	}
	fmt.Printf("%s %-8s %s:%d %s%s %.0fs\n", d.number, d.verdict, d.file, d.at[0], d.what, by, time.Since(began).Seconds())
	return nil
}

// module says where the module is, and its path.
func module() (root, path string, err error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}} {{.Path}}").Output()
	if err != nil {
		return "", "", fmt.Errorf("go list -m: %w", err)
	}
	root, path, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	return root, path, nil
}

// product lists the folders of the packages that patterns name, all by default,
// without what serves tests alone.
func product(root string, patterns []string) (folders []string, err error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	list := exec.Command("go", append([]string{"list", "-f", "{{.Dir}}"}, patterns...)...)
	list.Dir = root
	listed, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for dir := range strings.FieldsSeq(string(listed)) {
		folder, err := filepath.Rel(root, dir)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(folder, "internal") {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return folders, nil
}

// tests runs the tests of packages on mutants.
type tests struct {
	root, module string
	covdata      string // the program that reads coverage
	limit        time.Duration
	slow         []string // the packages whose tests take so long that it is worth knowing what each of them runs
	// What a test may take that is asked as a whole. One that takes longer is asked by its subtests, where each of them
	// passes by itself.
	divided time.Duration
	known   map[string]*asked // of packages, as "./git/wire"
}

// try builds the mutant and runs the tests of packages that can notice it until one of them fails.
func (t tests) try(m mutant, patterns []string) (verdict, by string, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := t.overlay(dir, m)
	if err != nil {
		return "", "", err
	}
	if t.build(overlay, "list", "-export", "./"+filepath.Dir(m.file)) != nil { // compiles, and links nothing
		return noGo, "", nil
	}
	asking, err := product(t.root, patterns)
	if err != nil {
		return "", "", err
	}
	for _, folder := range asking {
		pkg := "./" + folder
		if t.known[pkg] == nil {
			about := t.pass
			if slices.Contains(t.slow, pkg) {
				about = t.learn
			}
			if t.known[pkg], err = about(pkg); err != nil {
				return "", "", err
			}
		}
		able := t.known[pkg].who(m)
		if len(able) == 0 {
			continue
		}
		binary := filepath.Join(dir, "test")
		if t.build(overlay, "test", "-c", "-o", binary, pkg) != nil {
			return noGo, "", nil
		}
		if name := t.fails(pkg, binary, able); name != "" {
			return caught, " (" + pkg + " " + name + ")", nil
		}
	}
	return survives, "", nil
}

// build calls go test -c, or go list -export. Go's own linker takes a fifth of the time of the system's, which Go would take for
// tests that import the package plugin.
func (t tests) build(overlay, command string, arguments ...string) error {
	flags := []string{command, "-overlay=" + overlay, "-ldflags=-w -linkmode=internal"}
	cmd := exec.Command("go", append(flags, arguments...)...)
	cmd.Dir = t.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
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

// quick is what a test may take that is asked before the others.
const quick = 2 * time.Second

// fails names the first test that fails with the mutant, and fails again: on a busy machine one may fail by chance.
func (t tests) fails(pkg, binary string, able []test) string {
	for _, group := range groups(able) {
		for len(group) > 0 {
			name, failed := t.first(pkg, binary, group)
			if !failed {
				break
			}
			at := slices.IndexFunc(group, func(x test) bool { return x.name == name })
			suspects := group
			if at >= 0 {
				suspects = group[at : at+1]
			}
			if _, again := t.first(pkg, binary, suspects); again {
				return cmp.Or(name, "its process ends")
			}
			if at < 0 {
				break
			}
			group = slices.Delete(slices.Clone(group), at, at+1)
		}
	}
	return ""
}

// groups are tests that are asked at once: the quick ones, the others, and the subtests of each that is divided.
func groups(able []test) (all [][]test) {
	at := map[string]int{}
	for _, x := range able {
		parent, _, is := strings.Cut(x.name, "/")
		group := parent
		if !is {
			group = fmt.Sprintf("quick: %t", x.took < quick)
		}
		if _, known := at[group]; !known {
			at[group], all = len(all), append(all, nil)
		}
		all[at[group]] = append(all[at[group]], x)
	}
	return all
}

// failure is what the output of a test that failed, or hung, has of its name.
var failure = regexp.MustCompile(`(?m)^(?:--- FAIL: |running tests:\n\t)(\w+)`)

// first reports whether one of the tests fails, and which. They have ten times what they took where nothing was
// changed, and a minute: a mutant that uses this up is noticed.
func (t tests) first(pkg, binary string, group []test) (name string, failed bool) {
	names, limit := []string{}, time.Minute
	for _, x := range group {
		names, limit = append(names, x.name), limit+10*x.took
	}
	out, err := t.run(pkg, binary, min(limit, t.limit), names)
	if found := failure.FindStringSubmatch(out); found != nil {
		name = found[1]
	}
	return name, err != nil
}
