package render_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/sopstest"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// chartOf returns the files of an app with a chart of one template. The caller must add the values file a/values.yaml.
func chartOf(template string) map[string]string {
	return map[string]string{
		"a/kustomization.yaml":           "resources: [deployment.yaml]\nhelmCharts: [{name: db, releaseName: db, valuesFile: values.yaml}]\n",
		"a/charts/db/Chart.yaml":         "apiVersion: v2\nname: db\nversion: 1.0.0\n",
		"a/charts/db/templates/all.yaml": template,
	}
}

// charted returns an app with a chart of one template and encrypted values.
func charted(t testing.TB, template, values string, key sopstest.Key) (rollout.App, map[string]string) {
	return encryptedApp(with(chartOf(template), "a/values.yaml", sopstest.Whole(t, "values.yaml", values, key)))
}

const (
	aConfigMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: db}\n"
	aSecret    = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\n"
)

// TestWhereEncryptedValuesMayBe checks encrypted values of each type. Each value is encrypted three times, because a build's substitute for
// the value depends on the ciphertext. With and without a key, an app that uses the value outside of a Secret's values is refused. The
// error has the field and the fix. Without a key, a Secret that uses the value is marked as sealed.
func TestWhereEncryptedValuesMayBe(t *testing.T) {
	key := sopstest.Age(t)
	noted := func(value string) string { return configMap("db, annotations: {x: \"{{ " + value + " }}\"}") }
	refused := map[string]struct{ template, field string }{
		"a text of a ConfigMap": {aConfigMap + `data: {x: "{{ .Values.v }}"}`, "data.x"},
		"a part of a text":      {aConfigMap + `data: {x: "is {{ .Values.v }}, is it not"}`, "data.x"},
		"a field of any type": {"apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: db}\nspec: {list: [1, {x: {{ .Values.v }}}]}",
			"spec.list[1].x"},
		"a label":                {configMap(`db, labels: {x: "v{{ .Values.v }}"}`), "metadata.labels.x"},
		"an annotation":          {configMap(`db, annotations: {a/x: "{{ .Values.v }}"}`), "metadata.annotations[a/x]"},
		"the type of a Secret":   {aSecret + `type: "x{{ .Values.v }}"`, "type"},
		"the name of an object":  {configMap(`"db-{{ .Values.v | toString | lower }}"`), "a/values.yaml: whether"},
		"the key of a value":     {aConfigMap + `data: {"x{{ .Values.v }}": y}`, "data"},
		"the key of a Secret":    {aSecret + `stringData: {"x{{ .Values.v }}": y}`, "stringData"},
		"a digest of few digits": {aConfigMap + `data: {x: "{{ .Values.v | toString | sha256sum | trunc 8 }}"}`, "data.x"},
		"base64 of a digest":     {noted(".Values.v | toString | sha256sum | b64enc"), "metadata.annotations.x"},
		"other digits of it":     {noted(`printf "%x" (toString .Values.v)`), "metadata.annotations.x"},
	}
	fine := map[string]string{
		"a value of a Secret": aSecret + `stringData: {x: "{{ .Values.v }}"}`,
		"a part of one":       aSecret + `stringData: {x: "is {{ .Values.v }}, is it not"}`,
		"base64 of it":        aSecret + `data: {x: "{{ printf "a:%v" .Values.v | b64enc }}"}`,
		"a digest of it":      aSecret + `stringData: {x: "{{ .Values.v | toString | sha256sum | trunc 8 }}"}`,
		"its length":          aSecret + `stringData: {x: "{{ .Values.v | toString | upper | quote | len }}"}`,
		"a digest in a ConfigMap": aSecret + "stringData: {x: \"{{ .Values.v }}\"}\n---\n" + aConfigMap +
			`data: {x: "{{ .Values.v | toString | sha1sum }}"}`,
	}
	values := map[string]string{"a text": "hunter2-in-git", "a number": "8080", "a switch": "true", "a fraction": "0.25",
		"a time": "2026-01-02T03:04:05Z"}
	times := 3
	if testing.Short() {
		times = 1
	}
	for kind, value := range values {
		for n := range times {
			for place, c := range refused {
				app, files := charted(t, c.template, "v: "+value+"\n", key)
				tree := newTree(files)
				for who, r := range map[string]*render.Renderer{"with a key": opener(t, key), "without": render.New(render.InProcess{})} {
					_, err := r.Render(tree, app, rollout.Commit{})
					var invalid *rollout.InvalidError
					if !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.field) || !strings.Contains(err.Error(), render.OnlyInSecrets) ||
						invalid.Fix == "" {
						t.Fatalf("%s, %s, %s, time %d: error %v, want %s", kind, place, who, n, err, c.field)
					}
				}
			}
			for place, template := range fine {
				if place == "its length" && kind != "a text" { // only the substitutes for a text differ in length
					continue
				}
				app, files := charted(t, template, "v: "+value+"\n", key)
				mustRender(t, opener(t, key), files, app)
				if text := inText(t, mustRender(t, render.New(render.InProcess{}), files, app)); !strings.Contains(text, rollout.AnnotationSealed) {
					t.Fatalf("%s, %s, time %d: without a key it would be applied: %s", kind, place, n, text)
				}
			}
		}
	}
}

