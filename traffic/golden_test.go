package traffic

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

var update = flag.Bool("update", false, "write the expected objects anew")

// TestOverlays runs testdata/KIND/CASE.txtar: a router's block of trafficRouting, a route, and the objects before. The
// expected result is after.yaml, or error.txt for an error. Each case also checks that the objects before are not
// modified.
func TestOverlays(t *testing.T) {
	for _, r := range table {
		files, err := filepath.Glob(filepath.Join("testdata", r.kind, "*.txtar"))
		if err != nil || len(files) == 0 {
			t.Errorf("router %s has no cases in testdata/%s (%v)", r.kind, r.kind, err)
		}
		for _, file := range files {
			t.Run(r.kind+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { playOverlay(t, r.kind, file) })
		}
	}
}

func playOverlay(t *testing.T, kind, file string) {
	archive, err := txtar.ParseFile(file)
	must(t, err)
	var config any
	section(t, archive, "config.yaml", &config)
	var route Route
	section(t, archive, "route.yaml", &route)
	before := objectsOf(t, archive, "before.yaml")
	untouched := bytesOf(t, before)

	after, problem := "", ""
	objects, err := lay(t, kind, config, route, before)
	if err != nil {
		problem = err.Error() + "\n"
		var known *rollout.InvalidError
		if !asError(err, &known) {
			t.Errorf("the error is no InvalidError: %T", err)
		}
	} else {
		after = string(bytesOf(t, objects.List()))
	}
	compare.CheckNamed(t, "the objects before were changed", string(untouched), string(bytesOf(t, before)))
	if *update {
		writeSections(t, file, archive, map[string]string{"after.yaml": after, "error.txt": problem})
		return
	}
	compare.CheckNamed(t, "error", sectionText(archive, "error.txt"), problem)
	compare.CheckNamed(t, "after", sectionText(archive, "after.yaml"), after)
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lay applies a route to objects, and checks that the configuration is unchanged: all routes of an app share it.
func lay(t testing.TB, kind string, config any, route Route, before []rollout.Object) (*Objects, error) {
	t.Helper()
	parsed, err := Parse(kind, config, nil)
	if err != nil {
		return nil, err
	}
	written := jsonOf(t, parsed.Config)
	objects := NewObjects(before)
	err = Overlay(objects, []rollout.Router{parsed}, route)
	if now := jsonOf(t, parsed.Config); now != written {
		t.Errorf("the configuration was changed from %s to %s", written, now)
	}
	return objects, err
}

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	must(t, err)
	return string(data)
}

func sectionText(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func section(t testing.TB, a *txtar.Archive, name string, into any) {
	t.Helper()
	raw, err := yaml.YAMLToJSONStrict([]byte(sectionText(a, name)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := decodeJSON(raw, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func objectsOf(t testing.TB, a *txtar.Archive, name string) []rollout.Object {
	t.Helper()
	var objects []rollout.Object
	for _, doc := range bytes.Split([]byte(sectionText(a, name)), []byte("---\n")) {
		raw, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var o rollout.Object
		if err := decodeJSON(raw, &o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if o != nil {
			objects = append(objects, o)
		}
	}
	return objects
}

func bytesOf(t *testing.T, objects []rollout.Object) []byte {
	t.Helper()
	var docs [][]byte
	for _, o := range objects {
		raw, err := yaml.Marshal(o)
		must(t, err)
		docs = append(docs, raw)
	}
	return bytes.Join(docs, []byte("---\n"))
}

func writeSections(t *testing.T, file string, a *txtar.Archive, sections map[string]string) {
	t.Helper()
	kept := a.Files[:0]
	for _, f := range a.Files {
		if _, replaced := sections[f.Name]; !replaced {
			kept = append(kept, f)
		}
	}
	a.Files = kept
	for _, name := range []string{"after.yaml", "error.txt"} {
		if sections[name] != "" {
			a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(sections[name])})
		}
	}
	must(t, os.WriteFile(file, txtar.Format(a), 0o644))
}
