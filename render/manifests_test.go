package render

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// settings returns a ConfigMap with that name.
func settings(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}

// plainShop is the app in apps/shop, whose entry has this directory block.
func plainShop(d rollout.Directory) rollout.App {
	return rollout.App{Name: "shop", Path: "apps/shop", Namespace: "shop", Plain: true, Directory: d}
}

func names(r *rollout.Render) (all string) {
	for _, o := range r.Objects {
		all += " " + o.Name()
	}
	return all
}

// TestManifests renders folders without a kustomization: which files count, and which are refused with a remedy.
func TestManifests(t *testing.T) {
	files := map[string]string{
		"apps/shop/a.yaml": settings("a"), "apps/shop/b.yml": settings("b"), "apps/shop/README.md": "# Shop\n",
		"apps/shop/web/c.yaml": settings("c"), "apps/shop/ci/pipeline.yaml": settings("pipeline"),
		"apps/shop/base/kustomization.yaml": "resources: [own.yaml]\n", "apps/shop/base/own.yaml": settings("own"),
	}
	for name, c := range map[string]struct {
		d    rollout.Directory
		more map[string]string
		want string
		err  string
	}{
		"the folder alone":           {rollout.Directory{}, nil, " a b", ""},
		"and those below":            {rollout.Directory{Recurse: true}, nil, " a b c own pipeline", ""},
		"but for a folder":           {rollout.Directory{Recurse: true, Exclude: "ci"}, nil, " a b c own", ""},
		"but for files, by a path":   {rollout.Directory{Recurse: true, Exclude: "{ci/*,b.yml}"}, nil, " a c own", ""},
		"some of them, by a name":    {rollout.Directory{Recurse: true, Include: "{a.*,c.yaml}"}, nil, " a c own", ""},
		"its own kustomization wins": {rollout.Directory{}, map[string]string{"apps/shop/kustomization.yaml": "resources: [b.yml]\n"}, " b", ""},
		"no manifest":                {rollout.Directory{}, map[string]string{"apps/shop/values.yaml": "replicas: 3\n"}, "", "apps/shop/values.yaml: is no Kubernetes object; list it in directory.exclude of the app's entry, or move it out of the folder"},
		"no YAML":                    {rollout.Directory{}, map[string]string{"apps/shop/t.yaml": "a: {{ .x }}\n  b\n"}, "", "apps/shop/t.yaml: "},
		"none at all":                {rollout.Directory{Include: "nothing"}, nil, "", "apps/shop: has no manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			all := map[string]string{}
			for _, list := range []map[string]string{files, c.more} {
				for file, content := range list {
					all[file] = content
				}
			}
			r, err := New(InProcess{}).Render(newTree(all), plainShop(c.d), rollout.Commit{})
			switch {
			case c.err != "":
				if err == nil || len(err.Error()) < len(c.err) || err.Error()[:len(c.err)] != c.err {
					t.Errorf("got %v, want %s", err, c.err)
				}
			case err != nil:
				t.Error(err)
			case names(r) != c.want:
				t.Errorf("got%s, want%s", names(r), c.want)
			}
		})
	}
}

// TestFolderWithoutManifests keeps an app in the list if its entry's patterns exclude all files of its folder.
func TestFolderWithoutManifests(t *testing.T) {
	tree := newTree(map[string]string{"apps/shop/a.yaml": settings("a"), "apps/docs/README.md": "# Docs\n"})
	for entry, want := range map[string]int{
		"{path: apps/shop, directory: {exclude: '*.yaml'}}": 1, "{path: apps/docs, directory: {}}": 1,
		"{path: apps/gone, directory: {}}": 0, "{path: apps/docs}": 0,
		"{path: apps/*, directory: {}}": 1, "{path: apps/*, directory: {exclude: '*.yaml'}}": 0,
	} {
		config := "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\nstateBranch: gitrollout/state/x\napps: [" + entry + "]\n"
		cfg, err := rollout.ParseConfig("c.yaml", []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		apps, err := FindApps(tree, cfg)
		if err != nil || len(apps) != want {
			t.Errorf("%s: %d apps, want %d: %v", entry, len(apps), want, err)
		}
	}
}

// TestNewManifestIsSeen builds a folder again only if a file was added.
func TestNewManifestIsSeen(t *testing.T) {
	files := map[string]string{"apps/shop/a.yaml": settings("a"), "apps/web/x.yaml": settings("x")}
	r, app := New(InProcess{}), plainShop(rollout.Directory{Recurse: true})
	look := func(want string, builds int) {
		t.Helper()
		built, err := r.Render(newTree(files), app, rollout.Commit{})
		if err != nil || names(built) != want || r.Builds() != builds {
			t.Errorf("%v: got%s after %d builds, want%s after %d", err, names(built), r.Builds(), want, builds)
		}
	}
	look(" a", 1)
	files["apps/web/y.yaml"] = settings("y")
	look(" a", 1)
	files["apps/shop/deep/b.yaml"] = settings("b")
	look(" a b", 2)
	files["apps/shop/kustomization.yaml"] = "resources: [deep/b.yaml]\n"
	look(" b", 3)
}

// TestFindPlainFolders finds folders without a kustomization only for entries with directory, and only if they have
// manifests.
func TestFindPlainFolders(t *testing.T) {
	tree := newTree(map[string]string{
		"apps/a/app.yaml": settings("a"), "apps/b/kustomization.yaml": "", "apps/c/README.md": "#", "apps/d/deep/app.yaml": settings("d"),
	})
	for entry, want := range map[string]string{
		"{path: apps/*}":                             " b",
		"{path: apps/*, directory: {}}":              " a b",
		"{path: apps/*, directory: {recurse: true}}": " a b d",
	} {
		cfg, err := rollout.ParseConfig(".gitrollout/prod/config.yaml", []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps: ["+entry+"]\n"))
		if err != nil {
			t.Fatal(err)
		}
		apps, err := FindApps(tree, cfg)
		got := ""
		for _, a := range apps {
			got += " " + a.Name
		}
		if got != want || err != nil {
			t.Errorf("%s: got%s, %v, want%s", entry, got, err, want)
		}
	}
}

// TestPatternsAreClosed checks that a pattern that begins with a brace ends with one.
func TestPatternsAreClosed(t *testing.T) {
	_, err := rollout.ParseConfig(".gitrollout/prod/config.yaml", []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Config\n"+
		"apps: [{path: apps/*, directory: {include: '{a.yaml,b.yaml'}}]\n"))
	if err == nil || !strings.Contains(err.Error(), `apps[0].directory.include: "{a.yaml,b.yaml" is not a pattern`) {
		t.Errorf("got %v", err)
	}
}

// TestTreeThatHoldsItself has a small tree with more nested folders than can be walked.
func TestTreeThatHoldsItself(t *testing.T) {
	tree := newTree(map[string]string{"apps/shop/a.yaml": settings("a")})
	_, err := New(InProcess{}).Render(selfish{tree}, plainShop(rollout.Directory{Recurse: true}), rollout.Commit{})
	const want = "apps/shop: has more than 10000 files and folders; split the app, or leave some out with directory.exclude of its entry"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// selfish is a tree with two folders in each folder.
type selfish struct{ *memTree }

func (selfish) ReadDir(string) ([]rollout.Entry, error) {
	return []rollout.Entry{{Name: "l", Kind: rollout.Dir}, {Name: "r", Kind: rollout.Dir}}, nil
}
