package traffic_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

var update = flag.Bool("update", false, "write the expected objects anew")

// example is one case of testdata: a router's configuration, a Route, and the objects from Git.
type example struct {
	name, kind string
	archive    *txtar.Archive
	config     any
	route      traffic.Route
	objects    []rollout.Object
}

// readExample reads the case with the given name, such as istio/weight.
func readExample(t testing.TB, name string) example {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	must(t, err)
	e := example{name: name, kind: filepath.Dir(name), archive: archive}
	e.config = read[any](t, e.section("config.yaml"))
	must(t, yaml.UnmarshalStrict([]byte(e.section("route.yaml")), &e.route))
	e.objects = objectsIn(t, e.section("before.yaml"))
	return e
}

func examples(t testing.TB) (all []example) {
	t.Helper()
	for _, kind := range traffic.Kinds() {
		files, err := filepath.Glob(filepath.Join("testdata", kind, "*.txtar"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no cases (%v)", kind, err)
		}
		for _, file := range files {
			all = append(all, readExample(t, kind+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar")))
		}
	}
	return all
}

// accepted returns the cases that expect no error, for the given kinds of routers or for all kinds.
func accepted(t testing.TB, kinds ...string) []example {
	t.Helper()
	return slices.DeleteFunc(examples(t), func(e example) bool {
		return e.section("error.txt") != "" || len(kinds) > 0 && !slices.Contains(kinds, e.kind)
	})
}

// section returns the content of a file in the case, or "" if there is no such file.
func (e example) section(name string) string {
	f, _ := rollout.Find(e.archive.Files, func(f txtar.File) bool { return f.Name == name })
	return string(f.Data)
}

// TestOverlays checks each case testdata/KIND/CASE.txtar. A case has a router's configuration, a Route and objects. The expected result is
// in after.yaml or, for an error, in error.txt. The given objects must not be modified.
func TestOverlays(t *testing.T) {
	for _, e := range examples(t) {
		t.Run(e.name, func(t *testing.T) {
			untouched := manifests(t, e.objects)
			after, problem := "", ""
			objects, err := lay(t, e.kind, e.config, e.route, e.objects)
			if err != nil {
				problem = err.Error() + "\n"
				var known *rollout.InvalidError
				if !errors.As(err, &known) {
					t.Errorf("the error is no InvalidError: %T", err)
				}
			} else {
				after = manifests(t, objects.List())
			}
			compare.CheckNamed(t, "the objects before were changed", untouched, manifests(t, e.objects))
			if *update {
				e.write(t, after, problem)
				return
			}
			compare.CheckNamed(t, "error", e.section("error.txt"), problem)
			compare.CheckNamed(t, "after", e.section("after.yaml"), after)
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lay applies a Route to objects. It also checks that the overlay does not change the configuration, because all Routes of an app share it.
func lay(t testing.TB, kind string, config any, route traffic.Route, before []rollout.Object) (*traffic.Objects, error) {
	t.Helper()
	parsed, err := traffic.Parse(kind, config, nil)
	if err != nil {
		return nil, err
	}
	written := dump(t, parsed.Config)
	objects := traffic.NewObjects(before)
	err = traffic.Overlay(objects, []rollout.Router{parsed}, route)
	compare.CheckNamed(t, "the configuration was changed", written, dump(t, parsed.Config))
	return objects, err
}

func dump(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.MarshalIndent(v, "", " ")
	must(t, err)
	return string(raw)
}

// read decodes YAML as package render does: whole numbers become int64.
func read[T any](t testing.TB, written string) T {
	t.Helper()
	raw, err := yaml.YAMLToJSONStrict([]byte(written))
	if err != nil {
		t.Fatalf("%v:\n%s", err, written)
	}
	v, err := rollout.FromJSON[T](raw)
	must(t, err)
	return v
}

func objectsIn(t testing.TB, written string) (objects []rollout.Object) {
	t.Helper()
	for _, doc := range strings.Split(written, "---\n") {
		if o := read[map[string]any](t, doc); o != nil {
			objects = append(objects, o)
		}
	}
	return objects
}

func manifests(t testing.TB, objects []rollout.Object) string {
	t.Helper()
	var docs []string
	for _, o := range objects {
		raw, err := yaml.Marshal(o)
		must(t, err)
		docs = append(docs, string(raw))
	}
	return strings.Join(docs, "---\n")
}

// write replaces the expected result in the case's file.
func (e example) write(t *testing.T, after, problem string) {
	t.Helper()
	for _, f := range []txtar.File{{Name: "after.yaml", Data: []byte(after)}, {Name: "error.txt", Data: []byte(problem)}} {
		e.archive.Files = slices.DeleteFunc(e.archive.Files, func(was txtar.File) bool { return was.Name == f.Name })
		if len(f.Data) > 0 {
			e.archive.Files = append(e.archive.Files, f)
		}
	}
	must(t, os.WriteFile(filepath.Join("testdata", e.name+".txtar"), txtar.Format(e.archive), 0o644))
}
