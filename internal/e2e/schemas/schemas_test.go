package schemas

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/render/schema"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// checker compiles the schemas.
func checker(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	compiled := map[string]*jsonschema.Schema{}
	for _, name := range schema.Names() {
		data, err := schema.Of(name)
		must(t, err)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		must(t, err)
		c := jsonschema.NewCompiler()
		must(t, c.AddResource(schema.URL(name), doc))
		if compiled[name], err = c.Compile(schema.URL(name)); err != nil {
			t.Fatalf("%s is no schema: %v", name, err)
		}
	}
	return compiled
}

// ours matches the text of a document that may have a schema.
var ours = regexp.MustCompile(`gitrollout\.dev/|argoproj\.io/`)

// errorsIn validates the documents of a file that have a schema. It returns the errors and the number of validated documents.
func errorsIn(t *testing.T, schemas map[string]*jsonschema.Schema, file string, data []byte) (errs []error, checked int) {
	t.Helper()
	for _, text := range regexp.MustCompile(`(?m)^---.*$`).Split(string(data), -1) {
		if !ours.MatchString(text) {
			continue
		}
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			continue // not YAML, such as a generator's data
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		object, _ := doc.(map[string]any)
		version, _ := object["apiVersion"].(string)
		kind, _ := object["kind"].(string)
		name := schemaFor(version, kind)
		if name == "" {
			continue
		}
		checked++
		if err := schemas[name].Validate(doc); err != nil {
			errs = append(errs, err)
		}
	}
	return errs, checked
}

// bad matches the paths of intentionally invalid files, and of files with only a part of a document.
var bad = regexp.MustCompile(`(^|/)bad/|patch|/testdata/invalid/|internal/e2e/badinput|schema/testdata|want`)

// TestGoodDocuments checks every example, every valid document of the tests, and every document in the documentation.
func TestGoodDocuments(t *testing.T) {
	schemas, total := checker(t), map[string]int{}
	check := func(file string, data []byte) {
		if bad.MatchString(file) {
			return
		}
		errs, n := errorsIn(t, schemas, file, data)
		total[filepath.Ext(file)] += n
		for _, err := range errs {
			t.Errorf("%s: %v", file, err)
		}
	}
	fence := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")
	err := filepath.WalkDir("../../..", func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == ".git" || e.Name() == "bin") {
			return filepath.SkipDir
		}
		if !slices.Contains([]string{".yaml", ".yml", ".txtar", ".md"}, filepath.Ext(file)) {
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		switch filepath.Ext(file) {
		case ".txtar":
			for _, f := range txtar.Parse(data).Files {
				if strings.HasSuffix(f.Name, ".yaml") {
					check(file+"/"+f.Name, f.Data)
				}
			}
		case ".md":
			for _, m := range fence.FindAllSubmatch(data, -1) {
				check(file, m[1])
			}
		default:
			check(file, data)
		}
		return nil
	})
	must(t, err)
	t.Logf("checked %v", total)
	if total[".yaml"] < 30 || total[".md"] < 5 {
		t.Errorf("checked only %v documents", total)
	}
}

// TestBadDocuments checks that the schemas refuse most documents that render refuses, so that an editor shows the
// error. Schemas cannot find errors that depend on the rest of the app, or on another file.
func TestBadDocuments(t *testing.T) {
	schemas := checker(t)
	files, err := filepath.Glob("../../../render/testdata/invalid/*/*.txtar")
	must(t, err)
	documents, refused := map[string]int{}, map[string]int{}
	var missed []string
	formal := 0
	for _, file := range files {
		folder := filepath.Base(filepath.Dir(file))
		archive, err := txtar.ParseFile(file)
		must(t, err)
		if filepath.Base(file) == "base.txtar" {
			continue
		}
		wrong, checked := 0, 0
		for _, f := range archive.Files {
			errs, n := errorsIn(t, schemas, f.Name, f.Data)
			wrong, checked = wrong+len(errs), checked+n
		}
		if checked == 0 {
			continue
		}
		documents[folder]++
		if wrong > 0 {
			refused[folder]++
		}
		if byForm.Match(archive.Comment) {
			formal++
			if wrong == 0 {
				missed = append(missed, strings.TrimPrefix(file, "../../../render/testdata/invalid/"))
			}
		}
	}
	t.Logf("refused %v of %v; of %d wrong by their form %v are accepted", refused, documents, formal, missed)
	if formal < 90 || 100*len(missed) > 3*formal {
		t.Errorf("of %d that are wrong by their form %v are accepted", formal, missed)
	}
	// Schemas cannot refuse all documents: some are invalid only because of another object, such as a Service.
	for folder, least := range map[string]int{"rollout": 85, "analysis": 47, "traffic": 62} {
		if refused[folder] < least {
			t.Errorf("%s: %d of %d refused, want %d", folder, refused[folder], documents[folder], least)
		}
	}
}

// byForm matches messages about a field that is unknown, of the wrong type or out of range.
var byForm = regexp.MustCompile(`is not a known field|must be (a |true)|is not supported here|is not supported yet|` +
	`is not a field of Argo|is not a duration|is negative|is not one of|is not supported; |must be inPlace`)

// TestServicesHaveTheirOwnFields checks that the schema of notifications allows each service only the service's own fields.
func TestServicesHaveTheirOwnFields(t *testing.T) {
	schemas := checker(t)
	const head = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps: [{path: a}]\nnotifications:\n"
	for text, want := range map[string]bool{
		"- {name: team, slack: {url: {env: GITROLLOUT_NOTIFY_SLACK}}}":                                                     true,
		"- {name: team, slack: {token: {secretRef: {name: s, key: k}}, channel: releases}, events: [aborted], apps: [a*]}": true,
		"- {name: mail, email: {host: mail, from: a@example.com, to: [b@example.com]}}":                                    true,
		"- {name: team, slack: {host: mail}}":                                                                              false,
		"- {name: mail, email: {host: mail}}":                                                                              false,
		"- {name: two, slack: {}, discord: {url: {env: X}}}":                                                               false,
		"- {name: none}":               false,
		"- {discord: {url: {env: X}}}": false,
		"- {name: team, discord: {url: {env: X}}, events: [everything]}": false,
	} {
		errs, n := errorsIn(t, schemas, "config.yaml", []byte(head+text+"\n"))
		if n != 1 || (len(errs) == 0) != want {
			t.Errorf("%s: %d documents, errors %v, want valid %v", text, n, errs, want)
		}
	}
}

// schemaFor returns the name of a document's schema, or "" if the document has no schema.
func schemaFor(apiVersion, documentKind string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	switch {
	case group != "gitrollout.dev" && group != "argoproj.io":
		return ""
	case documentKind == "Rollout" && group == "argoproj.io":
		return "argo-rollout"
	case documentKind == "Rollout", strings.HasSuffix(documentKind, "AnalysisTemplate"):
		return strings.ToLower(documentKind)
	case group == "gitrollout.dev" && slices.Contains([]string{"Config", "Promotion", "Freeze", "Vendor"}, documentKind):
		return strings.ToLower(documentKind)
	default:
		return ""
	}
}
