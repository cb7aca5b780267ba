package chart_test

import (
	"errors"
	"regexp"
	"testing"

	"gitrollout.dev/gitrollout/render/chart"
	"gitrollout.dev/gitrollout/rollout"
)

// unbounded matches functions with which a short template can use unlimited time or memory. Only a process with limits may render such
// templates.
var unbounded = regexp.MustCompile(`include|template|define|block|tpl|until|seq|repeat|` +
	`rand|gen|indent|derive|range|break|pow|wrap|printf|%|abbrev`)

// FuzzChart renders any template with any values and schema. Two renders must have the same result. An error must be an InvalidError.
func FuzzChart(f *testing.F) {
	for _, seed := range [][3]string{
		{"a: {{ .Values.a | quote }}", "a: 1\n", ""},
		{"{{ if .Values.on }}{{ fail .Values.on }}{{ end }}", "on: no\n", `{"properties": {"on": {"type": "string"}}}`},
		{"x: {{ now | date .Values.layout }}", "layout: '2006'\n", ""},
		{"{{ keys .Values | join \",\" }}: {{ values .Values | toJson }}", "b: {c: [1, null]}\na: 2\n", `{"$ref": "https://example.com/x"}`},
		{"{{ with .Files.Get \"values.yaml\" }}{{ . | fromYaml | toToml }}{{ end }}", "a: {b: 1.5}\n", ""},
		{"---\nkind: a\n---\n{{ lookup \"v1\" \"a\" \"b\" \"c\" }}{{ .Release }}", "", ""},
		{"{{ dig \"a\" \"b\" 0 (dict) }}{{ .Values.x.y }}", "x: {y: {}}\n", "{"},
		{"kind: Job\nmetadata: {annotations: {helm.sh/hook: pre-install}}", "---\na: 1\n---\na: 2\n", ""},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, template, values, schema string) {
		if len(template)+len(values)+len(schema) > 2000 || unbounded.MatchString(template) || unbounded.MatchString(values) {
			t.Skip()
		}
		files := shop("templates/a.yaml", template, "values.yaml", values)
		if schema != "" {
			files = append(files, chart.File{"values.schema.json", []byte(schema)})
		}
		var texts []string
		for range 2 {
			out, err := chart.Render(files, chart.Release{Name: "eu", Namespace: "shop", CRDs: true})
			var invalid *rollout.InvalidError
			if err != nil && (!errors.As(err, &invalid) || invalid.File == "" || invalid.Msg == "") {
				t.Fatalf("error %v", err)
			}
			text := ""
			if err != nil {
				text = err.Error()
			} else {
				for _, d := range out.Documents {
					text += d.Source + "\n" + d.Text + d.Hook + "\n---\n"
				}
			}
			texts = append(texts, text)
		}
		if texts[0] != texts[1] {
			t.Errorf("first\n%s\nthen\n%s", texts[0], texts[1])
		}
	})
}