// TestASwitchThatDecides checks that an app is refused if its number of objects depends on an encrypted value.
func TestASwitchThatDecides(t *testing.T) {
	key := sopstest.Age(t)
	times := 12
	if testing.Short() {
		times = 3
	}
	for name, c := range map[string]struct{ template, values string }{
		"an object":  {"{{ if .Values.v }}\n" + aConfigMap + "{{ end }}", "v: true\n"},
		"its other":  {"{{ if not .Values.v }}\n" + aConfigMap + "{{ end }}", "v: true\n"},
		"a field":    {aConfigMap + "{{ if .Values.v }}\ndata: {a: b}\n{{ end }}", "v: true\n"},
		"how many":   {"{{ range $i := until (mod .Values.v 2 | int) }}\n" + aConfigMap + "---\n{{ end }}", "v: 3\n"},
		"a failure":  {"{{ if .Values.v }}{{ fail \"no\" }}{{ end }}\n" + aConfigMap, "v: false\n"},
		"too many":   {"{{ if gt (int .Values.v) 10 }}{{ fail (printf \"%v are too many\" .Values.v) }}{{ end }}\n" + aConfigMap, "v: 3\n"},
		"an address": {`{{ urlParse (printf "x://%s%%zz" .Values.v) }}`, "v: a\n"},
		"a bad name": {configMap(`"{{ if .Values.v }}db{{ end }}"`), "v: true\n"},
	} {
		for range times {
			app, files := charted(t, c.template, c.values, key)
			_, err := opener(t, key).Render(newTree(files), app, rollout.Commit{})
			_, without := rendered(files, app)
			if err == nil || without == nil || err.Error() != without.Error() || !strings.Contains(err.Error(), render.OnlyInSecrets) {
				t.Fatalf("%s: error %v with a key, and %v without", name, err, without)
			}
		}
	}
}

// TestShortDigests checks that annotations may contain digests of encrypted values, also if a template shortens them to eight digits. The
// digests are equal with and without a key, because they depend only on the ciphertext.
func TestShortDigests(t *testing.T) {
	key := sopstest.Age(t)
	for _, digest := range []string{"sha256sum | trunc 8", "sha1sum | trunc 10", "sha256sum | trunc 63", "sha512sum"} {
		sum := "\"{{ .Values.v | " + digest + " }}\""
		template := aSecret + "stringData: {x: \"{{ .Values.v }}\"}\n---\napiVersion: apps/v1\nkind: Deployment\n" +
			"metadata: {name: b, annotations: {checksum/secret: " + sum + "}}\nspec:\n  selector: {matchLabels: {a: c}}\n  template:\n" +
			"    metadata: {labels: {a: c}, annotations: {checksum: " + sum + "}}\n    spec: {containers: [{name: c, image: \"c:1\"}]}\n"
		noted := map[string]bool{}
		for range 2 {
			app, files := charted(t, template, "v: hunter2-in-git\n", key)
			var notes []string
			for _, r := range []*render.Renderer{opener(t, key), render.New(render.InProcess{})} {
				for _, o := range mustRender(t, r, files, app).Objects {
					if note := o.Annotation("checksum/secret"); note != "" {
						notes = append(notes, note)
					}
				}
			}
			if len(notes) != 2 || notes[0] != notes[1] {
				t.Errorf("%s: %q with a key and without", digest, notes)
			}
			noted[notes[0]] = true
		}
		compare.CheckNamed(t, digest+" of two encryptions", 2, len(noted))
	}
}

// TestWhatLooksLikeADigest checks that a text like a digest is refused if a template selects this text by the password.
func TestWhatLooksLikeADigest(t *testing.T) {
	key := sopstest.Age(t)
	template := configMap(`db, annotations: {x: "{{ if eq .Values.v "hunter2-in-git" }}cafe{{ else }}beef{{ end }}` +
		strings.Repeat("0123456789", 4) + `"}`)
	app, files := charted(t, template, "v: hunter2-in-git\n", key)
	_, err := opener(t, key).Render(newTree(files), app, rollout.Commit{})
	compare.Contains(t, fmt.Sprint(err), render.OnlyInSecrets)
}

// TestTheOrderOfGeneratedSecrets checks that several generated Secrets are rendered, although builds with and without a key may sort them
// differently.
func TestTheOrderOfGeneratedSecrets(t *testing.T) {
	key := sopstest.Age(t)
	for range 20 {
		generators, files := "resources: [deployment.yaml]\nsecretGenerator:\n", map[string]string{}
		for _, name := range []string{"db", "db-c", "db-k", "db-4"} {
			generators += "- {name: " + name + ", envs: [" + name + ".env]}\n"
			files["a/"+name+".env"] = sopstest.Whole(t, name+".env", fmt.Sprintf("password=hunter%d\n", rand.IntN(1000)), key)
		}
		app, all := encryptedApp(with(files, "a/kustomization.yaml", generators))
		mustRender(t, opener(t, key), all, app)
	}
}
