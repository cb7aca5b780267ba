package source_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// baseApps has apps that share a base, and the apps' records.
type baseApps struct {
	cohort.Index
	commits map[string]commit
	records map[string]rollout.State
	errs    map[string]error // of heads
	failed  error            // of Tree
	reads   bool
	entries *source.Entries
	made    map[string]*rollout.Render
	apps    []rollout.App
}

// newFleet returns apps that are healthy at the commit "one". The commit "two" has another base.
func newFleet(t testing.TB, n int) *baseApps {
	t.Helper()
	f := &baseApps{commits: map[string]commit{}, records: map[string]rollout.State{}, errs: map[string]error{},
		made: map[string]*rollout.Render{}}
	files := map[string]string{config: configOf("- {path: apps/*}\n"), "base/web.yaml": "v1"}
	for i := range n {
		files[fmt.Sprintf("apps/a%04d/kustomization.yaml", i)] = "resources: []\n"
	}
	f.commits["one"] = commit{"one", files}
	f.head(t, "two", map[string]string{"base/web.yaml": "v2"})
	for _, a := range f.apps {
		f.records[a.Name] = rollout.State{App: a.Name, Phase: rollout.Healthy, Source: "one",
			Stable: &rollout.Release{Hash: f.hashOf(a.Name, "one"), Commit: "one", Since: noon.Add(-time.Hour)}}
	}
	return f
}

// head edits the commit "one" and makes the result the head.
func (f *baseApps) head(t testing.TB, id string, edits map[string]string) {
	t.Helper()
	f.commits[id] = f.commits["one"].with(id, edits)
	b := open(t, f.commits[id], nil)
	f.apps = b.Apps
	for _, a := range f.apps {
		f.Set(a.Name, []string{a.Path + "/kustomization.yaml", "base/web.yaml"})
	}
	defer func() { f.entries.Forget() }()
	f.entries = &source.Entries{
		Branch: b, Record: func(app string) rollout.State { return f.records[app] },
		Head:  func(app rollout.App) (strategies.Head, bool) { return f.headOf(app.Name), true },
		Files: f.Files, ReadBy: f.Readers, Reads: func() bool { return f.reads },
		Render: func(app rollout.App, commit string) (*rollout.Render, error) { return f.render(app.Name, commit), nil },
		Tree:   func(commit string) (rollout.Tree, error) { return f.commits[commit], f.failed },
	}
}

func (f *baseApps) hashOf(app, commit string) rollout.Hash {
	c := f.commits[commit]
	return rollout.Hash("h1-" + rollout.Digest([]byte(c.files["base/web.yaml"]+c.files["apps/"+app+"/kustomization.yaml"]), 5))
}

func (f *baseApps) render(app, commit string) *rollout.Render {
	if r := f.made[app+commit]; r != nil {
		return r
	}
	w := rollout.Workload{Namespace: "default", Name: app}
	hash := f.hashOf(app, commit)
	r := &rollout.Render{Commit: rollout.Commit{ID: commit, Author: "Ann"}, Specs: []rollout.Spec{{Workload: w}},
		Templates: map[rollout.Workload]rollout.Hash{w: hash}, Digest: string(hash)}
	f.made[app+commit] = r
	return r
}

func (f *baseApps) headOf(app string) strategies.Head {
	if err := f.errs[app]; err != nil {
		return strategies.Head{Err: err}
	}
	r := f.render(app, f.entries.Branch.Tree.Commit().ID)
	return strategies.Head{Commit: r.Commit, Render: r}
}

// entry returns an app's present entry, or nil if the head needs no entry.
func (f *baseApps) entry(t testing.TB, app string, p *rollout.Promotion) *cohort.Entry {
	t.Helper()
	f.entries.Forget()
	i := 0
	for f.apps[i].Name != app {
		i++
	}
	e, err := f.entries.Of(f.apps[i], f.records[app], f.headOf(app), p, noon)
	must(t, err)
	return e
}

// last returns an app of the last cohort.
func (f *baseApps) last(t testing.TB) string {
	t.Helper()
	for _, a := range f.apps {
		if e := f.entry(t, a.Name, nil); e != nil && e.Cohort == 3 {
			return a.Name
		}
	}
	t.Fatal("no app is in the last cohort")
	return ""
}

