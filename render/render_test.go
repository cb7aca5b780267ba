package render_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// manyApps returns a repository of n apps. The apps with even numbers share a base.
func manyApps(n int) (map[string]string, []rollout.App) {
	files := map[string]string{
		"base/kustomization.yaml": "resources: [cm.yaml]\n",
		"base/cm.yaml":            configMap("shared"),
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
		files[dir+"/cm.yaml"] = configMap("own") + fmt.Sprintf("data: {i: '%d'}\n", i)
		apps = append(apps, rollout.App{Name: fmt.Sprintf("a%02d", i), Path: dir, Namespace: "shop"})
	}
	return files, apps
}

// TestBuildsOnlyWhatChanged checks which apps are built again after a change.
func TestBuildsOnlyWhatChanged(t *testing.T) {
	const n = 20
	files, apps := manyApps(n)
	const usersOfBase = "a00 a02 a04 a06 a08 a10 a12 a14 a16 a18"
	type change map[string]string // contents by path; "" removes the file
	for name, tt := range map[string]struct {
		change change
		want   string // the apps that are built again
	}{
		"the same tree again":                         {nil, ""},
		"a file of one":                               {change{"apps/a03/prod/cm.yaml": files["apps/a04/prod/cm.yaml"]}, "a03"},
		"files that no build has read":                {change{"README.md": "new", "apps/a05/prod/notes.txt": "x"}, ""},
		"a shared base":                               {change{"base/cm.yaml": files["base/cm.yaml"] + "# new\n"}, usersOfBase},
		"a second kustomization, looked for in vain":  {change{"apps/a07/prod/kustomization.yml": "resources: []\n"}, "a07"},
		"a folder, looked for as a file":              {change{"apps/a01/prod/Kustomization/x": "y"}, "a01"},
		"a file in place of the folder of read files": {change{"base/kustomization.yaml": "", "base/cm.yaml": "", "base": "x"}, usersOfBase},
		"gone": {change{"apps/a09/prod/cm.yaml": ""}, "a09"},
	} {
		t.Run(name, func(t *testing.T) {
			r := render.New(render.InProcess{})
			for _, app := range apps {
				mustRender(t, r, files, app)
			}
			compare.CheckNamed(t, "builds at first", n, r.Builds())
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
			compare.CheckNamed(t, "built", tt.want, strings.Join(built, " "))
		})
	}
}

func TestUnchangedRepositoryIsOneLookup(t *testing.T) {
	files, apps := manyApps(3)
	tree := newTree(files)
	r := render.New(render.InProcess{})
	first, err := r.Render(tree, apps[0], rollout.Commit{ID: "1"})
	must(t, err)
	tree.lookups = 0
	again, err := r.Render(tree, apps[0], rollout.Commit{ID: "2"})
	must(t, err)
	compare.CheckNamed(t, "look-ups for an unchanged repository", 1, tree.lookups)
	if again.Commit.ID != "2" || first.Commit.ID != "1" {
		t.Errorf("commits are %s and %s, want 1 and 2", first.Commit.ID, again.Commit.ID)
	}
	compare.CheckNamed(t, "the second result's objects", first.Objects, again.Objects)
	want := *first.Packed()
	want.Commit = again.Commit
	compare.CheckNamed(t, "the second result", &want, again.Packed())
	// If only another app has changed, render looks up only the root, apps/, base/ and apps/a00.
	other := newTree(with(files, "apps/a01/prod/cm.yaml", files["apps/a02/prod/cm.yaml"]))
	other.lookups = 0
	if _, err := r.Render(other, apps[0], rollout.Commit{}); err != nil || other.lookups > 4 || r.Builds() != 1 {
		t.Errorf("%d look-ups, %d builds, error %v; want at most 4, and 1", other.lookups, r.Builds(), err)
	}
}

func TestHeadAndStableAreBothKept(t *testing.T) {
	files, apps := manyApps(1)
	head := with(files, "base/cm.yaml", files["base/cm.yaml"]+"data: {a: b}\n")
	r := render.New(render.InProcess{})
	for range 5 {
		mustRender(t, r, files, apps[0])
		mustRender(t, r, head, apps[0])
	}
	compare.CheckNamed(t, "builds of two commits in turn", 2, r.Builds())
}

func TestErrorsAreKeptIfTheyAreOfTheCommit(t *testing.T) {
	files, apps := manyApps(1)
	r := render.New(render.InProcess{})
	broken := newTree(with(files, "base/cm.yaml", "a: b: c\n"))
	for range 2 {
		if _, err := r.Render(broken, apps[0], rollout.Commit{}); !rollout.IsInvalid(err) {
			t.Fatalf("error %v, want an InvalidError", err)
		}
	}
	compare.CheckNamed(t, "builds of a broken commit", 1, r.Builds())
	unreadable, gone := newTree(files), errors.New("the store is gone")
	unreadable.fail = func() error { return gone }
	if _, err := r.Render(unreadable, apps[0], rollout.Commit{}); !errors.Is(err, gone) || rollout.IsInvalid(err) {
		t.Errorf("error %v, want the store's error", err)
	}
	mustRender(t, r, files, apps[0])
}

