package schema_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render/schema"
)

var update = flag.Bool("update", false, "rewrite docs/schemas")

const published = "../../docs/schemas"

// TestPublished checks that the files in docs/schemas are the schemas that the code generates.
func TestPublished(t *testing.T) {
	want := map[string]bool{}
	for _, name := range schema.Names() {
		data, err := schema.Of(name)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(published, name+".json")
		want[name+".json"] = true
		if *update {
			if err := os.WriteFile(file, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		compare.CheckNamed(t, file+", rewrite it with go test ./render/schema -update", string(data), string(got))
	}
	files, err := os.ReadDir(published)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".json") && !want[f.Name()] {
			t.Errorf("%s/%s is of no kind", published, f.Name())
		}
	}
}
