package render_test

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// checkPage fails the test unless a page of the reference has the wanted content. With -update it writes the page.
func checkPage(t *testing.T, page, want string) {
	t.Helper()
	if *update {
		must(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	got, err := os.ReadFile(page)
	must(t, err)
	compare.CheckNamed(t, page+" differs from the code, rewrite it with -update", want, string(got))
}

// fieldRows returns the table rows for the fields of a mapping and of nested mappings. If a mapping occurs in several
// places, only the first place has rows.
func fieldRows(path string, of reflect.Type, seen map[reflect.Type]string) []string {
	seen[of] = path
	var rows, below []string
	for _, f := range rollout.Fields(of) {
		if f.Name == "" || f.Name == rollout.Rest {
			continue
		}
		at := strings.TrimPrefix(path+"."+f.Name, ".")
		done, note := "read", ""
		for _, s := range []struct{ tag, text string }{
			{"ignored", "ignored, with a warning"}, {"notYet", "refused: not supported yet"}, {"refused", "refused"},
			{"own", "read of a `gitrollout.dev` Rollout only"}, {"argo", "read of an `argoproj.io` Rollout only"},
		} {
			if f.Has(s.tag) {
				done, note = s.text, f.Tag.Get(s.tag)
				break
			}
		}
		t := f.Type
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			if t.Kind() == reflect.Slice {
				at += "[]"
			}
			t = t.Elem()
		}
		_, self := reflect.New(t).Interface().(rollout.Selfread)
		switch first, again := seen[t]; {
		case t.Kind() != reflect.Struct || self || f.Has("ignored"):
		case again:
			note = strings.TrimPrefix(note+"; same fields as `"+first+"`", "; ")
		default:
			below = append(below, fieldRows(at, t, seen)...)
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", strings.TrimSuffix(at, "[]"), done, note))
	}
	slices.Sort(rows)
	return append(rows, below...)
}

func TestFieldsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# The fields of a Rollout

<!-- Written by go test ./render -run TestFieldsPage -update. -->

Every field that is known of a ` + "`Rollout`" + ` document, of ` + "`argoproj.io/v1alpha1`" + ` or ` + "`gitrollout.dev/v1beta1`" + `, and
what is done with it. Any other field is an error that names the nearest known one. What the
fields mean is in [Writing a Rollout](../writing-a-rollout.md), [Blue-green](../blue-green.md),
[Routing requests](../traffic.md), which has each router's own fields, and
[Analysis](../analysis.md).

| field | what is done with it | instead, or why |
|---|---|---|
`)
	spec, _ := render.Form().FieldByName("Spec")
	for _, row := range fieldRows("spec", spec.Type.Elem(), map[reflect.Type]string{}) {
		b.WriteString(row)
	}
	checkPage(t, "../docs/reference/fields.md", b.String())
}

// TestFieldsAreDocumented checks that each field that gitrollout reads is on a page. Ignored fields are on the page about Argo Rollouts.
func TestFieldsAreDocumented(t *testing.T) {
	var pages [2]string // the text of all pages, and of the page about Argo Rollouts
	for _, name := range []string{"writing-a-rollout", "blue-green", "traffic", "analysis", "windows", "coming-from-argo-rollouts"} {
		page, err := os.ReadFile("../docs/" + name + ".md")
		must(t, err)
		pages[0], pages[1] = pages[0]+string(page), string(page)
	}
	fields := 0
	eachMapping(render.Form(), func(path string, f rollout.Field) {
		text := pages[0]
		if fields++; f.Has("notYet") || f.Has("ignored") {
			text = pages[1]
		}
		structure := slices.Contains([]string{"", "*", "apiVersion", "kind", "metadata", "spec", "status", "name"}, f.Name)
		if !structure && !f.Has("refused") && !regexp.MustCompile("[`.{]"+regexp.QuoteMeta(f.Name)+"[`:.]").MatchString(text) {
			t.Errorf("no page tells of %s", path)
		}
	})
	if fields < 100 {
		t.Errorf("found %d fields", fields)
	}
}

// eachMapping visits the fields of a struct and of nested structs, each struct once.
func eachMapping(of reflect.Type, visit func(path string, f rollout.Field)) {
	seen := map[reflect.Type]bool{}
	var walk func(path string, of reflect.Type)
	walk = func(path string, of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] {
			return
		}
		seen[of] = true
		for _, f := range rollout.Fields(of) {
			visit(path+"."+f.Name, f)
			walk(path+"."+f.Name, f.Type)
		}
	}
	walk("", of)
}

// TestTags checks that the reader knows each struct tag of DocumentForm, and each format that a tag names.
func TestTags(t *testing.T) {
	for _, argo := range []bool{true, false} {
		r := rollout.Reader{Argo: argo}
		raw := map[string]any{"spec": map[string]any{"strategy": map[string]any{"canary": map[string]any{"trafficRouting": map[string]any{}}}}}
		if r.Read("", raw, new(render.DocumentForm)); r.Err != nil {
			t.Errorf("defaults: %v", r.Err)
		}
	}
	known := strings.Fields("json field needs default oneOf is like min max fix own argo notYet refused ignored " +
		"one none many some names unknown")
	tag := regexp.MustCompile(`(\w+):"(?:[^"\\]|\\.)*"`)
	eachMapping(render.Form(), func(path string, f rollout.Field) {
		for _, m := range tag.FindAllStringSubmatch(string(f.Tag), -1) {
			if !slices.Contains(known, m[1]) {
				t.Errorf("%s: no code reads the tag %s", path, m[1])
			}
		}
		for _, key := range []string{"is", "like"} {
			if _, ok := rollout.Formats()[f.Tag.Get(key)]; f.Has(key) && !ok {
				t.Errorf("%s: %s is not a format", path, f.Tag.Get(key))
			}
		}
	})
}