// TestFolderThatComesAndGoes checks whether a closure still holds after a parent folder of a missing file was created, removed or replaced
// by a file.
func TestFolderThatComesAndGoes(t *testing.T) {
	files := map[string]string{"apps/a/x": "1", "other": "2"}
	for name, c := range map[string]struct {
		asked         string // a path that the build has looked up
		before, after map[string]string
		want          bool
	}{
		"a folder comes":          {"base/cm.yaml", files, with(files, "base/else", "x"), false},
		"a file comes instead":    {"base/cm.yaml", files, with(files, "base", "x"), true},
		"a folder goes":           {"apps/a/y", files, map[string]string{"other": "2"}, false},
		"a folder becomes a file": {"apps/a/y", files, map[string]string{"apps": "x", "other": "2"}, false},
		"another folder comes":    {"base/cm.yaml", files, with(files, "more/x", "x"), true},
		"nothing changes":         {"apps/a/y", files, files, true},
	} {
		before := newTree(c.before)
		closed, err := render.NewClosure(render.Looked{At: []string{c.asked}}, before)
		must(t, err)
		if same, err := closed.Holds(newTree(c.after)); err != nil || same != c.want {
			t.Errorf("%s: holds %t (%v), want %t", name, same, err, c.want)
		}
	}
}

// TestFaultsInTheMiddle makes each look-up and each read of a build fail in turn. The build must return the store's error, not an
// InvalidError, and must not cache the error.
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
		_, whole := rendered(c.files, app)
		for n := 1; ; n += every {
			r, tree, left := render.New(render.InProcess{}), newTree(c.files), n
			tree.fail = func() error {
				if left--; left == 0 {
					return gone
				}
				return nil
			}
			_, err := r.Render(tree, app, rollout.Commit{})
			if left > 0 { // the build needs fewer than n look-ups
				if fmt.Sprint(err) != fmt.Sprint(whole) {
					t.Errorf("%s: after %d look-ups: %v", name, n, err)
				}
				break
			}
			if !errors.Is(err, gone) || rollout.IsInvalid(err) {
				t.Errorf("%s: look-up %d fails: %v, want the store's error", name, n, err)
			}
			if _, err := r.Render(newTree(c.files), app, rollout.Commit{}); fmt.Sprint(err) != fmt.Sprint(whole) {
				t.Errorf("%s: look-up %d has failed, and the store is back: %v", name, n, err)
			}
		}
	}
}

// TestFewRendersAreRemembered checks that the cache of an app stays small while its files or configuration entry change
// again and again. KeepOnly drops the caches of removed apps.
func TestFewRendersAreRemembered(t *testing.T) {
	files, apps := manyApps(1)
	r := render.New(render.InProcess{})
	for i := range 3 * 4 {
		mustRender(t, r, with(files, "base/cm.yaml", fmt.Sprintf("%sdata: {a: '%d'}\n", files["base/cm.yaml"], i)), apps[0])
	}
	for i := range 3 * 4 {
		app := apps[0]
		app.Variables = rollout.NewVariables(map[string]string{"tag": fmt.Sprint(i)}, nil)
		mustRender(t, r, files, app)
	}
	renders, known := r.Cached(apps[0].Name)
	compare.CheckNamed(t, "renders that are kept, and apps", [2]int{4, 1}, [2]int{renders, known})
	r.KeepOnly(nil)
	renders, known = r.Cached(apps[0].Name)
	compare.CheckNamed(t, "renders and apps that are gone", [2]int{}, [2]int{renders, known})
}

