package schema

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gitrollout.dev/gitrollout/render"
)

var update = flag.Bool("update", false, "rewrite docs/schemas")

const published = "../../docs/schemas"

// TestPublished holds that docs/schemas has what the code says, and nothing else.
func TestPublished(t *testing.T) {
	want := map[string]bool{}
	for _, name := range Names() {
		data, err := Of(name)
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
		if diff := cmp.Diff(string(data), string(got)); diff != "" {
			t.Errorf("%s (-code +file, rewrite with go test ./schema -update):\n%s", file, diff)
		}
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

// TestFieldsHaveTypes holds that no field of render's tables is taken for a text
// because somebody forgot to say what it is.
func TestFieldsHaveTypes(t *testing.T) {
	texts := map[string][]string{
		"arg": {"value"}, "canary": {"canaryService", "stableService"}, "blueGreen": {"previewService"}, "dryRun": {"metricName"},
		"retention": {"metricName"}, "fieldRef": {"fieldPath"}, "headerRoute": nil, "pause": {"timeZone", "until"},
	}
	for _, argo := range []bool{false, true} {
		m := &maker{argo: argo, sections: render.Sections(argo)}
		for section, fields := range m.sections {
			if section == "trafficRouting" || section == "plugins" {
				continue // by the routers
			}
			types := m.types(section)
			for _, f := range fields {
				_, typed := types[f.Name]
				if !typed && !f.Ignored && !strings.Contains(" "+strings.Join(texts[section], " ")+" ", " "+f.Name+" ") {
					t.Errorf("%s.%s has no type", section, f.Name)
				}
			}
		}
	}
}
