package cohort_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// settings has the defaults of the configuration.
var settings = rollout.SharedChanges{Over: 10,
	Cohorts: []rollout.Amount{{Value: 1}, {Value: 10, Percent: true}, {Value: 100, Percent: true}},
	Soak:    10 * time.Minute, Timeout: 4 * time.Hour}

const base = "base/sidecar.yaml"

// fake is a cohort.World with the given members.
type fake struct {
	cohort.Index
	members map[string]cohort.Member
	err     error
}

func (f *fake) ID(file string) string { return "1" + file }

func (f *fake) Member(app string) (cohort.Member, error) { return f.members[app], f.err }

// world returns n apps that read the shared file base. No app has the head's change of base yet.
func world(n int) *fake {
	f := &fake{members: map[string]cohort.Member{}}
	for i := range n {
		name := fmt.Sprintf("app%03d", i)
		f.members[name] = cohort.Member{App: name, Tier: 1, Changed: []string{base}, Unproven: []string{base},
			Since: noon.Add(-time.Hour), Doing: "is Healthy"}
		f.Set(name, []string{"apps/" + name, base})
	}
	return f
}

func (f *fake) set(app string, change func(*cohort.Member)) {
	m := f.members[app]
	change(&m)
	f.members[app] = m
}

// enter gives an app the change. The app's release is not healthy yet.
func (f *fake) enter(app string, at time.Time) {
	f.set(app, func(m *cohort.Member) { m.Changed, m.Entered, m.Doing = nil, at, "is Progressing" })
}

// heal makes an app with the change healthy.
func (f *fake) heal(app string, at time.Time) {
	f.set(app, func(m *cohort.Member) { m.Unproven, m.Since, m.Doing = nil, at, "is Healthy" })
}