// about matches the object at the end of a message. Messages that differ only in the object are listed once.
var about = regexp.MustCompile(` \((Rollout|Deployment|AnalysisTemplate|ClusterAnalysisTemplate|Service|Ingress|[A-Z][A-Za-z]+)/[^)]*\)$`)

func TestErrorsPage(t *testing.T) {
	titles := map[string]string{
		"kustomize": "Kustomizations and objects", "rollout": "Rollouts and Deployments", "traffic": "Routing requests", "analysis": "Analysis",
	}
	var b strings.Builder
	b.WriteString(`# Errors and their fixes

<!-- Written by go test ./render -run TestErrorsPage -update. -->

An error in a repository holds its app: the running version stays, and ` + "`gitrollout get`" + `,
` + "`gitrollout validate`" + ` and an Event name file, field, value and fix. These are the messages for all inputs
that the tests reject, each with an example of a field and a value. Errors of other kinds are in
[Troubleshooting](../troubleshooting.md).
`)
	for _, folder := range []string{"kustomize", "rollout", "traffic", "analysis"} {
		rows := map[string]bool{}
		for file, repo := range rejectedRepos(t, folder) {
			err := rejection(t, file, repo)
			msg := err.Msg
			if m := about.FindStringIndex(msg); m != nil {
				msg = msg[:m[0]]
			}
			field := ""
			if err.Field != "" {
				field = "`" + err.Field + "`"
			}
			rows[fmt.Sprintf("| %s | %s | %s |\n", cell(field), cell(msg), cell(err.Fix))] = true
		}
		fmt.Fprintf(&b, "\n## %s\n\n| field | message | fix |\n|---|---|---|\n", titles[folder])
		for _, row := range slices.Sorted(maps.Keys(rows)) {
			b.WriteString(row)
		}
	}
	checkPage(t, "../docs/reference/errors.md", b.String())
}

// cell escapes a text for a cell of a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "](", "] (", "<", "&lt;", "*", `\*`, "_", `\_`).Replace(text)
}