// TestClosuresAreSmall limits the memory of one app's closure, because the cache has the closures of all apps.
func TestClosuresAreSmall(t *testing.T) {
	looked := render.Looked{At: []string{"apps/00/shop", "apps/00/shop/kustomization.yaml", "apps/00/shop/kustomization.yml",
		"apps/00/shop/Kustomization", "apps/00/shop/app.yaml", "apps/00/shop/rollout.yaml"}}
	tree := newTree(map[string]string{"apps/00/shop/kustomization.yaml": "", "apps/00/shop/app.yaml": "", "apps/00/shop/rollout.yaml": ""})
	var held []*render.Closure
	var before, after runtime.MemStats
	const apps = 1000
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range apps {
		c, err := render.NewClosure(looked, tree)
		must(t, err)
		held = append(held, c)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if perApp := int64(after.HeapAlloc-before.HeapAlloc) / apps; perApp > 1300 {
		t.Errorf("%d bytes for each app", perApp)
	}
	runtime.KeepAlive(held)
}

// TestIsSame checks that IsSame tells, without a build, whether a commit has the same render.
func TestIsSame(t *testing.T) {
	files, apps := manyApps(2)
	r := render.New(render.InProcess{})
	was := mustRender(t, r, files, apps[0])
	for name, tc := range map[string]struct {
		files map[string]string
		app   rollout.App
		want  bool
	}{
		"the same files":     {files, apps[0], true},
		"another app's file": {with(files, apps[1].Path+"/kustomization.yaml", ""), apps[0], true},
		"its own file":       {with(files, apps[0].Path+"/kustomization.yaml", ""), apps[0], false},
		"an unknown app":     {files, apps[1], false},
	} {
		again := *was
		again.App = tc.app
		compare.CheckNamed(t, name, tc.want, r.IsSame(newTree(tc.files), &again))
	}
	other := *was
	other.Files = []string{"base/moved.yaml"}
	compare.CheckNamed(t, "equal objects from another file", false, r.IsSame(newTree(files), &other))
	compare.CheckNamed(t, "builds", 1, r.Builds())
}

// TestChartThatComesBack checks that a folder is rendered again after its Chart.yaml was added.
func TestChartThatComesBack(t *testing.T) {
	app, r := rollout.App{Name: "shop", Path: "apps/shop/charts/shop", Namespace: "shop"}, render.New(render.InProcess{})
	files := shopChart(app.Path)
	if _, err := r.Render(newTree(with(files, app.Path+"/Chart.yaml", "")), app, rollout.Commit{}); err == nil {
		t.Error("a folder without a chart is an app")
	}
	mustRender(t, r, files, app)
}

func TestSymlinkTargetIsPartOfTheClosure(t *testing.T) {
	files := readFiles(t, "testdata/corpus/symlinks")
	r, app := render.New(render.InProcess{}), rollout.App{Name: "a", Path: "app", Namespace: "x"}
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
		before := r.Builds()
		mustRender(t, r, step.files, app)
		compare.CheckNamed(t, step.name+": builds", step.want, r.Builds()-before)
	}
}

// TestConcurrentBuilds checks the results of concurrent builds with and without a custom schema. With -race, it finds data races.
func TestConcurrentBuilds(t *testing.T) {
	files := readFiles(t, "testdata/corpus/openapi")
	app := func(name, dir string) rollout.App { return rollout.App{Name: name, Path: dir, Namespace: "x"} }
	r := render.New(render.InProcess{})
	want := map[string]string{}
	for _, dir := range []string{"app", "plain"} {
		want[dir] = mustRender(t, render.New(render.InProcess{}), files, app(dir, dir)).Digest
	}
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			dir := []string{"plain", "plain", "app"}[i%3]
			got, err := r.Render(newTree(files), app(fmt.Sprint(i), dir), rollout.Commit{})
			if err != nil || got.Digest != want[dir] {
				t.Errorf("%s: another result than alone, error %v", dir, err)
			}
		})
	}
	wg.Wait()
}

