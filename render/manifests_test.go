package render_test

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// configMap returns a ConfigMap with the given name. Further metadata may follow the name.
func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}

// plainShop returns an app of plain manifests in apps/shop. The app's entry has the given block "directory".
func plainShop(d rollout.Directory) rollout.App {
	return rollout.App{Name: "shop", Path: "apps/shop", Namespace: "shop", Plain: true, Directory: d}
}

func names(r *rollout.Render) (all string) {
	for _, o := range r.Objects {
		all += " " + o.Name()
	}
	return all
}

// TestManifests checks which files of a folder without a kustomization are applied, and which are refused with a fix.
func TestManifests(t *testing.T) {
	files := map[string]string{
		"apps/shop/a.yaml": configMap("a"), "apps/shop/b.yml": configMap("b"), "apps/shop/README.md": "# Shop\n",
		"apps/shop/web/c.yaml": configMap("c"), "apps/shop/ci/pipeline.yaml": configMap("pipeline"),
		"apps/shop/base/kustomization.yaml": "resources: [own.yaml]\n", "apps/shop/base/own.yaml": configMap("own"),
	}
	for name, c := range map[string]struct {
		d         rollout.Directory
		more      map[string]string
		want, err string
	}{
		"the folder alone":           {rollout.Directory{}, nil, " a b", ""},
		"and those below":            {rollout.Directory{Recurse: true}, nil, " a b c own pipeline", ""},
		"but for a folder":           {rollout.Directory{Recurse: true, Exclude: "ci"}, nil, " a b c own", ""},
		"but for files, by a path":   {rollout.Directory{Recurse: true, Exclude: "{ci/*,b.yml}"}, nil, " a c own", ""},
		"some of them, by a name":    {rollout.Directory{Recurse: true, Include: "{a.*,c.yaml}"}, nil, " a c own", ""},
		"its own kustomization wins": {rollout.Directory{}, map[string]string{"apps/shop/kustomization.yaml": "resources: [b.yml]\n"}, " b", ""},
		"no manifest": {rollout.Directory{}, map[string]string{"apps/shop/values.yaml": "replicas: 3\n"}, "", "apps/shop/values.yaml: " +
			"is not a Kubernetes object; list it in directory.exclude of the app's entry, or move it out of the folder"},
		"no YAML":     {rollout.Directory{}, map[string]string{"apps/shop/t.yaml": "a: {{ .x }}\n  b\n"}, "", "apps/shop/t.yaml: "},
		"none at all": {rollout.Directory{Include: "nothing"}, nil, "", "apps/shop: has no manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := rendered(merged(files, c.more), plainShop(c.d))
			if c.err == "" {
				must(t, err)
				compare.Check(t, c.want, names(r))
			} else if !strings.HasPrefix(fmt.Sprint(err), c.err) {
				t.Errorf("got %v, want %s", err, c.err)
			}
		})
	}
}

// TestFindFolders checks that a chart's folder is an app only if the entry has "helm". A folder of manifests is an app only if the entry
// has "directory". A folder that is listed without a glob stays an app even if the patterns exclude all files.
func TestFindFolders(t *testing.T) {
	tree := newTree(map[string]string{
		"charts/shop/Chart.yaml": "x", "charts/both/Chart.yaml": "x", "charts/both/kustomization.yaml": "x",
		"charts/plain/a.yaml": configMap("a"),
		"apps/a/app.yaml":     configMap("a"), "apps/b/kustomization.yaml": "", "apps/c/README.md": "#", "apps/d/deep/app.yaml": configMap("d"),
	})
	for entry, want := range map[string]string{
		"{path: charts/*}": "both", "{path: charts/*, helm: {}}": "both shop", "{path: charts/*, helm: {}, directory: {}}": "both plain shop",
		"{path: apps/*}": "b", "{path: apps/*, directory: {}}": "a b", "{path: apps/*, directory: {recurse: true}}": "a b d",
		"{path: apps/a, directory: {exclude: '*.yaml'}}": "a", "{path: apps/*, directory: {exclude: '*.yaml'}}": "b",
		"{path: apps/c, directory: {}}": "c", "{path: apps/c}": "", "{path: apps/gone, directory: {}}": "",
	} {
		compare.CheckNamed(t, entry, want, found(t, tree, entry))
	}
}

// TestNewManifestIsSeen checks that a new file below an app's folder causes a build. A new file in another folder causes no build.
func TestNewManifestIsSeen(t *testing.T) {
	files := map[string]string{"apps/shop/a.yaml": configMap("a"), "apps/web/x.yaml": configMap("x")}
	r, app := render.New(render.InProcess{}), plainShop(rollout.Directory{Recurse: true})
	look := func(want string, builds int) {
		t.Helper()
		compare.CheckNamed(t, "objects", want, names(mustRender(t, r, files, app)))
		compare.CheckNamed(t, "builds", builds, r.Builds())
	}
	look(" a", 1)
	files["apps/web/y.yaml"] = configMap("y")
	look(" a", 1)
	files["apps/shop/deep/b.yaml"] = configMap("b")
	look(" a b", 2)
	files["apps/shop/kustomization.yaml"] = "resources: [deep/b.yaml]\n"
	look(" b", 3)
}

// TestPatternsAreClosed checks that a pattern with an opening brace and no closing brace is refused.
func TestPatternsAreClosed(t *testing.T) {
	_, err := rollout.ParseConfig(".gitrollout/prod/config.yaml", []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Config\n"+
		"apps: [{path: apps/*, directory: {include: '{a.yaml,b.yaml'}}]\n"))
	compare.Contains(t, fmt.Sprint(err), `apps[0].directory.include: "{a.yaml,b.yaml" is not a pattern`)
}

// TestTreeThatHoldsItself checks the error for a small tree in which folders are nested without end.
func TestTreeThatHoldsItself(t *testing.T) {
	tree := newTree(map[string]string{"apps/shop/a.yaml": configMap("a")})
	_, err := render.New(render.InProcess{}).Render(selfish{tree}, plainShop(rollout.Directory{Recurse: true}), rollout.Commit{})
	const want = "apps/shop: has more than 10000 files and folders; split the app, or exclude files with directory.exclude of the app's entry"
	compare.Check(t, want, fmt.Sprint(err))
}

// TestEntriesCountAsObjects checks that many entries in a field are refused if Kustomize compares each entry with every object.
func TestEntriesCountAsObjects(t *testing.T) {
	for field, entry := range map[string]string{
		"replacements": "{path: r.yaml}", "vars": "{name: X}", "images": "{name: x}", "replicas": "{name: x, count: 1}",
		"labels": "{pairs: {a: b}}", "configMapGenerator": "{name: x}", "secretGenerator": "{name: x}",
	} {
		text := "resources: [a.yaml]\n" + field + ":\n" + strings.Repeat("- "+entry+"\n", 2001)
		tree := newTree(map[string]string{"apps/shop/kustomization.yaml": text, "apps/shop/a.yaml": configMap("a"), "apps/shop/r.yaml": "[]\n"})
		_, err := render.New(render.InProcess{}).Render(tree, plainShop(rollout.Directory{}), rollout.Commit{})
		compare.CheckNamed(t, field, "apps/shop/a.yaml: brings the build to more than 2000 objects; split the app", fmt.Sprint(err))
	}
}

// selfish is a tree in which each folder has two subfolders, at every depth.
type selfish struct{ *memTree }

func (selfish) ReadDir(string) ([]rollout.Entry, error) {
	return []rollout.Entry{{Name: "l", Kind: rollout.Dir}, {Name: "r", Kind: rollout.Dir}}, nil
}
