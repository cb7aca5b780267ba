package chart_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render/chart"
	"gitrollout.dev/gitrollout/rollout"
)

const (
	main     = "apiVersion: v2\nname: shop\nversion: 1.0.0\n"
	subchart = "apiVersion: v2\nname: sub\nversion: 1.0.0\n"
)

var eu = chart.Release{Name: "eu"}

// shop returns a chart with Chart.yaml and other files. The arguments are the other files' names and contents in turn.
func shop(more ...string) []chart.File {
	files := []chart.File{{chart.Main, []byte(main)}}
	for i := 0; i+1 < len(more); i += 2 {
		files = append(files, chart.File{more[i], []byte(more[i+1])})
	}
	return files
}

func config(data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: " + data + "\n"
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// text returns the rendered text of a chart, or the error.
func text(files []chart.File) string {
	out, err := chart.Render(files, chart.Release{Name: "eu", Namespace: "shop"})
	if err != nil {
		return err.Error()
	}
	if len(out.ByChance) > 0 {
		return out.ByChance[0].Why.Error()
	}
	return strings.Join(rollout.Mapped(out.Documents, func(d chart.Document) string { return d.Text }), "\n")
}

// TestChanceIsRefused checks the error for a value that would differ at each render, for all common random functions. The error names the
// object, the field, the function, and the chart value to set.
func TestChanceIsRefused(t *testing.T) {
	const set = "; set secret.key in the values"
	for name, c := range map[string]struct{ call, function string }{
		"a password":    {`{{ .Values.secret.key | default (randAlphaNum 16) }}`, "randAlphaNum"},
		"one digit":     {`{{ .Values.secret.key | default (randNumeric 1) | quote }}`, "randNumeric"},
		"a key":         {`{{ .Values.secret.key | default (genPrivateKey "rsa") | b64enc }}`, "genPrivateKey"},
		"a certificate": {`{{ $ca := genCA "x" 365 }}{{ .Values.secret.key | default $ca.Cert }}`, "genCA"},
		"a signed one": {`{{ $c := genSignedCert "x" nil (list "a") 365 (genCA "ca" 365) }}{{ .Values.secret.key | default $c.Key }}`,
			"genCA, genSignedCert"},
		"an id":            {`{{ .Values.secret.key | default uuidv4 }}`, "uuidv4"},
		"a hash":           {`{{ .Values.secret.key | default (htpasswd "me" "x") | b64enc }}`, "htpasswd"},
		"another hash":     {`{{ .Values.secret.key | default (bcrypt "x") | b64enc }}`, "bcrypt"},
		"the time":         {`{{ .Values.secret.key | default (now | date "20060102") | quote }}`, "now"},
		"the year":         {`{{ .Values.secret.key | default (dateInZone "2006" now "UTC") | quote }}`, "now"},
		"a cipher":         {`{{ .Values.secret.key | default (encryptAES "k" "x") }}`, "encryptAES"},
		"a checksum of it": {`{{ .Values.secret.key | default (randBytes 8 | sha256sum) }}`, "randBytes"},
	} {
		t.Run(name, func(t *testing.T) {
			files := shop("templates/a.yaml", config(c.call), "values.yaml", "secret: {key: ''}\n")
			want := "templates/a.yaml: ConfigMap/a: data.x would differ at each render (" + c.function + ")" + set
			compare.Check(t, want, text(files))
			fixed := chart.Release{Name: "eu", Values: map[string]any{"secret": map[string]any{"key": "mine"}}}
			if out, err := chart.Render(files, fixed); err != nil || !strings.Contains(out.Documents[0].Text, "x: ") {
				t.Errorf("with the value: %v", err)
			}
		})
	}
}

// TestChanceThatDoesNotShow checks that a template may call random functions if its output is the same at each render. The template
// functions "keys" and "values" return a fixed order.
func TestChanceThatDoesNotShow(t *testing.T) {
	for name, c := range map[string]struct{ template, want string }{
		"a length":        {`{{ randAlpha 5 | len }}`, "5"},
		"a choice of one": {`{{ randInt 3 4 }}`, "3"},
		"is it a leap":    {`{{ if now }}yes{{ end }}`, "yes"},
		"keys":            {`{{ keys (dict "c" 1 "a" 2 "b" 3) | join "" }}`, "abc"},
		"values":          {`{{ values (dict "c" 1 "a" 2 "b" 3) | join "" }}`, "231"},
		"a given date":    {`{{ date "2006-01-02" (toDate "2006-01-02" "2020-03-04") }}`, "2020-03-04"},
		"a zone":          {`{{ dateInZone "15:04" 0 "Asia/Tokyo" }}`, "09:00"},
		"seconds":         {`{{ htmlDate 86400 }}`, "1970-01-02"},
		"no environment":  {`{{ "x" }}{{ getHostByName "localhost" }}`, "x"},
		"no cluster":      {`{{ lookup "v1" "Secret" "a" "b" | len }}`, "0"},
		"install":         {`{{ .Release.IsInstall }}{{ .Release.IsUpgrade }}{{ .Release.Revision }}`, "truefalse1"},
		"capabilities":    {`{{ .Capabilities.KubeVersion.Version }}{{ .Capabilities.APIVersions.Has "apps/v1" }}`, "v1.36.0true"},
	} {
		if got := text(shop("templates/a.yaml", config(c.template))); got != strings.TrimSpace(config(c.want)) && got != config(c.want) {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	for _, gone := range []string{"env", "expandenv"} {
		compare.Contains(t, text(shop("templates/a.yaml", config(`{{ `+gone+` "HOME" }}`))), `function "`+gone+`" not defined`)
	}
}

// TestSchemaStaysAtHome checks that references from a values schema to a URL or a local file are not followed. All
// other rules of the schema apply.
func TestSchemaStaysAtHome(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer server.Close()
	secret := filepath.Join(t.TempDir(), "s.json")
	must(t, os.WriteFile(secret, []byte(`{"type": "integer"}`), 0o600))
	schema := func(ref string) []chart.File {
		return shop("values.schema.json", `{"$schema": "`+server.URL+`/meta", "properties": {"a": {"$ref": "`+ref+
			`"}, "n": {"$ref": "#/definitions/n"}}, "definitions": {"n": {"type": "integer"}}}`,
			"values.yaml", "a: text\nn: 1\n", "templates/a.yaml", config("y"))
	}
	for _, ref := range []string{server.URL + "/s.json", "file://" + secret, "other.json"} {
		out, err := chart.Render(schema(ref), eu)
		if err != nil {
			t.Fatalf("%s: %v", ref, err)
		}
		want := []string{"chart shop: values.schema.json refers to " + ref + ", which is not in the chart: values are checked without it"}
		compare.CheckNamed(t, "warnings", want, out.Warnings)
	}
	compare.CheckNamed(t, "requests", 0, asked)
	_, err := chart.Render(schema(server.URL), chart.Release{Name: "eu", Values: map[string]any{"n": "many"}})
	compare.Contains(t, fmt.Sprint(err), "at '/n': got string, want integer")
}

// packed returns a chart archive (.tgz). The arguments are the files' names and contents in turn.
func packed(t *testing.T, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	archive := tar.NewWriter(zip)
	for i := 0; i+1 < len(files); i += 2 {
		must(t, archive.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1]))}))
		_, err := archive.Write([]byte(files[i+1]))
		must(t, err)
	}
	must(t, archive.Close())
	must(t, zip.Close())
	return b.String()
}