func (f *fake) find(t testing.TB, app string) *cohort.Change {
	t.Helper()
	c, err := cohort.Find(settings, f, f.members[app])
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// open returns the apps that may enter now.
func (f *fake) open(t testing.TB, now time.Time) (apps []string) {
	t.Helper()
	var c *cohort.Change
	for _, m := range f.members {
		if c == nil && len(m.Changed) > 0 {
			c = f.find(t, m.App)
		}
	}
	if c == nil {
		return nil
	}
	for _, app := range c.Apps() {
		if c.Entry(app, now).Open {
			apps = append(apps, app)
		}
	}
	return apps
}

// TestCohorts checks the cohorts of 30 apps: one app, then three, then all. Each cohort opens when the earlier cohorts' apps are healthy
// and have soaked.
func TestCohorts(t *testing.T) {
	f, now, entered := world(30), noon, 0
	for _, want := range []int{1, 2, 27, 0} {
		apps := f.open(t, now)
		if len(apps) != want {
			t.Fatalf("after %d apps, %d may enter, want %d", entered, len(apps), want)
		}
		for _, app := range apps {
			f.enter(app, now)
		}
		if more := f.open(t, now); len(more) > 0 {
			t.Errorf("while %d apps are not healthy, %v may enter", len(apps), more)
		}
		for _, app := range apps {
			f.heal(app, now)
		}
		entered += want
		if more := f.open(t, now.Add(settings.Soak-time.Second)); len(more) > 0 {
			t.Errorf("while %d apps soak, %v may enter", len(apps), more)
		}
		now = now.Add(settings.Soak)
	}
}

func of(cohort int) rollout.Place {
	return rollout.Place{File: base, ID: rollout.ShortID("1" + base), Cohort: cohort, Of: 3}
}

// TestEntry checks the text and the due time of each wait, and which app asks a user.
func TestEntry(t *testing.T) {
	first := world(30).find(t, "app000").Apps()[0]
	for name, tt := range map[string]struct {
		change func(*fake)
		after  time.Duration
		app    int // the place among the waiting apps
		want   cohort.Entry
	}{
		"first": {func(*fake) {}, 0, 0, cohort.Entry{Open: true, Place: of(1)}},
		"none has it": {func(*fake) {}, 0, 1, cohort.Entry{Place: of(2),
			Waits: "cohort 2 of 3: 0 of 1 apps have the same change (base/sidecar.yaml)", Hold: "cohort 2 of 3 (base/sidecar.yaml)"}},
		"last cohort": {func(*fake) {}, 0, 29, cohort.Entry{Place: of(3),
			Waits: "cohort 3 of 3: 0 of 3 apps have the same change (base/sidecar.yaml)", Hold: "cohort 3 of 3 (base/sidecar.yaml)"}},
		"not healthy": {func(f *fake) { f.enter(first, noon) }, time.Hour, 0, cohort.Entry{Place: of(2), Due: noon.Add(4 * time.Hour),
			Waits: `cohort 2 of 3: "` + first + `" is Progressing with the same change (base/sidecar.yaml)`,
			Hold:  "cohort 2 of 3 (base/sidecar.yaml)"}},
		"not healthy for long": {func(f *fake) { f.enter(first, noon) }, 4 * time.Hour, 0,
			cohort.Entry{Place: of(2), Due: noon.Add(4 * time.Hour),
				Asks: true, Waits: `cohort 2 of 3: "` + first + `" has not finished within 4h with the same change (base/sidecar.yaml)`}},
		"soaks": {func(f *fake) { f.enter(first, noon); f.heal(first, noon) }, time.Minute, 0, cohort.Entry{Place: of(2),
			Due:   noon.Add(10 * time.Minute),
			Waits: "cohort 2 of 3: earlier apps soak with the same change (base/sidecar.yaml)", Hold: "cohort 2 of 3 (base/sidecar.yaml)"}},
		"rejected": {func(f *fake) {
			f.set(first, func(m *cohort.Member) { m.Rejected, m.Tried, m.Stuck = []string{base}, []string{base}, true })
		}, 0, 1,
			cohort.Entry{Place: of(2), Asks: true, Waits: `cohort 2 of 3: "` + first + `" rejected the same change (base/sidecar.yaml)`}},
		"its own rejection": {func(f *fake) {
			f.set(first, func(m *cohort.Member) { m.Rejected, m.Tried = []string{base}, []string{base} })
		}, 0, 0,
			cohort.Entry{Open: true, Place: of(1)}},
	} {
		f := world(30)
		tt.change(f)
		c := f.find(t, "app000")
		if c == nil {
			c = f.find(t, "app001")
		}
		got := c.Entry(c.Apps()[tt.app], noon.Add(tt.after))
		if tt.want.Hold == "" {
			tt.want.Hold = tt.want.Waits
		}
		compare.CheckNamed(t, name, tt.want, got)
	}
}

// TestDiffers checks which new entries make a waiting app decide again before the former entry is due.
func TestDiffers(t *testing.T) {
	was := cohort.Entry{Hold: "cohort 2 of 3 (base/sidecar.yaml)", Due: noon}
	for name, tt := range map[string]struct {
		change func(e *cohort.Entry)
		want   bool
	}{
		"no change":     {func(*cohort.Entry) {}, false},
		"another text":  {func(e *cohort.Entry) { e.Waits = "cohort 2 of 3" }, false},
		"open":          {func(e *cohort.Entry) { e.Open = true }, true},
		"asks":          {func(e *cohort.Entry) { e.Asks = true }, true},
		"other record":  {func(e *cohort.Entry) { e.Hold = "cohort 3 of 3 (base/sidecar.yaml)" }, true},
		"due earlier":   {func(e *cohort.Entry) { e.Due = noon.Add(-time.Second) }, true},
		"due later":     {func(e *cohort.Entry) { e.Due = noon.Add(time.Second) }, false},
		"not due again": {func(e *cohort.Entry) { e.Due = time.Time{} }, false},
	} {
		e := was
		tt.change(&e)
		compare.CheckNamed(t, name, tt.want, e.Differs(was))
	}
	compare.CheckNamed(t, "due for the first time", true, was.Differs(cohort.Entry{Hold: was.Hold}))
}

// TestOrder checks the order of waiting apps: first an app that had the change before, then the other apps by tier, last a stuck app.
func TestOrder(t *testing.T) {
	f := world(30)
	was := f.find(t, "app000").Apps()
	f.set("app007", func(m *cohort.Member) { m.Tier = 2 })
	f.set("app009", func(m *cohort.Member) { m.Stuck = true })
	f.set("app011", func(m *cohort.Member) { m.Tier, m.Tried, m.Stuck = 3, []string{base}, true })
	is := f.find(t, "app000").Apps()
	if is[0] != "app011" || is[29] != "app009" || is[28] != "app007" {
		t.Errorf("the order is %v", is)
	}
	moved := func(a string) bool { return a == "app007" || a == "app009" || a == "app011" }
	if a, b := slices.DeleteFunc(was, moved), slices.DeleteFunc(is, moved); !slices.Equal(a, b) {
		t.Errorf("the order of the other apps is %v, want %v", b, a)
	}
}

// TestUnshared checks that an app does not wait for a file with at most settings.Over readers.
func TestUnshared(t *testing.T) {
	f := world(10)
	if c := f.find(t, "app000"); c != nil {
		t.Errorf("10 apps share a change: %v", c.Apps())
	}
	f = world(11)
	f.set("app000", func(m *cohort.Member) { m.Changed = []string{"apps/app000"} })
	if c := f.find(t, "app000"); c != nil {
		t.Errorf("an app's own file is a change of %v", c.Apps())
	}
	if c := f.find(t, "app001"); len(c.Apps()) != 10 {
		t.Errorf("apps that wait: %v", c.Apps())
	}
	f.err = errors.New("a commit is being read")
	if _, err := cohort.Find(settings, f, f.members["app001"]); !errors.Is(err, f.err) {
		t.Errorf("error %v, want %v", err, f.err)
	}
}

// TestManyFiles checks that files with common waiting apps form one change, and that an app enters only if each of its files permits it.
func TestManyFiles(t *testing.T) {
	f := world(40)
	for i := range 20 { // these apps also read another base, which also changes
		name := fmt.Sprintf("app%03d", i)
		f.Set(name, []string{"apps/" + name, "base/a.yaml", base})
		f.set(name, func(m *cohort.Member) {
			m.Changed, m.Unproven = []string{"base/a.yaml", base}, []string{"base/a.yaml", base}
		})
	}
	c := f.find(t, "app039")
	if n := len(c.Apps()); n != 40 {
		t.Fatalf("%d apps wait", n)
	}
	for _, app := range f.open(t, noon) {
		f.enter(app, noon)
	}
	for range 200 { // later cohorts of one file never open before the other file's first cohort is healthy
		apps := f.open(t, noon)
		if len(apps) == 0 {
			break
		}
		f.enter(apps[0], noon)
	}
	for _, file := range []string{base, "base/a.yaml"} {
		n := 0
		for _, app := range f.Readers(file) {
			if len(f.members[app].Changed) == 0 {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d apps have %s, want 1", n, file)
		}
	}
}

// walk lets random events happen to apps that share a bad change, and returns how many apps ever had the change. An app with the change
// never becomes healthy. The function mutate changes each member before a decision.
func walk(t *testing.T, seed uint64, mutate func(*cohort.Member)) (most int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	f, ran := world(11+rng.IntN(40)), map[string]bool{}
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range f.members {
			if !yield(name) {
				return
			}
		}
	})
	now := noon
	for range 200 {
		now = now.Add(time.Duration(rng.IntN(3600)) * time.Second)
		name := names[rng.IntN(len(names))]
		switch m := f.members[name]; {
		case len(m.Changed) == 0 && rng.IntN(2) == 0: // the app rejects the change
			f.set(name, func(m *cohort.Member) {
				m.Changed, m.Unproven, m.Rejected, m.Tried, m.Stuck = []string{base}, []string{base}, []string{base}, []string{base}, true
			})
		case len(m.Changed) == 0: // a push to the app supersedes the release
			f.set(name, func(m *cohort.Member) { m.Changed, m.Tried = []string{base}, []string{base} })
		case len(m.Tried) == 0 && rng.IntN(3) == 0:
			f.set(name, func(m *cohort.Member) { m.Stuck = !m.Stuck }) // a freeze of the app begins or ends
		case len(m.Rejected) > 0:
			f.set(name, func(m *cohort.Member) { m.Stuck = false }) // a push to the app is a new version
		}
		seen := &fake{Index: f.Index, members: map[string]cohort.Member{}}
		for name, m := range f.members {
			mutate(&m)
			seen.members[name] = m
		}
		for _, app := range seen.open(t, now) {
			if !f.members[app].Stuck && rng.IntN(3) > 0 {
				f.enter(app, now)
				ran[app] = true
			}
		}
	}
	return len(ran)
}

