package render_test

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// TestSameBytesAsKustomize builds each kustomization of the corpus and of the examples twice: from a tree, and with
// kustomize from a checkout. Both builds must return the same bytes.
func TestSameBytesAsKustomize(t *testing.T) {
	features, err := filepath.Glob("testdata/corpus/*")
	must(t, err)
	features = append(features, "testdata/getting-started", "../examples")
	builds := 0
	for _, feature := range features {
		files := readFiles(t, feature)
		tree := newTree(files)
		checkout := t.TempDir()
		writeFiles(t, checkout, files)
		for _, dir := range kustomizations(files) {
			if strings.HasPrefix(dir, "encrypted/") {
				continue // kustomize does not decrypt
			}
			t.Run(filepath.Base(feature)+"/"+dir, func(t *testing.T) {
				compareBuilds(t, tree, checkout, dir, feature == "testdata/corpus/openapi")
			})
			builds++
		}
	}
	if builds < 45 {
		t.Errorf("%d builds compared, want at least 45: the corpus has shrunk", builds)
	}
}

// kustomizations returns the folders that kustomize can build. It omits components, which are no builds.
func kustomizations(files map[string]string) []string {
	var dirs []string
	for name, content := range files {
		if slices.Contains(render.KustomizationNames, path.Base(name)) && !strings.Contains(content, "kind: Component") {
			dirs = append(dirs, path.Dir(name))
		}
	}
	if _, ok := files["linkedapp"]; ok {
		dirs = append(dirs, "linkedapp")
	}
	slices.Sort(dirs)
	return dirs
}

func compareBuilds(t *testing.T, tree rollout.Tree, checkout, dir string, ownSchema bool) {
	if dir == "." {
		dir = ""
	}
	want, wantErr := render.OnDisk(filepath.Join(checkout, dir), ownSchema)
	got, objects, err := render.BuildYAML(tree, dir)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("error %v, kustomize on disk: %v", err, wantErr)
	}
	if err != nil {
		t.Logf("both refuse: %v", err)
		return
	}
	compare.CheckNamed(t, "bytes, want kustomize's", string(want), string(got))
	// Decoding the printed text must give the same objects, including the types of numbers.
	var fromText []rollout.Object
	for _, doc := range strings.Split("\n"+string(want), "\n---\n") {
		raw, err := yaml.YAMLToJSON([]byte(doc))
		must(t, err)
		object, err := render.DecodeObject(raw)
		must(t, err)
		fromText = append(fromText, object)
	}
	compare.CheckNamed(t, "objects, want the printed ones", fromText, objects)
}

// TestSchemaDoesNotLeak checks that a build with a custom schema does not change later builds with the built-in schema.
func TestSchemaDoesNotLeak(t *testing.T) {
	tree := newTree(readFiles(t, "testdata/corpus/openapi"))
	build := func(dir string) string {
		text, _, err := render.BuildYAML(tree, dir)
		must(t, err)
		return string(text)
	}
	before := build("plain")
	build("app")
	compare.CheckNamed(t, "after a schema", before, build("plain"))
	if version := openapi.GetSchemaVersion(); strings.Contains(version, "custom") {
		t.Errorf("schema in place: %s", version)
	}
}
