package e2e

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
	spdx "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
)

// TestSBOMsAreOfTheirFormats checks one SBOM with CycloneDX's schema and reader, and the other SBOM with the reader
// of SPDX's tools. Each relationship must connect two listed packages.
func TestSBOMsAreOfTheirFormats(t *testing.T) {
	t.Parallel()
	base := filepath.Join(releaseOf(t), releasedFiles)
	text := []byte(readText(t, base+".cdx.json"))
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil ||
		bom.SpecVersion != cyclonedx.SpecVersion1_6 {
		t.Errorf("version %s, %v", bom.SpecVersion, err)
	}
	schema := cycloneSchema(t)
	broken := bytes.Replace(text, []byte(`"type": "library"`), []byte(`"type": "librarian"`), 1)
	for name, data := range map[string][]byte{"as it is": text, "broken": broken} {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		must(t, err)
		if err := schema.Validate(document); (err != nil) != (name == "broken") {
			t.Errorf("%s: %v", name, err)
		}
	}
	document, err := spdx.Read(strings.NewReader(readText(t, base+".spdx.json")))
	must(t, err)
	known := map[common.ElementID]bool{document.SPDXIdentifier: true}
	for _, p := range document.Packages {
		known[p.PackageSPDXIdentifier] = true
	}
	for _, r := range document.Relationships {
		if !known[r.RefA.ElementRefID] || !known[r.RefB.ElementRefID] {
			t.Errorf("%s %s %s names an unknown element", r.RefA, r.Relationship, r.RefB)
		}
	}
	if len(document.Relationships) < 20 {
		t.Errorf("%d relationships", len(document.Relationships))
	}
}

func cycloneSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	must(t, err)
	c := jsonschema.NewCompiler()
	const at = "http://cyclonedx.org/schema/"
	for _, name := range []string{"bom-1.6.schema.json", "spdx.schema.json", "jsf-0.82.schema.json"} {
		file := strings.Replace(name, "jsf-0.82.schema.json", "jsf-0.82.schemax.json", 1) // as CycloneDX's Go module names the file
		file = filepath.Join(strings.TrimSpace(string(dir)), "schema", file)
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(readText(t, file)))
		if err == nil {
			err = c.AddResource(at+name, document)
		}
		must(t, err)
	}
	schema, err := c.Compile(at + "bom-1.6.schema.json")
	must(t, err)
	return schema
}