// TestArchives checks that charts in archives are rendered like charts in folders, and that the size of an archive is limited.
func TestArchives(t *testing.T) {
	sub := func(name string, more ...string) []string {
		return append([]string{name + "/Chart.yaml", "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"}, more...)
	}
	big := strings.Repeat("0", 20<<20/5)
	inner := packed(t, sub("inner", "inner/templates/i.yaml", config("{{ .Values.x }}"), "inner/values.yaml", "x: inner\n")...)
	tiny := make([]string, 0, 2*chart.MaxFiles)
	for i := range chart.MaxFiles {
		tiny = append(tiny, fmt.Sprintf("many/f%d", i), "")
	}
	for name, c := range map[string]struct{ file, want string }{
		"one in the other": {packed(t, sub("outer", "outer/charts/inner-1.0.0.tgz", inner)...), "x: inner"},
		"large": {packed(t, sub("large", "large/a", big, "large/b", big, "large/c", big, "large/d", big, "large/e", big)...),
			"is a chart with more than 20971520 unpacked bytes"},
		"many": {packed(t, sub("many", tiny...)...), "is a chart with more than 5000 unpacked files"},
		"a path that leads up": {packed(t, "evil/../../etc/passwd", "x"),
			"charts/sub-1.0.0.tgz: Helm: chart illegally references parent directory"},
		"an absolute one": {packed(t, "evil//etc/passwd", "x"), "charts/sub-1.0.0.tgz: Helm: chart illegally contains absolute paths"},
	} {
		t.Run(name, func(t *testing.T) { compare.Contains(t, text(shop("charts/sub-1.0.0.tgz", c.file)), c.want) })
	}
}

