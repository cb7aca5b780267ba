package main

import (
	"cmp"
	"context"
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
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

func main() {
	n := flag.Int("n", 100, "how many mutants to draw")
	seeds := flag.String("seed", "1", "the seed of the draw, or several seeds with commas, each of which draws -n mutants; the same seed and code draw the same mutants")
	limit := flag.Duration("limit", 10*time.Minute, "the time limit for a run of tests; a mutant that exceeds the limit counts as killed")
	own := flag.Bool("own", false, "run only the tests of a mutant's package, and no other packages' tests")
	several := flag.Int("p", 2, "the number of mutants that are tested at the same time")
	flag.Parse()
	if err := run(*n, *seeds, *limit, *own, *several, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// Verdicts on a mutant.
const (
	caught   = "caught"
	lives    = "lives" // survived the tests of its package: tests of other packages follow
	survives = "SURVIVES"
)

func run(n int, seeds string, limit time.Duration, own bool, several int, patterns []string) error {
	root, module, err := module()
	if err != nil {
		return err
	}
	folders, err := product(root, patterns)
	if err != nil {
		return err
	}
	sources, all := map[string][]*source{}, []*mutant{}
	for _, folder := range folders {
		if sources[folder], err = sourcesOf(root, folder); err != nil {
			return err
		}
		for _, s := range sources[folder] {
			all = append(all, s.mutants...)
		}
	}
	fmt.Printf("%d mutants in %d packages; %d mutants are drawn by each of the seeds %s\n", len(all), len(folders), n, seeds)
	compiler, err := newChecker(root, module, folders)
	if err != nil {
		return err
	}
	var drawn []draw
	for word := range strings.SplitSeq(seeds, ",") {
		seed, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return fmt.Errorf("seed %q: %w", word, err)
		}
		more, err := compiler.draw(n, seed, slices.Clone(all), sources)
		if err != nil {
			return err
		}
		drawn = append(drawn, more...)
	}
	if len(drawn) == 0 {
		return errors.New("there was nothing to change")
	}
	tests, err := compiler.tests(root, sources, drawn)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tests.copy.dir) }()
	tests.limit, tests.slow, tests.divided = limit, []string{"./cmd/gitrollout", "./cluster", "./simulate"}, 10*time.Second
	tests.worth = 3 * time.Minute
	found, err := tests.askAll(drawn, own, several)
	if err != nil {
		return err
	}
	fmt.Printf("%d of %d caught (%d %%)\n", found, len(drawn), 100*found/len(drawn))
	return nil
}

// draw is a drawn mutant with its result.
type draw struct {
	*mutant
	label   string // such as "7:12" for the twelfth mutant of seed 7
	verdict string
}

// draw draws n mutants that compile.
func (c *checker) draw(n int, seed uint64, all []*mutant, sources map[string][]*source) (drawn []draw, err error) {
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, m := range all {
		if len(drawn) == n {
			break
		}
		folder := filepath.Dir(m.file)
		is, err := c.program(folder, sources[folder], m)
		if err != nil {
			return nil, err
		}
		if is {
			drawn = append(drawn, draw{mutant: m, label: fmt.Sprintf("%d:%d", seed, len(drawn)+1)})
		}
	}
	return drawn, nil
}

// tests gives the drawn mutants numbers, and prepares the build that has these mutants.
func (c *checker) tests(root string, sources map[string][]*source, drawn []draw) (t tests, err error) {
	t = tests{root: root, drawn: map[string]int{}, knows: &sync.Mutex{}, known: map[string]*asked{}, files: map[string]*source{}}
	var mutants []*mutant
	for _, d := range drawn {
		if !slices.Contains(mutants, d.mutant) { // otherwise an earlier seed has drawn it
			mutants = append(mutants, d.mutant)
			d.mutant.number = len(mutants)
		}
		t.drawn["./"+filepath.Dir(d.file)]++
	}
	for _, files := range sources {
		for _, s := range files {
			t.files[s.name] = s
		}
	}
	t.copy, err = c.weave(root, sources, mutants)
	return t, err
}

// askAll runs the tests of each mutant's package. Without the flag -own, it then runs other packages' tests on the
// surviving mutants.
func (t tests) askAll(drawn []draw, own bool, several int) (found int, err error) {
	err = errors.Join(atOnce(several, len(drawn), func(i int) error {
		return t.ask(&drawn[i], []string{"./" + filepath.Dir(drawn[i].file)})
	})...)
	if err != nil {
		return 0, err
	}
	err = errors.Join(atOnce(several, len(drawn), func(i int) error {
		if drawn[i].verdict != lives || own {
			return nil
		}
		return t.ask(&drawn[i], others(filepath.Dir(drawn[i].file)))
	})...)
	for _, d := range drawn {
		if d.verdict == caught {
			found++
		}
	}
	return found, err
}