// TestBadChangeStays checks that at most one app, the first cohort, gets a bad change. The test notices a mutation that counts every app
// with the change as healthy.
func TestBadChangeStays(t *testing.T) {
	for seed := range uint64(150) {
		if most := walk(t, seed, func(*cohort.Member) {}); most > 1 {
			t.Fatalf("seed %d: %d apps had the bad change", seed, most)
		}
	}
	seed := uint64(0)
	for walk(t, seed, func(m *cohort.Member) { m.Unproven = nil }) <= 1 {
		if seed++; seed == 50 {
			t.Fatal("50 seeds do not notice that an app counts as healthy at another content")
		}
	}
}

// TestIndex checks the readers of files after random changes of apps.
func TestIndex(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	var x cohort.Index
	want := map[string][]string{}
	for range 2000 {
		app := fmt.Sprint("app", rng.IntN(9))
		var files []string
		for i := range 6 {
			if rng.IntN(2) == 0 {
				files = append(files, fmt.Sprint("f", i))
			}
		}
		if changed := x.Set(app, files); changed == slices.Equal(want[app], files) {
			t.Fatalf("Set of %s from %v to %v returns %t", app, want[app], files, changed)
		}
		want[app] = files
		for i := range 6 {
			file := fmt.Sprint("f", i)
			n := 0
			for _, has := range want {
				n += len(has) - len(slices.DeleteFunc(slices.Clone(has), func(f string) bool { return f == file }))
			}
			if got := x.Readers(file); len(got) != n {
				t.Fatalf("%s has the readers %v, want %d", file, got, n)
			}
		}
	}
}

// BenchmarkFind measures Find among 10,000 apps after a change of one app's own file or of a base.
func BenchmarkFind(b *testing.B) {
	f := world(10_000)
	own := f.members["app5000"]
	own.Changed = []string{"apps/app5000"}
	b.Run("own", func(b *testing.B) {
		for b.Loop() {
			_, _ = cohort.Find(settings, f, own)
		}
	})
	b.Run("base", func(b *testing.B) {
		for b.Loop() {
			_, _ = cohort.Find(settings, f, f.members["app5000"])
		}
	})
}