// TestEntriesOf checks which heads wait for a cohort. Rollbacks, verified versions and content that ran before never wait. If a commit
// reverts a release in flight, only the commit's other content waits: see strategies.TestEntryOfARevert.
func TestEntriesOf(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(f *baseApps, s *rollout.State, app string)
		waits  bool
	}{
		"a shared change": {func(*baseApps, *rollout.State, string) {}, true},
		"a release in flight": {func(f *baseApps, s *rollout.State, _ string) {
			s.Phase, s.Release = rollout.Progressing, &rollout.Release{Hash: "h1-other", Commit: "one"}
		}, true},
		"a first deployment": {func(_ *baseApps, s *rollout.State, _ string) { *s = rollout.State{} }, false},
		"a first deployment in flight": {func(_ *baseApps, s *rollout.State, _ string) {
			s.Phase, s.Release, s.Stable = rollout.Progressing, s.Stable, nil
		}, false},
		"a revert": {func(f *baseApps, s *rollout.State, app string) {
			s.Phase, s.Release = rollout.Progressing, &rollout.Release{Hash: "h1-bad", Commit: "one"}
			s.Stable = &rollout.Release{Hash: f.hashOf(app, "two"), Commit: "zero"}
		}, true},
		"a verified version": {func(f *baseApps, s *rollout.State, app string) {
			s.Verified = []rollout.Hash{s.Stable.Hash, f.hashOf(app, "two")}
		}, false},
		"a verified version with a new object": {func(f *baseApps, s *rollout.State, app string) {
			s.Verified = []rollout.Hash{s.Stable.Hash, f.hashOf(app, "two")}
			f.render(app, "two").Objects = []rollout.Object{{"kind": "ConfigMap"}}
		}, true},
		"the stable version with another file": {func(f *baseApps, s *rollout.State, app string) {
			s.Stable.Hash, s.Verified = f.hashOf(app, "two"), []rollout.Hash{f.hashOf(app, "two")}
		}, true},
		"content that ran before": {func(f *baseApps, s *rollout.State, app string) {
			f.commits["zero"] = f.commits["two"].with("zero", map[string]string{"apps/" + app + "/kustomization.yaml": "namePrefix: a\n"})
			s.Entered = &rollout.Entered{At: noon, Commit: "one", Was: "zero"}
		}, false},
		"a rejected version": {func(f *baseApps, s *rollout.State, app string) {
			s.Rejected = []rollout.Rejection{{Hash: f.hashOf(app, "two"), Commit: "two"}}
		}, false},
		"the commit of the head": {func(_ *baseApps, s *rollout.State, _ string) { s.Source = "two" }, false},
		"off":                    {func(f *baseApps, _ *rollout.State, _ string) { f.entries.Branch.Config.Shared.Over = 0 }, false},
		"few apps":               {func(f *baseApps, _ *rollout.State, _ string) { f.entries.Branch.Config.Shared.Over = 12 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 12)
			app := f.last(t)
			s := f.records[app]
			stable := *s.Stable
			s.Stable = &stable
			tt.change(f, &s, app)
			f.records[app] = s
			e := f.entry(t, app, nil)
			compare.Check(t, tt.waits, e != nil && !e.Open)
		})
	}
}