// atOnce calls a function for each number below n, and returns the errors. It limits the number of parallel calls.
func atOnce(few, n int, do func(int) error) []error {
	failed := make([]error, n)
	workqueue.ParallelizeUntil(context.Background(), few, n, func(i int) { failed[i] = do(i) })
	return failed
}

// ask checks a mutant with the tests of the packages that match patterns. It sets and prints the mutant's verdict.
func (t tests) ask(d *draw, patterns []string) error {
	began, first := time.Now(), d.verdict == ""
	by, err := "", error(nil)
	if d.verdict, by, err = t.try(d.mutant, patterns); err != nil {
		return err
	}
	if first && d.verdict == survives && len(others(filepath.Dir(d.file))) > 0 {
		d.verdict = lives
	}
	fmt.Printf("%s %-8s %s:%d %s%s %.0fs\n", d.label, d.verdict, d.file, d.at[0], d.what, by, time.Since(began).Seconds())
	return nil
}

// module returns the module's folder and path.
func module() (root, path string, err error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}} {{.Path}}").Output()
	if err != nil {
		return "", "", fmt.Errorf("go list -m: %w", err)
	}
	root, path, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	return root, path, nil
}

// product lists the folders of the packages that match patterns (default: all packages), except packages below internal.
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
	root  string
	copy  *build             // has all mutants
	files map[string]*source // by name
	drawn map[string]int     // number of drawn mutants by package, such as "./git/wire"
	knows *sync.Mutex
	known map[string]*asked // by package
	limit time.Duration
	slow  []string // packages with slow tests: each test always runs separately (learn)
	// The longest duration of an undivided test. A longer test is divided into its subtests if each subtest passes separately.
	divided time.Duration
	// If testing all mutants of a package would take longer than this limit, each test runs separately (learn).
	worth time.Duration
}

// try runs the tests that can detect a mutant, in the packages that match patterns. It stops at the first failure.
func (t tests) try(m *mutant, patterns []string) (verdict, by string, err error) {
	asking, err := product(t.root, patterns)
	if err != nil {
		return "", "", err
	}
	for _, folder := range asking {
		pkg := "./" + folder
		known, err := t.about(pkg)
		if err != nil {
			return "", "", err
		}
		able := known.who(m)
		if len(able) == 0 {
			continue
		}
		q := question{binary: known.binary, mutant: m.number}
		if m.own {
			if q.binary, err = t.byItself(pkg, m); err != nil {
				return "", "", err
			}
			defer func() { _ = os.RemoveAll(filepath.Dir(q.binary)) }()
		}
		if name := t.fails(pkg, q, able); name != "" {
			return caught, " (" + pkg + " " + name + ")", nil
		}
	}
	return survives, "", nil
}

// byItself builds the tests of a package with only one mutant, for a mutant that cannot be switched.
func (t tests) byItself(pkg string, m *mutant) (binary string, err error) {
	one, err := newBuild(t.root)
	if err != nil {
		return "", err
	}
	s := t.files[m.file]
	binary = filepath.Join(one.dir, "test")
	return binary, errors.Join(one.add(s.path, m.apply(s.content)), one.compile(pkg, binary))
}

// quick is the limit for fast tests, which run first.
const quick = 2 * time.Second

// fails returns the first test that fails twice with the mutant, because a test may fail once by chance.
func (t tests) fails(pkg string, q question, able []test) string {
	for _, group := range groups(able) {
		for len(group) > 0 {
			name, failed := t.first(pkg, q, group)
			if !failed {
				break
			}
			at := slices.IndexFunc(group, func(x test) bool { return x.name == name })
			suspects := group
			if at >= 0 {
				suspects = group[at : at+1]
			}
			if _, again := t.first(pkg, q, suspects); again {
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

// groups returns the tests that run together: fast tests, other tests, and the subtests of each divided test.
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

// failure matches the name of a failed or hanging test in the output of a test program.
var failure = regexp.MustCompile(`(?m)^(?:--- FAIL: |\trunning tests:\n\t\t)(\w+)`)

// first returns the name of the test that fails first. A run that exceeds the timeout counts as failed.
func (t tests) first(pkg string, q question, group []test) (name string, failed bool) {
	q.names, q.limit = nil, t.timeout(group)
	for _, x := range group {
		q.names = append(q.names, x.name)
	}
	said := t.run(pkg, q)
	if found := failure.FindStringSubmatch(said.out); found != nil {
		name = found[1]
	}
	return name, said.err != nil
}

// timeout returns the timeout of tests: 20 seconds plus ten times the tests' normal duration, but at most t.limit. If
// three times the normal duration exceeds t.limit, the timeout is three times the normal duration.
func (t tests) timeout(group []test) time.Duration {
	var took time.Duration
	for _, x := range group {
		took += x.took
	}
	return max(min(20*time.Second+10*took, t.limit), 3*took)
}