// TestOrderIsNoChance checks that subcharts with the same name are rendered in the same order each time.
func TestOrderIsNoChance(t *testing.T) {
	second, third := strings.Replace(subchart, "1.0.0", "2.0.0", 1), strings.Replace(subchart, "1.0.0", "3.0.0", 1)
	files := shop("charts/a/Chart.yaml", second, "charts/b/Chart.yaml", subchart, "charts/c/Chart.yaml", third,
		"charts/a/templates/x.yaml", config("a"), "charts/b/templates/x.yaml", config("b"), "charts/c/templates/x.yaml", config("c"))
	var all []string
	for range 20 {
		all = append(all, text(slices.Clone(files)))
	}
	if slices.Sort(all); len(slices.Compact(all)) != 1 {
		t.Errorf("several orders: %q", all)
	}
}

// TestWhatHelmMakesOfAChart checks the rules of Helm for release names, Kubernetes versions, chart types, dependencies,
// CRDs, hooks and templates.
func TestWhatHelmMakesOfAChart(t *testing.T) {
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n"
	hook := "apiVersion: v1\nkind: Pod\nmetadata: {name: h, annotations: {helm.sh/hook: 'pre-install,post-upgrade'}}\n"
	dependency := func(name string) string { return main + "dependencies: [{name: " + name + ", version: 1.0.0}]\n" }
	withMain := func(main string, more ...string) []chart.File {
		return append([]chart.File{{chart.Main, []byte(main)}}, shop(more...)[1:]...)
	}
	sub := []string{"charts/sub/Chart.yaml", subchart, "charts/sub/templates/s.yaml", config("s")}
	for name, c := range map[string]struct {
		files []chart.File
		r     chart.Release
		want  string // the error; or source, hook and kind of each document
	}{
		"a name that is none": {shop(), chart.Release{Name: "No"},
			`.: the release name "No" is not valid; use at most 53 lower-case letters, digits, - and .`},
		"a version that is none": {shop(), chart.Release{Name: "eu", KubeVersion: "new"},
			`.: "new" is not a version of Kubernetes; write 1.36.3 or the like`},
		"a version that fits": {withMain(main+"kubeVersion: '>=1.36-0'\n", "templates/a.yaml", config("1")),
			chart.Release{Name: "eu", KubeVersion: "1.36.3"}, "shop/templates/a.yaml ConfigMap"},
		"a version that is old": {withMain(main + "kubeVersion: '>=1.99-0'\n"), chart.Release{Name: "eu", KubeVersion: "v1.36.3"},
			"Chart.yaml: kubeVersion: >=1.99-0 does not fit Kubernetes v1.36.3; set kubernetes.version in the cluster's config.yaml " +
				"to the cluster's version"},
		"a library": {withMain(main + "type: library\n"), eu,
			"Chart.yaml: type: is library: such a chart has nothing to render; name the chart that uses it"},
		"an application": {withMain(main+"type: application\n", "templates/a.yaml", config("1")), eu, "shop/templates/a.yaml ConfigMap"},
		"no chart":       {[]chart.File{{"values.yaml", []byte("a: 1")}}, eu, ".: Helm: Chart.yaml file is missing"},
		"a chart that is not there": {withMain(dependency("sub")), eu,
			"Chart.yaml: dependencies[0]: the chart sub is not in charts/; run helm dependency build, and commit its output: " +
				"charts are read from Git alone"},
		"a chart that is there": {withMain(dependency("sub"), sub...), eu, "shop/charts/sub/templates/s.yaml ConfigMap"},
		"below a chart it lacks": {withMain(main, "charts/a/Chart.yaml", strings.Replace(subchart, "sub", "a", 1), "charts/sub/Chart.yaml",
			subchart+"dependencies: [{name: x, version: 1.0.0}]\n"), eu,
			"charts/sub/Chart.yaml: dependencies[0]: the chart x is not in charts/; run helm dependency build, and commit its output: " +
				"charts are read from Git alone"},
		"definitions": {shop("crds/w.yaml", crd, "templates/a.yaml", config("1")), chart.Release{Name: "eu", CRDs: true},
			"shop/crds/w.yaml CustomResourceDefinition; shop/templates/a.yaml ConfigMap"},
		"no definitions": {shop("crds/w.yaml", crd, "templates/a.yaml", config("1")), eu, "shop/templates/a.yaml ConfigMap"},
		"hooks and notes": {shop("templates/h.yaml", hook, "templates/NOTES.txt", "kind: no", "templates/a.yaml", config("1")),
			eu, "shop/templates/a.yaml ConfigMap; shop/templates/h.yaml (pre-install,post-upgrade) Pod"},
		"an API of the cluster": {shop("templates/a.yaml", `{{ if .Capabilities.APIVersions.Has "example.com/v1/Widget" }}`+config("1")+
			"{{ end }}"), chart.Release{Name: "eu", APIVersions: []string{"example.com/v1/Widget"}}, "shop/templates/a.yaml ConfigMap"},
		"an API that is not there": {shop("templates/a.yaml",
			`{{ if .Capabilities.APIVersions.Has "example.com/v1/Widget" }}`+config("1")+"{{ end }}"), eu, ""},
		"a template that is none": {shop("templates/a.yaml", "{{ if }}"), eu,
			".: Helm: parse error at (shop/templates/a.yaml:1): missing value for if"},
		"a template that renders no YAML": {shop("templates/a.yaml", "kind: [\n"), eu, ".: Helm: "},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := chart.Render(c.files, c.r)
			if err != nil {
				if got := err.Error(); got != c.want && !(strings.HasSuffix(c.want, "Helm: ") && strings.HasPrefix(got, c.want)) {
					t.Errorf("\n got %s\nwant %s", got, c.want)
				}
				return
			}
			var all []string
			for _, d := range out.Documents {
				_, kind, _ := strings.Cut(d.Text, "kind: ")
				if d.Hook != "" {
					d.Source += " (" + d.Hook + ")"
				}
				all = append(all, d.Source+" "+strings.Fields(kind)[0])
			}
			compare.Check(t, c.want, strings.Join(all, "; "))
		})
	}
}