// TestEntriesOfPromotions checks that a promotion with through: entry, a full promotion and an abort let an app take the change. A hold, a
// used promotion file, and a promotion of a step or of another version do not.
func TestEntriesOfPromotions(t *testing.T) {
	f := newFleet(t, 12)
	app := f.last(t)
	version := f.hashOf(app, "two")
	for name, tt := range map[string]struct {
		p    rollout.Promotion
		open bool
	}{
		"entry":      {rollout.Promotion{Release: version, Through: rollout.ThroughEntry, Decision: rollout.Promote}, true},
		"full":       {rollout.Promotion{Release: version, Through: rollout.Full, Decision: rollout.Promote}, true},
		"abort":      {rollout.Promotion{Release: version, Decision: rollout.Abort}, true},
		"a step":     {rollout.Promotion{Release: version, Through: "1", Decision: rollout.Promote}, false},
		"another":    {rollout.Promotion{Release: "h1-1", Through: rollout.ThroughEntry, Decision: rollout.Promote}, false},
		"a hold":     {rollout.Promotion{Release: version, Decision: rollout.Hold}, false},
		"a used one": {rollout.Promotion{Release: version, Through: rollout.ThroughEntry, Decision: rollout.Promote, Digest: "spent"}, false},
		"a new one":  {rollout.Promotion{Release: version, Through: rollout.ThroughEntry, Decision: rollout.Promote, Digest: "new"}, true},
	} {
		s := f.records[app]
		s.Spent = "spent"
		f.records[app] = s
		if e := f.entry(t, app, &tt.p); e == nil || e.Open != tt.open || e.Release != version {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestEntriesOfAborts checks that an abort does not admit a change that has no new version, because the abort has no version to reject.
func TestEntriesOfAborts(t *testing.T) {
	f := newFleet(t, 12)
	app := f.last(t)
	s := f.records[app]
	stable := *s.Stable
	stable.Hash, s.Stable = f.hashOf(app, "two"), &stable
	f.records[app] = s
	if e := f.entry(t, app, &rollout.Promotion{Release: stable.Hash, Decision: rollout.Abort}); e == nil || e.Open {
		t.Errorf("entry %+v", e)
	}
}

// TestEntriesOfOthers checks how the other apps' records affect a waiting app.
func TestEntriesOfOthers(t *testing.T) {
	in := func(s *rollout.State, phase rollout.Phase) {
		s.Phase, s.Source = phase, "two"
		s.Release = &rollout.Release{Hash: "h1-new", Commit: "two", Since: noon.Add(-time.Minute)}
	}
	for name, tt := range map[string]struct {
		change func(f *baseApps, s *rollout.State, app string)
		want   string // part of what an app in the last cohort waits for
	}{
		"none has it": {func(*baseApps, *rollout.State, string) {}, "0 of 2 apps have the same change"},
		"in flight":   {func(_ *baseApps, s *rollout.State, _ string) { in(s, rollout.Paused) }, "is Paused with the same change"},
		"in flight and at an older commit": {func(_ *baseApps, s *rollout.State, _ string) {
			in(s, rollout.Progressing)
			s.Source, s.Release.Commit = "one", "one"
		}, "0 of 2 apps have"},
		"unhealthy": {func(_ *baseApps, s *rollout.State, _ string) { s.Source, s.Unhealthy = "two", "no pod is ready" }, "is Degraded with"},
		"healthy":   {func(_ *baseApps, s *rollout.State, _ string) { s.Source, s.Stable.Since = "two", noon }, "1 of 2 apps have"},
		"rejected": {func(f *baseApps, s *rollout.State, app string) {
			s.Phase, s.Rejected = rollout.Degraded, []rollout.Rejection{{Hash: f.hashOf(app, "two"), Commit: "two"}}
		}, "rejected the same change"},
		"rejected at an older commit": {func(f *baseApps, s *rollout.State, app string) {
			s.Phase, s.Rejected = rollout.Degraded, []rollout.Rejection{{Hash: "h1-own", Commit: "one"}}
		}, "0 of 2 apps have"},
		"rejects now": {func(_ *baseApps, s *rollout.State, _ string) {
			in(s, rollout.Aborting)
			s.Rollback = &rollout.Rollback{Reject: true, To: "one"}
			s.Rejected = []rollout.Rejection{{Hash: "h1-new", Commit: "two"}}
		}, "rejected the same change"},
		"superseded": {func(_ *baseApps, s *rollout.State, _ string) {
			s.Entered = &rollout.Entered{At: noon.Add(-time.Hour), Commit: "two"}
		}, "is Healthy with the same change"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 12)
			waiting, first := f.last(t), ""
			for _, a := range f.apps {
				if e := f.entry(t, a.Name, nil); e.Cohort == 1 {
					first = a.Name
				}
			}
			s := f.records[first]
			stable := *s.Stable
			s.Stable = &stable
			tt.change(f, &s, first)
			f.records[first] = s
			e := f.entry(t, waiting, nil)
			compare.Contains(t, e.Waits, tt.want)
		})
	}
}

// firstOf returns an app of the first cohort.
func (f *baseApps) firstOf(t testing.TB) string {
	t.Helper()
	for _, a := range f.apps {
		if e := f.entry(t, a.Name, nil); e != nil && e.Cohort == 1 {
			return a.Name
		}
	}
	t.Fatal("no app is in the first cohort")
	return ""
}

// TestEntriesAfterUnhealthyApps checks that an app that was unhealthy or stalled before the change is in the last cohort.
func TestEntriesAfterUnhealthyApps(t *testing.T) {
	for name, ail := range map[string]func(s *rollout.State){
		"unhealthy": func(s *rollout.State) { s.Unhealthy = "no pod is ready" },
		"stalled": func(s *rollout.State) {
			s.Phase, s.Release = rollout.Stalled, &rollout.Release{Hash: "h1-own", Commit: "one"}
		},
	} {
		f := newFleet(t, 12)
		first := f.firstOf(t)
		s := f.records[first]
		ail(&s)
		f.records[first] = s
		if next := f.firstOf(t); next == first || f.entry(t, first, nil).Cohort != 3 {
			t.Errorf("%s: %s is in the first cohort, %s in cohort %d", name, next, first, f.entry(t, first, nil).Cohort)
		}
	}
}

// TestEntriesOfLostApps checks that an app with a change keeps its place after it leaves Git, and after a push that changes none of its
// objects. An unlisted app without the change has no place.
func TestEntriesOfLostApps(t *testing.T) {
	for name, tt := range map[string]struct {
		has    bool // the app has the change and is not healthy
		edits  map[string]string
		cohort int // the cohort of the next app
	}{
		"removed with the change":    {true, map[string]string{"kustomization.yaml": ""}, 2},
		"removed without the change": {false, map[string]string{"kustomization.yaml": ""}, 1},
		"a comment":                  {true, map[string]string{"note.txt": "see the wiki"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 14)
			first := f.firstOf(t)
			if s := f.records[first]; tt.has {
				s.Source, s.Phase, s.Entered = "two", rollout.Progressing, &rollout.Entered{At: noon, Commit: "two", Was: "one"}
				s.Release = &rollout.Release{Hash: f.hashOf(first, "two"), Commit: "two", Since: noon}
				f.records[first] = s
			}
			edits := map[string]string{"base/web.yaml": "v2"}
			for file, content := range tt.edits {
				edits["apps/"+first+"/"+file] = content
			}
			f.head(t, "three", edits)
			f.Set(first, []string{"apps/" + first + "/kustomization.yaml", "apps/" + first + "/note.txt", "base/web.yaml"})
			least := 3
			for _, a := range f.apps {
				if e := f.entry(t, a.Name, nil); e != nil {
					least = min(least, e.Cohort)
				}
			}
			compare.CheckNamed(t, "cohort", tt.cohort, least)
		})
	}
}

