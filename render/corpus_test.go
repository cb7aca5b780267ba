package render

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// buildYAML builds as the kustomize command does: it keeps Rollout documents among the objects, and adds no namespaces.
func buildYAML(tree rollout.Tree, dir string) ([]byte, []rollout.Object, error) {
	fs := newTreeFS(tree)
	p, err := inspect(fs, rollout.App{Path: dir, Namespace: "default"})
	if err != nil {
		return nil, nil, err
	}
	built, err := buildMap(fs, dir, p)
	if err != nil {
		return nil, nil, err
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, nil, err
	}
	objects, err := decode(fs, built, &p, nil)
	return text, objects, err
}

// onDisk runs the kustomize library on a checkout, with the options of the kustomize command. If own is true, the
// kustomization sets an OpenAPI schema, so that the build must run alone.
func onDisk(dir string, own bool) (out []byte, err error) {
	run := func() {
		built, runErr := krusty.MakeKustomizer(options()).Run(filesys.MakeFsOnDisk(), dir)
		if err = runErr; err == nil {
			out, err = built.AsYaml()
		}
	}
	if own {
		schema.alone(run)
	} else {
		schema.shared(run)
	}
	return out, err
}

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
		if slices.Contains(KustomizationNames, path.Base(name)) && !strings.Contains(content, "kind: Component") {
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
	want, wantErr := onDisk(filepath.Join(checkout, dir), ownSchema)
	got, objects, err := buildYAML(tree, dir)
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
		object, err := decodeObject(raw)
		must(t, err)
		fromText = append(fromText, object)
	}
	compare.CheckNamed(t, "objects, want the printed ones", fromText, objects)
}

// TestSchemaDoesNotLeak checks that a build with a custom schema does not change later builds with the built-in schema.
func TestSchemaDoesNotLeak(t *testing.T) {
	tree := newTree(readFiles(t, "testdata/corpus/openapi"))
	build := func(dir string) string {
		text, _, err := buildYAML(tree, dir)
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