// TestWhereChanceShows checks that the error names the first difference between two renders, and the value to set. The
// difference may be in a list, a map or a text, or may be a whole object.
func TestWhereChanceShows(t *testing.T) {
	const suffix = " would differ at each render (randInt); set it by a value, or remove it from the template"
	if1 := "{{ if eq (randInt 1 3) %s }}%s{{ end }}"
	for name, c := range map[string]struct{ template, want string }{
		"in a list":         {config("[a, '{{ randInt 1 3 }}', b]"), "templates/a.yaml: ConfigMap/a: data.x[1]" + suffix},
		"in a list of maps": {config("[{z: 1}, {z: {{ randInt 1 3 }}}]"), "templates/a.yaml: ConfigMap/a: data.x[1].z" + suffix},
		"a longer list":     {config("[a{{ if eq (randInt 1 3) 1 }}, b{{ end }}]"), "templates/a.yaml: ConfigMap/a: data.x" + suffix},
		"a list or none": {config("{{ if eq (randInt 1 3) 1 }}[a]{{ else }}a{{ end }}"),
			"templates/a.yaml: ConfigMap/a: data.x" + suffix},
		"a key that goes":        {config("a\n" + fmt.Sprintf(if1, "1", "  z: b")), "templates/a.yaml: ConfigMap/a: data.z" + suffix},
		"a key that comes":       {config("a\n" + fmt.Sprintf(if1, "2", "  z: b")), "templates/a.yaml: ConfigMap/a: data.z" + suffix},
		"a comment":              {config("a # {{ randInt 1 3 }}"), "templates/a.yaml: ConfigMap/a: the text" + suffix},
		"no number":              {config("{{ randInt 3 3 }}"), "randInt: there is no number from 3 to 2"},
		"shuffled":               {config(`{{ shuffle "ab" }}`), "ConfigMap/a: data.x would differ at each render (shuffle)"},
		"shuffled in vain":       {config(`{{ shuffle "aa" }}`), "x: aa"},
		"how long ago":           {config(`{{ ago 0 }}`), "would differ at each render (now)"},
		"a zone of this machine": {config(`{{ dateInZone "15:04" 0 "Local" }}`), "x: 00:00"},
		"a zone that is none":    {config(`{{ dateInZone "15:04" 0 "Nowhere" }}`), "x: 00:00"},
		"a number of seconds":    {config(`{{ dateInZone "15:04" (int64 60) "UTC" }}`), "x: 00:01"},
		"no date":                {config(`{{ date "2006" "x" }}`), "would differ at each render (now)"},
		"a rounded duration":     {config(`{{ durationRound "1h" }}`), "durationRound is not supported: rendering has no clock"},
	} {
		t.Run(name, func(t *testing.T) { compare.Contains(t, text(shop("templates/a.yaml", c.template)), c.want) })
	}
	second := strings.Replace(config("b"), "name: a", "name: b", 1)
	for when, want := range map[string]string{"1": "templates/b.yaml: ConfigMap/b: apiVersion" + suffix,
		"2": ".: would render to different objects each time (randInt); set it by a value, or remove it from the template"} {
		got := text(shop("templates/a.yaml", config("a"), "templates/b.yaml", fmt.Sprintf(if1, when, second)))
		compare.CheckNamed(t, "an object at render "+when, want, got)
	}
	// The chart reads the value to set beside the call, in another file, or in a subchart.
	const set, id = " would differ at each render (uuidv4); set ", "{{ define \"id\" }}{{ .Values.c | default uuidv4 }}{{ end }}"
	unseen := strings.Replace(config("{{ .Values.c | default uuidv4 | trunc 0 }}"), "name: a", "name: b", 1)
	for want, files := range map[string][]chart.File{
		"templates/a.yaml: ConfigMap/a: data.x" + set + "a.b in the values": shop("values.yaml", "a: {b: ''}",
			"templates/a.yaml", config("{{ .Values.a.b | default uuidv4 }}"), "templates/b.yaml", unseen),
		"templates/a.yaml: ConfigMap/a: data.x" + set + "c in the values": shop("templates/_h.tpl", id,
			"templates/a.yaml", config(`{{ include "id" . }} {{ .Values.d }}`)),
		"charts/sub/templates/a.yaml: ConfigMap/a: data.x" + set + "sub.key in the values": shop("charts/sub/Chart.yaml", subchart,
			"charts/sub/templates/a.yaml", config("{{ .Values.key | default uuidv4 }}")),
	} {
		compare.Check(t, want, text(files))
	}
}