// TestEntriesAreUnknown checks that an app waits with ErrNotReady while a commit or another app is being read. A change of an app's own
// file never waits. If the recorded commit is gone, the app does not wait.
func TestEntriesAreUnknown(t *testing.T) {
	f := newFleet(t, 12)
	app := f.apps[0]
	f.entries.Reread()
	f.failed = fmt.Errorf("commit one %w", source.ErrNotReady)
	if _, err := f.entries.Of(app, f.records[app.Name], f.headOf(app.Name), nil, noon); !errors.Is(err, source.ErrNotReady) {
		t.Errorf("error %v", err)
	}
	f.failed = errors.New("commit one is gone")
	if e, err := f.entries.Of(app, f.records[app.Name], f.headOf(app.Name), nil, noon); e != nil || err != nil {
		t.Errorf("entry %+v, error %v", e, err)
	}
	f.failed, f.reads = nil, true
	if _, err := f.entries.Of(app, f.records[app.Name], f.headOf(app.Name), nil, noon); !errors.Is(err, source.ErrNotReady) {
		t.Errorf("error %v", err)
	}
	f.head(t, "three", map[string]string{"apps/a0000/kustomization.yaml": "namePrefix: a\n"})
	if e := f.entry(t, "a0000", nil); e != nil {
		t.Errorf("an own file: %+v", e)
	}
}

// TestEntriesReadEachRecordOnce checks that Waiting reads each record once for all apps, until a record changes. While one app's commit is
// not ready, only the record of that app is read again.
func TestEntriesReadEachRecordOnce(t *testing.T) {
	f := newFleet(t, 40)
	reads, record, tree := map[string]int{}, f.entries.Record, f.entries.Tree
	f.entries.Record = func(app string) rollout.State { reads[app]++; return record(app) }
	late := f.apps[7].Name
	for _, isReady := range []bool{true, false, true} {
		f.entries.Forget()
		clear(reads)
		if s := f.records[late]; !isReady {
			s.Source = "late"
			f.records[late] = s
			f.entries.Tree = func(commit string) (rollout.Tree, error) {
				if commit == "late" {
					return nil, source.ErrNotReady
				}
				return tree(commit)
			}
		} else {
			s.Source = "one"
			f.records[late] = s
		}
		for _, a := range f.apps {
			if _, err := f.entries.Waiting(a.Name); (err == nil) != isReady {
				t.Errorf("%s, ready %t: %v", a.Name, isReady, err)
			}
		}
		for app, n := range reads {
			if n > 1 && (isReady || app != late) {
				t.Errorf("ready %t: the record of %s is read %d times", isReady, app, n)
			}
		}
		compare.Check(t, 40, len(reads))
	}
}

