package render

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// manyApps returns a repository of n apps; the even ones share a base.
func manyApps(n int) (map[string]string, []rollout.App) {
	files := map[string]string{
		"base/kustomization.yaml": "resources: [cm.yaml]\n",
		"base/cm.yaml":            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\n",
		"README.md":               "read by no build",
	}
	var apps []rollout.App
	for i := range n {
		dir := fmt.Sprintf("apps/a%02d/prod", i)
		resources := "[cm.yaml]"
		if i%2 == 0 {
			resources = "[cm.yaml, ../../../base]"
		}
		files[dir+"/kustomization.yaml"] = "resources: " + resources + "\n"
		files[dir+"/cm.yaml"] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {i: %q}\n", fmt.Sprint(i))
		apps = append(apps, rollout.App{Name: fmt.Sprintf("a%02d", i), Path: dir, Namespace: "shop"})
	}
	return files, apps
}

// TestBuildsOnlyWhatChanged counts the builds that a change causes.
func TestBuildsOnlyWhatChanged(t *testing.T) {
	const n = 20
	files, apps := manyApps(n)
	tests := map[string]struct {
		reason string
		change map[string]string // path -> content, "" removes
		want   []string          // the apps to build
	}{
		"nothing":           {"the same tree again", nil, nil},
		"a file of one":     {"P3", map[string]string{"apps/a03/prod/cm.yaml": files["apps/a04/prod/cm.yaml"]}, []string{"a03"}},
		"unread":            {"no build has read it", map[string]string{"README.md": "new", "apps/a05/prod/notes.txt": "x"}, nil},
		"shared base":       {"exactly its users", map[string]string{"base/cm.yaml": files["base/cm.yaml"] + "# new\n"}, []string{"a00", "a02", "a04", "a06", "a08", "a10", "a12", "a14", "a16", "a18"}},
		"appears":           {"a second kustomization was looked for in vain", map[string]string{"apps/a07/prod/kustomization.yml": "resources: []\n"}, []string{"a07"}},
		"folder for a file": {"it was looked for as a file", map[string]string{"apps/a01/prod/Kustomization/x": "y"}, []string{"a01"}},
		"file for a folder": {"the files read below it are gone", map[string]string{"base/kustomization.yaml": "", "base/cm.yaml": "", "base": "x"}, []string{"a00", "a02", "a04", "a06", "a08", "a10", "a12", "a14", "a16", "a18"}},
		"gone":              {"", map[string]string{"apps/a09/prod/cm.yaml": ""}, []string{"a09"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := New(InProcess{})
			first := newTree(files)
			for _, app := range apps {
				if _, err := r.Render(first, app, rollout.Commit{ID: "1"}); err != nil {
					t.Fatal(err)
				}
			}
			if r.Builds() != n {
				t.Fatalf("%d builds at first, want %d", r.Builds(), n)
			}
			changed := files
			for file, content := range tt.change {
				changed = with(changed, file, content)
			}
			second := newTree(changed)
			var built []string
			for _, app := range apps {
				before := r.Builds()
				_, _ = r.Render(second, app, rollout.Commit{ID: "2"})
				if r.Builds() != before {
					built = append(built, app.Name)
				}
			}
			if diff := compare.Diff(tt.want, built); diff != "" {
				t.Errorf("%s: builds (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestUnchangedRepositoryIsOneLookup(t *testing.T) {
	files, apps := manyApps(3)
	tree := newTree(files)
	r := New(InProcess{})
	first, err := r.Render(tree, apps[0], rollout.Commit{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	tree.lookups = 0
	again, err := r.Render(tree, apps[0], rollout.Commit{ID: "2"})
	if err != nil {
		t.Fatal(err)
	}
	if tree.lookups != 1 {
		t.Errorf("%d look-ups for an unchanged repository, want 1", tree.lookups)
	}
	if again.Commit.ID != "2" || first.Commit.ID != "1" {
		t.Errorf("commits are %s and %s, want 1 and 2", first.Commit.ID, again.Commit.ID)
	}
	again.Commit = first.Commit
	if diff := compare.Diff(first, again); diff != "" {
		t.Errorf("results differ:\n%s", diff)
	}
	// Another app has changed: the root, apps/, base/, and apps/a00 are read.
	other := newTree(with(files, "apps/a01/prod/cm.yaml", files["apps/a02/prod/cm.yaml"]))
	other.lookups = 0
	if _, err := r.Render(other, apps[0], rollout.Commit{}); err != nil || other.lookups > 4 || r.Builds() != 1 {
		t.Errorf("%d look-ups, %d builds, error %v; want at most 4, and 1", other.lookups, r.Builds(), err)
	}
}

func TestHeadAndStableAreBothKept(t *testing.T) {
	files, apps := manyApps(1)
	stable, head := newTree(files), newTree(with(files, "base/cm.yaml", files["base/cm.yaml"]+"data: {a: b}\n"))
	r := New(InProcess{})
	for range 5 {
		for _, tree := range []*memTree{stable, head} {
			if _, err := r.Render(tree, apps[0], rollout.Commit{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r.Builds() != 2 {
		t.Errorf("%d builds of two commits in turn, want 2", r.Builds())
	}
}

func TestErrorsAreKeptIfTheyAreOfTheCommit(t *testing.T) {
	files, apps := manyApps(1)
	r := New(InProcess{})
	broken := newTree(with(files, "base/cm.yaml", "a: b: c\n"))
	for range 2 {
		var invalid *rollout.InvalidError
		if _, err := r.Render(broken, apps[0], rollout.Commit{}); !errors.As(err, &invalid) {
			t.Fatalf("error %v, want an InvalidError", err)
		}
	}
	if r.Builds() != 1 {
		t.Errorf("%d builds of a broken commit, want 1", r.Builds())
	}
	unreadable := newTree(files)
	unreadable.fail = errors.New("the store is gone")
	var invalid *rollout.InvalidError
	if _, err := r.Render(unreadable, apps[0], rollout.Commit{}); !errors.Is(err, unreadable.fail) || errors.As(err, &invalid) {
		t.Errorf("error %v, want the store's error", err)
	}
	unreadable.fail = nil
	if _, err := r.Render(unreadable, apps[0], rollout.Commit{}); err != nil {
		t.Errorf("after the store is back: %v", err)
	}
}

// TestFolderThatComesAndGoes looks up a path again when its parent becomes a folder, and drops it when the parent is
// gone.
func TestFolderThatComesAndGoes(t *testing.T) {
	files := map[string]string{"apps/a/x": "1", "other": "2"}
	for name, c := range map[string]struct {
		asked  string // a path that the build read
		before map[string]string
		after  map[string]string
		want   bool
	}{
		"a folder comes":          {"base/cm.yaml", files, with(files, "base/else", "x"), false},
		"a file comes instead":    {"base/cm.yaml", files, with(files, "base", "x"), true},
		"a folder goes":           {"apps/a/y", files, map[string]string{"other": "2"}, false},
		"a folder becomes a file": {"apps/a/y", files, map[string]string{"apps": "x", "other": "2"}, false},
		"another folder comes":    {"base/cm.yaml", files, with(files, "more/x", "x"), true},
		"nothing changes":         {"apps/a/y", files, files, true},
	} {
		before := newTree(c.before)
		closed, err := newClosure(Looked{At: []string{c.asked}}, before)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := closed.holds(newTree(c.after), ""); err != nil || same != c.want {
			t.Errorf("%s: holds %t (%v), want %t", name, same, err, c.want)
		}
	}
}

// TestFaultsInTheMiddle has the store fail at each look-up and read of a build: that is never an InvalidError, and not
// cached.
func TestFaultsInTheMiddle(t *testing.T) {
	many, apps := manyApps(1)
	gone := errors.New("the store is gone")
	every := 1
	if testing.Short() {
		every = 5
	}
	for name, c := range map[string]struct {
		files map[string]string
		path  string
	}{
		"a base":   {many, apps[0].Path},
		"the rest": {benchApp(), "prod"},
		"openapi":  {readFiles(t, "testdata/corpus/openapi"), "app"},
		"links":    {readFiles(t, "testdata/corpus/symlinks"), "app"},
		"nothing":  {map[string]string{"other": "x"}, "app"},
	} {
		app := rollout.App{Name: "a", Path: c.path, Namespace: "shop"}
		_, whole := New(InProcess{}).Render(newTree(c.files), app, rollout.Commit{})
		for n := 1; ; n += every {
			r, tree := New(InProcess{}), &faulty{memTree: newTree(c.files), after: n, err: gone}
			_, err := r.Render(tree, app, rollout.Commit{})
			if tree.after > 0 { // there are no more than these
				if fmt.Sprint(err) != fmt.Sprint(whole) {
					t.Errorf("%s: after %d look-ups: %v", name, n, err)
				}
				break
			}
			var invalid *rollout.InvalidError
			if !errors.Is(err, gone) || errors.As(err, &invalid) {
				t.Errorf("%s: look-up %d fails: %v, want the store's error", name, n, err)
			}
			if _, err := r.Render(newTree(c.files), app, rollout.Commit{}); fmt.Sprint(err) != fmt.Sprint(whole) {
				t.Errorf("%s: look-up %d has failed, and the store is back: %v", name, n, err)
			}
		}
	}
}

// faulty is a tree whose store fails once, at the look-up or read with that number.
type faulty struct {
	*memTree
	after int
	err   error
}

func (f *faulty) fault() error {
	if f.after--; f.after == 0 {
		return f.err
	}
	return nil
}

func (f *faulty) Lookup(p string) (rollout.Entry, bool, error) {
	if err := f.fault(); err != nil {
		return rollout.Entry{}, false, err
	}
	return f.memTree.Lookup(p)
}

func (f *faulty) ReadDir(p string) ([]rollout.Entry, error) {
	if err := f.fault(); err != nil {
		return nil, err
	}
	return f.memTree.ReadDir(p)
}

func (f *faulty) ReadBlob(id string) ([]byte, error) {
	if err := f.fault(); err != nil {
		return nil, err
	}
	return f.memTree.ReadBlob(id)
}

// TestFewRendersAreRemembered limits the cache of an app whose commits or entries all differ, and removes an app that
// is gone.
func TestFewRendersAreRemembered(t *testing.T) {
	files, apps := manyApps(1)
	r := New(InProcess{})
	for i := range 3 * kept {
		tree := newTree(with(files, "base/cm.yaml", fmt.Sprintf("%sdata: {a: %q}\n", files["base/cm.yaml"], fmt.Sprint(i))))
		if _, err := r.Render(tree, apps[0], rollout.Commit{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 * kept {
		app := apps[0]
		app.Variables = rollout.NewVariables(map[string]string{"tag": fmt.Sprint(i)}, nil)
		if _, err := r.Render(newTree(files), app, rollout.Commit{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(r.cache[apps[0].Name]); n != kept || len(r.cache) != 1 {
		t.Errorf("%d renders of one app are kept, want %d", n, kept)
	}
	if r.KeepOnly(nil); len(r.cache) > 0 {
		t.Errorf("%d apps that are gone are remembered", len(r.cache))
	}
}

// TestChartThatComesBack renders a folder again when its Chart.yaml appears.
func TestChartThatComesBack(t *testing.T) {
	app, r := rollout.App{Name: "shop", Path: "apps/shop/charts/shop", Namespace: "shop"}, New(InProcess{})
	with := shopChart(app.Path)
	without := maps.Clone(with)
	delete(without, app.Path+"/Chart.yaml")
	if _, err := r.Render(newTree(without), app, rollout.Commit{}); err == nil {
		t.Error("a folder without a chart is an app")
	}
	if _, err := r.Render(newTree(with), app, rollout.Commit{}); err != nil {
		t.Error(err)
	}
}

func TestSymlinkTargetIsPartOfTheClosure(t *testing.T) {
	files := readFiles(t, "testdata/corpus/symlinks")
	r, app := New(InProcess{}), rollout.App{Name: "a", Path: "app", Namespace: "x"}
	builds := func(files map[string]string) int {
		before := r.Builds()
		if _, err := r.Render(newTree(files), app, rollout.Commit{}); err != nil {
			t.Fatal(err)
		}
		return r.Builds() - before
	}
	for _, step := range []struct {
		name  string
		files map[string]string
		want  int
	}{
		{"first", files, 1},
		{"same", files, 0},
		{"target's content", with(files, "real-base/cm.yaml", files["real-base/cm.yaml"]+"#\n"), 1},
		{"another target", with(files, "app/linked.yaml", linkTo+"deep/x/../../real.yaml"), 1},
		{"link becomes file", with(files, "app/linked.yaml", files["app/real.yaml"]), 1},
		{"link to no path", with(files, "app/other", linkTo+"\xff\xfe"), 0},
		{"unrelated", with(files, "other", "x"), 0},
	} {
		if got := builds(step.files); got != step.want {
			t.Errorf("%s: %d builds, want %d", step.name, got, step.want)
		}
	}
}

// TestConcurrentBuilds is for -race: concurrent builds with and without a custom schema each have the correct result.
func TestConcurrentBuilds(t *testing.T) {
	tree := newTree(readFiles(t, "testdata/corpus/openapi"))
	r := New(InProcess{})
	want := map[string]string{}
	for _, dir := range []string{"app", "plain"} {
		got, err := New(InProcess{}).Render(newTree(readFiles(t, "testdata/corpus/openapi")), rollout.App{Name: dir, Path: dir, Namespace: "x"}, rollout.Commit{})
		if err != nil {
			t.Fatal(err)
		}
		want[dir] = got.Digest
	}
	fresh := func() rollout.Tree { return &memTree{entries: tree.entries, folders: tree.folders, blobs: tree.blobs} }
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			dir := []string{"plain", "plain", "app"}[i%3]
			got, err := r.Render(fresh(), rollout.App{Name: fmt.Sprint(i), Path: dir, Namespace: "x"}, rollout.Commit{})
			if err != nil {
				t.Error(err)
				return
			}
			if got.Digest != want[dir] {
				t.Errorf("%s: another result than alone", dir)
			}
		})
	}
	wg.Wait()
}

func TestBounds(t *testing.T) {
	five := map[string]string{"kustomization.yaml": "configMapGenerator: [{name: x, files: [a, b, c, d, e]}]\n"}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		five[name] = strings.Repeat("x", maxFile)
	}
	var many strings.Builder
	for i := range maxObjects + 1 {
		fmt.Fprintf(&many, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n---\n", i)
	}
	// Each file is within the limit of its values: half of them, 100 aliases of 5,000 values.
	values := "a: &a [" + strings.Repeat("0,", 5_000) + "]\nb: [" + strings.Repeat("*a,", 100) + "]\n"
	bombs := map[string]string{"kustomization.yaml": "resources: [a.yaml, b.yaml]\n"}
	for _, name := range []string{"a", "b"} {
		bombs[name+".yaml"] = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: " + name + "}\n" + values
	}
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"many values":  {bombs, "more than 1000000 YAML values, aliases expanded"},
		"one file":     {map[string]string{"kustomization.yaml": "configMapGenerator: [{name: a, files: [a.bin]}]\n", "a.bin": strings.Repeat("x", maxFile+1)}, "more than the 16777216 that one file may have"},
		"all files":    {five, "more than 67108864 bytes"},
		"many objects": {map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": many.String()}, "more than 2000 objects"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(InProcess{}).Render(newTree(tt.files), rollout.App{Name: "a", Namespace: "x"}, rollout.Commit{})
			var invalid *rollout.InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(invalid.Msg, tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestFileNamesThatLookRemote reads a generator's files, even if their names look like URLs.
func TestFileNamesThatLookRemote(t *testing.T) {
	r := renderApp(t, map[string]string{
		"kustomization.yaml": "configMapGenerator:\n- {name: icons, files: [icon=icon@2x.svg]}\n", "icon@2x.svg": "<svg/>",
	})
	if len(r.Objects) != 1 || r.Objects[0].Map("data")["icon"] != "<svg/>" {
		t.Errorf("%v", r.Objects)
	}
}