// TestNamesOfReleases checks release names that are templates. A name that would differ at each render is an error.
func TestNamesOfReleases(t *testing.T) {
	for text, want := range map[string]string{`shop-{{ "EU" | lower }}`: "shop-eu",
		`{{ randAlpha 3 | len }}`: "would differ at each render", "{{": "Helm: parse error"} {
		got, err := chart.ReleaseName(text)
		if err != nil {
			got = err.Error()
		}
		compare.Contains(t, got, want)
	}
}

func TestIgnored(t *testing.T) {
	ignored, err := chart.Ignored([]byte("*.md\nci/\n"))
	must(t, err)
	for name, want := range map[string]bool{"README.md": true, "docs/a.md": true, "ci": false, "ci/": true, "templates/.hidden": true,
		"templates/a.yaml": false} {
		compare.CheckNamed(t, name, want, ignored(strings.TrimSuffix(name, "/"), strings.HasSuffix(name, "/")))
	}
	if _, err := chart.Ignored([]byte("**/a\n")); err == nil || !strings.HasPrefix(err.Error(), ".helmignore: Helm: ") {
		t.Errorf("got %v", err)
	}
}

// TestSchemasOfChartsBelow checks that references in the schemas of a chart and its subcharts cause warnings, and are not followed. Large
// numbers in schemas are valid.
func TestSchemasOfChartsBelow(t *testing.T) {
	out, err := chart.Render(shop("values.schema.json",
		`{"properties": {"n": {"maximum": 9007199254740993}, "l": {"allOf": [{"$ref": "x.json"}, `+
			`{"$dynamicRef": "y.json"}]}}}`, "values.yaml", "n: 1\nl: 1\n",
		"charts/sub/Chart.yaml", subchart, "charts/sub/values.schema.json", `{"$ref": "z.json"}`,
		"templates/a.yaml", config("1")), eu)
	must(t, err)
	const why = ", which is not in the chart: values are checked without it"
	compare.Check(t, []string{"chart shop: values.schema.json refers to x.json" + why,
		"chart shop: values.schema.json refers to y.json" + why, "chart sub: values.schema.json refers to z.json" + why}, out.Warnings)
	if _, err := chart.Render(shop("values.schema.json", "{", "templates/a.yaml", config("1")), eu); err == nil {
		t.Error("a schema that is not JSON is taken")
	}
}