// TestRecordedEntry checks that a command reads an app's cohort from the record, if the record names the head.
func TestRecordedEntry(t *testing.T) {
	f := newFleet(t, 12)
	app := f.last(t)
	s := f.records[app]
	version := f.hashOf(app, "two")
	s.Held = &rollout.Held{Reason: rollout.HeldCohort, Commit: "two",
		Message: fmt.Sprintf("release %s of two by Ann waits for cohort 3 of 3 (base/web.yaml)", version)}
	prepared := func(p source.Promotion, head strategies.Head) *cohort.Entry {
		return source.Prepare(f.entries.Branch, f.apps[0], s, head, p, source.Trust{}).Entry
	}
	e := prepared(source.Promotion{}, f.headOf(app))
	if e == nil || e.Open || e.Waits != "cohort 3 of 3 (base/web.yaml)" || e.Release != version {
		t.Errorf("entry %+v", e)
	}
	want := rollout.Place{File: "base/web.yaml", ID: source.IDOf(f.entries.Branch, "base/web.yaml"), Cohort: 3, Of: 3}
	compare.CheckNamed(t, "the place", want, e.Place)
	compare.CheckNamed(t, "the place as the reconciler has it", want, f.entry(t, app, nil).Place)
	entered := rollout.State{App: app, Source: "two", Entered: &rollout.Entered{Commit: "two", Place: want}}
	placed := func() *rollout.Place {
		return source.Prepare(f.entries.Branch, f.apps[0], entered, f.headOf(app), source.Promotion{}, source.Trust{}).Place
	}
	compare.CheckNamed(t, "the place of an app that has entered", want, *placed())
	entered.Entered.ID = "0000000"
	compare.CheckNamed(t, "another content at the head", true, placed() == nil)
	p := &rollout.Promotion{Release: version, Through: "entry", Decision: rollout.Promote, Digest: "d"}
	e = prepared(source.Promotion{File: p}, f.headOf(app))
	if e == nil || !e.Open {
		t.Errorf("with a promotion: %+v", e)
	}
	if e = prepared(source.Promotion{}, strategies.Head{Commit: rollout.Commit{ID: "one"}, Render: f.render(app, "one")}); e != nil {
		t.Errorf("another head: %+v", e)
	}
	in, err := source.Gatherer{RenderAt: func(_ context.Context, app rollout.App, commit string) (*rollout.Render, error) {
		return f.render(app.Name, commit), nil
	}}.Gather(t.Context(), source.App{App: rollout.App{Name: app}, Head: f.headOf(app), State: s, Entry: &cohort.Entry{}}, noon)
	must(t, err)
	compare.CheckNamed(t, "the gathered entry", false, in.Entry == nil)
}

// BenchmarkEntries measures a change of a base that 10,000 apps read, and a change of one app's own file.
func BenchmarkEntries(b *testing.B) {
	f := newFleet(b, 10_000)
	of := func(b *testing.B) {
		app := f.apps[5000]
		head := f.headOf(app.Name)
		for b.Loop() {
			f.entries.Forget()
			_, err := f.entries.Of(app, f.records[app.Name], head, nil, noon)
			must(b, err)
		}
	}
	b.Run("base", of)
	f.head(b, "three", map[string]string{"apps/a5000/kustomization.yaml": "namePrefix: a\n"})
	b.Run("own", of)
}

// TestOlderHead checks that an older head does not share its comparisons of files with the head.
func TestOlderHead(t *testing.T) {
	f := newFleet(t, 30)
	branch, older := *f.entries.Branch, *f.entries
	branch.Tree, older.Branch = f.commits["one"], &branch
	older.Forget()
	for _, tt := range []struct {
		name  string
		of    *source.Entries
		waits bool
	}{{"head", f.entries, true}, {"older head", &older, false}} {
		change, err := tt.of.Waiting(f.apps[0].Name)
		must(t, err)
		compare.CheckNamed(t, tt.name, tt.waits, change != nil)
	}
}