func TestBounds(t *testing.T) {
	big := map[string]string{"kustomization.yaml": "configMapGenerator: [{name: x, files: [a, b, c, d, e]}]\n"}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		big[name] = strings.Repeat("x", 16<<20)
	}
	var many strings.Builder
	for i := range 2000 + 1 {
		many.WriteString(configMap(fmt.Sprintf("c%d", i)) + "---\n")
	}
	// Each file has about half of the allowed values: 100 aliases of a list with 5,000 values.
	values := "a: &a [" + strings.Repeat("0,", 5_000) + "]\nb: [" + strings.Repeat("*a,", 100) + "]\n"
	bomb := func(name string) string {
		return "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: " + name + "}\n" + values
	}
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"many values": {map[string]string{"kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "a.yaml": bomb("a"), "b.yaml": bomb("b")},
			"more than 1000000 YAML values with aliases expanded"},
		"one file": {map[string]string{"kustomization.yaml": "configMapGenerator: [{name: a, files: [a.bin]}]\n",
			"a.bin": strings.Repeat("x", 16<<20+1)}, "more than the 16777216 that one file may have"},
		"all files":    {big, "more than 67108864 bytes"},
		"many objects": {map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": many.String()}, "more than 2000 objects"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := rendered(tt.files, demo); !rollout.IsInvalid(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestFileNamesThatLookRemote checks that a generator may read files whose names look like URLs.
func TestFileNamesThatLookRemote(t *testing.T) {
	r := renderRepo(t, map[string]string{
		"kustomization.yaml": "configMapGenerator:\n- {name: icons, files: [icon=icon@2x.svg]}\n", "icon@2x.svg": "<svg/>",
	})
	if len(r.Objects) != 1 || r.Objects[0].Map("data")["icon"] != "<svg/>" {
		t.Errorf("%v", r.Objects)
	}
}

// TestClosureWithoutUpperFolders checks a closure that omits the folders above an app. It must still notice when the app's files change,
// and when a folder above is removed or becomes a file.
func TestClosureWithoutUpperFolders(t *testing.T) {
	files := map[string]string{"a/b/c/shop/x": "1", "a/b/c/other/x": "1", "base/d/y": "1", "base/d/z": "1", "else": "1"}
	at := []string{"", "a", "a/b", "a/b/c", "a/b/c/shop", "a/b/c/shop/x", "a/b/c/shop/missing", "base", "base/d", "base/d/y"}
	for name, c := range map[string]struct {
		at    []string
		after map[string]string
		want  bool
	}{
		"an app alone, another app changes":  {at[:7], with(files, "a/b/c/other/x", "2"), true},
		"an app alone, its file changes":     {at[:7], with(files, "a/b/c/shop/x", "2"), false},
		"an app alone, a missing file comes": {at[:7], with(files, "a/b/c/shop/missing", "2"), false},
		"an app alone, all goes":             {at[:7], map[string]string{"else": "1"}, false},
		"an app alone, a file is in the way": {at[:7], map[string]string{"a/b": "1"}, false},
		"an app moves":                       {at[:7], map[string]string{"a/c/shop/x": "1"}, false},
		"a base, another file changes":       {at, with(files, "base/d/z", "2"), true},
		"a base, its file changes":           {at, with(files, "base/d/y", "2"), false},
		"a base goes":                        {at, map[string]string{"a/b/c/shop/x": "1"}, false},
	} {
		closed, err := render.NewClosure(render.Looked{At: c.at}, newTree(files))
		must(t, err)
		if same, err := closed.Holds(newTree(c.after)); err != nil || same != c.want {
			t.Errorf("%s: holds %t (%v), want %t", name, same, err, c.want)
		}
	}
	closed, err := render.NewClosure(render.Looked{At: at[:7]}, newTree(files))
	must(t, err)
	compare.CheckNamed(t, "the closure's folder", "a/b/c/shop", closed.Folder())
}

// TestRandomCommits checks that a closure holds only if all look-ups and listed folders of the build have the same result. Commits that
// differ only in files' contents must have the same apps.
func TestRandomCommits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "kustomization.yaml"}
	anyPath := func() string {
		var parts []string
		for range 1 + random.IntN(4) {
			parts = append(parts, names[random.IntN(len(names))])
		}
		return strings.Join(parts, "/")
	}
	change := func(files map[string]string) map[string]string {
		next := maps.Clone(files)
		name := anyPath()
		maps.DeleteFunc(next, func(file, _ string) bool { // removes files that conflict with the new path
			return strings.HasPrefix(file, name+"/") || strings.HasPrefix(name, file+"/") || random.IntN(20) == 0
		})
		next[name] = []string{"1", "2", linkTo + "a", linkTo + "b", submodule}[random.IntN(5)]
		return next
	}
	config := configured(t, "{path: a/*}, {path: \"*\"}, {path: \"*/*/b\"}, {path: b/a, directory: {recurse: true}}")
	holds, same := 0, 0
	for range 5000 {
		files := map[string]string{}
		for range 6 {
			files = change(files)
		}
		looked := render.Looked{All: []string{anyPath()}[:random.IntN(2)]}
		for range 1 + random.IntN(4) {
			looked.At = append(looked.At, anyPath())
		}
		before, after := newTree(files), newTree(change(files))
		closed, err := render.NewClosure(looked, before)
		must(t, err)
		is, err := closed.Holds(after)
		must(t, err)
		for _, name := range slices.Concat(looked.At, looked.All) {
			was, had, _ := before.Lookup(name)
			now, has, _ := after.Lookup(name)
			if is && (render.MarkOf(was, had) != render.MarkOf(now, has) || slices.Contains(looked.All, name) && was.ID != now.ID) {
				t.Fatalf("the closure of %v holds, but %s differs: %v, %v", looked, name, files, after)
			}
		}
		if self, _ := closed.Holds(newTree(files)); !self && len(looked.All) == 0 {
			t.Fatalf("the closure of %v does not hold at its own commit %v", looked, files)
		}
		if render.HasSameNames(before, after, "", new(1000)) {
			a, brokenA, _ := render.FindAll(before, config)
			b, brokenB, _ := render.FindAll(after, config)
			compare.CheckNamed(t, fmt.Sprint("apps after ", files), fmt.Sprint(a, brokenA), fmt.Sprint(b, brokenB))
			same++
		}
		if is {
			holds++
		}
	}
	if holds < 500 || same < 50 {
		t.Errorf("only %d closures hold, and %d commits have the same names", holds, same)
	}
}
