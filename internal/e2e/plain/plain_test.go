package plain

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/kustomize/v5/commands/create"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/worktree"
	"gitrollout.dev/gitrollout/rollout"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func object(kind, name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {name: %s, namespace: shop}\n", kind, name)
}

// write writes files to paths below a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for file, content := range files {
		file = filepath.Join(dir, file)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(content), 0o644))
	}
}

// trees returns typical folders of manifests by description. Each folder maps paths to content.
func trees() map[string]map[string]string {
	base := "resources: [own.yaml]\nnamePrefix: base-\n"
	all := map[string]map[string]string{
		"one file":          {"app.yaml": object("ConfigMap", "a")},
		"several documents": {"app.yaml": object("ConfigMap", "a") + "---\n" + object("Service", "a")},
		"an empty document": {"app.yaml": "---\n" + object("ConfigMap", "a") + "---\n"},
		"three endings": {"a.yaml": object("ConfigMap", "a"), "b.yml": object("ConfigMap", "b"),
			"c.json": `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}}`},
		"files that are no manifests": {"a.yaml": object("ConfigMap", "a"), "README.md": "# Shop\n", "script.sh": "exit 0\n"},
		"folders": {"a.yaml": object("ConfigMap", "a"), "web/b.yaml": object("ConfigMap", "b"),
			"web/deep/c.yaml": object("ConfigMap", "c")},
		"nothing at the top": {"web/b.yaml": object("ConfigMap", "b")},
		"a kustomization below": {"a.yaml": object("ConfigMap", "a"), "base/kustomization.yaml": base,
			"base/own.yaml": object("ConfigMap", "own"), "base/other.yaml": object("ConfigMap", "other")},
		"a kustomization of another name": {"a.yaml": object("ConfigMap", "a"), "base/Kustomization": base,
			"base/own.yaml": object("ConfigMap", "own")},
		"names that need quotes": {"a b.yaml": object("ConfigMap", "a"), "#c.yaml": object("ConfigMap", "c"),
			"true.yaml": object("ConfigMap", "d"), "1.yaml": object("ConfigMap", "e")},
		"a hidden file": {".a.yaml": object("ConfigMap", "a"), "b.yaml": object("ConfigMap", "b")},
		"a list": {"all.yaml": "apiVersion: v1\nkind: List\nitems:\n" +
			"- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}\n" +
			"- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: shop}}\n"},
		"a namespace, in kustomize's order": {"a.yaml": object("ConfigMap", "a"),
			"z.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"},
	}
	for n := 2; len(all) < 20; n++ {
		files := map[string]string{}
		for i := range n {
			name := fmt.Sprintf("f%d", i)
			files[filepath.Join(fmt.Sprintf("d%d", i%n/2), name+".yaml")] = object([]string{"Service", "ConfigMap", "Secret"}[i%3], name)
		}
		all[fmt.Sprintf("%d files in folders", n)] = files
	}
	return all
}

// TestSameAsCreate renders each folder of trees, and compares the objects and their order with `kustomize create --autodetect --recursive
// && kustomize build`.
func TestSameAsCreate(t *testing.T) {
	for name, files := range trees() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "shop"), files)
			tree, err := worktree.OpenHashed(dir)
			must(t, err)
			app := rollout.App{Name: "shop", Path: "shop", Namespace: "shop", Plain: true, Directory: rollout.Directory{Recurse: true}}
			built, err := render.New(render.InProcess{}).Render(tree, app, rollout.Commit{})
			must(t, err)
			var got []any
			for _, o := range built.Objects {
				got = append(got, map[string]any(o))
			}
			compare.Check(t, text(t, created(t, filepath.Join(dir, "shop"))), text(t, got))
		})
	}
}

// created runs kustomize create in a folder, and returns the objects that kustomize then builds.
func created(t *testing.T, dir string) (objects []any) {
	t.Helper()
	t.Chdir(dir)
	fs := filesys.MakeFsOnDisk()
	cmd := create.NewCmdCreate(fs, provider.NewDefaultDepProvider().GetResourceFactory())
	cmd.SetArgs([]string{"--autodetect", "--recursive"})
	must(t, cmd.Execute())
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	built, err := krusty.MakeKustomizer(options).Run(fs, dir)
	must(t, err)
	for _, r := range built.Resources() {
		o, err := r.Map()
		must(t, err)
		objects = append(objects, o)
	}
	return objects
}

func text(t *testing.T, objects []any) string {
	t.Helper()
	data, err := yaml.Marshal(objects)
	must(t, err)
	return string(data)
}
