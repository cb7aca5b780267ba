package chart

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

	"github.com/google/go-cmp/cmp"
)

const main = "apiVersion: v2\nname: shop\nversion: 1.0.0\n"

// shop is a chart with these files besides its Chart.yaml, by name and content.
func shop(more ...string) []File {
	files := []File{{Main, []byte(main)}}
	for i := 0; i+1 < len(more); i += 2 {
		files = append(files, File{more[i], []byte(more[i+1])})
	}
	return files
}

func config(data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: " + data + "\n"
}

// text is what a chart of one template renders to, or the error.
func text(files []File) string {
	out, err := Render(files, Release{Name: "eu", Namespace: "shop"})
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, d := range out.Documents {
		all = append(all, d.Text)
	}
	return strings.Join(all, "\n")
}

// TestChanceIsRefused: what would be another at each render is refused by the object, its field and the function, with
// the value that takes its place, in all shapes in which charts have it.
func TestChanceIsRefused(t *testing.T) {
	const set = "; set secret.key in the values"
	for name, c := range map[string]struct{ call, function string }{
		"a password":       {`{{ .Values.secret.key | default (randAlphaNum 16) }}`, "randAlphaNum"},
		"one digit":        {`{{ .Values.secret.key | default (randNumeric 1) | quote }}`, "randNumeric"},
		"a key":            {`{{ .Values.secret.key | default (genPrivateKey "rsa") | b64enc }}`, "genPrivateKey"},
		"a certificate":    {`{{ $ca := genCA "x" 365 }}{{ .Values.secret.key | default $ca.Cert }}`, "genCA"},
		"a signed one":     {`{{ $c := genSignedCert "x" nil (list "a") 365 (genCA "ca" 365) }}{{ .Values.secret.key | default $c.Key }}`, "genCA, genSignedCert"},
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
			want := "templates/a.yaml: ConfigMap/a: data.x would be another at each render (" + c.function + ")" + set
			if got := text(files); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
			fixed := Release{Name: "eu", Values: map[string]any{"secret": map[string]any{"key": "mine"}}}
			if out, err := Render(files, fixed); err != nil || !strings.Contains(out.Documents[0].Text, "x: ") {
				t.Errorf("with the value: %v", err)
			}
		})
	}
}

// TestChanceThatDoesNotShow: what is called and not used does no harm, and neither does what has an order by chance only.
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
		if got := text(shop("templates/a.yaml", config(`{{ `+gone+` "HOME" }}`))); !strings.Contains(got, `function "`+gone+`" not defined`) {
			t.Errorf("%s: %s", gone, got)
		}
	}
}

// TestSchemaStaysAtHome: a schema that refers to an address or to a file of this machine reaches neither, and the rest of
// it counts.
func TestSchemaStaysAtHome(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer server.Close()
	secret := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(secret, []byte(`{"type": "integer"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	schema := func(ref string) []File {
		return shop("values.schema.json", `{"$schema": "`+server.URL+`/meta", "properties": {"a": {"$ref": "`+ref+`"}, "n": {"$ref": "#/definitions/n"}}, "definitions": {"n": {"type": "integer"}}}`,
			"values.yaml", "a: text\nn: 1\n", "templates/a.yaml", config("y"))
	}
	for _, ref := range []string{server.URL + "/s.json", "file://" + secret, "other.json"} {
		out, err := Render(schema(ref), Release{Name: "eu"})
		if err != nil {
			t.Fatalf("%s: %v", ref, err)
		}
		want := []string{"chart shop: values.schema.json refers to " + ref + ", which is not in the chart: values are not checked against that"}
		if diff := cmp.Diff(want, out.Warnings); diff != "" {
			t.Errorf("warnings (-want +got):\n%s", diff)
		}
	}
	if asked > 0 {
		t.Errorf("%d requests", asked)
	}
	_, err := Render(schema(server.URL), Release{Name: "eu", Values: map[string]any{"n": "many"}})
	if err == nil || !strings.Contains(err.Error(), "at '/n': got string, want integer") {
		t.Errorf("a value that does not fit: %v", err)
	}
}

// packed is a chart archive.
func packed(t *testing.T, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	archive := tar.NewWriter(zip)
	for i := 0; i+1 < len(files); i += 2 {
		if err := archive.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestArchives: charts in archives count as those in folders do, and none brings a chart beyond its bounds.
func TestArchives(t *testing.T) {
	sub := func(name string, more ...string) []string {
		return append([]string{name + "/Chart.yaml", "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"}, more...)
	}
	big := strings.Repeat("0", MaxSize/5)
	inner := packed(t, sub("inner", "inner/templates/i.yaml", config("{{ .Values.x }}"), "inner/values.yaml", "x: inner\n")...)
	tiny := make([]string, 0, 2*MaxFiles)
	for i := range MaxFiles {
		tiny = append(tiny, fmt.Sprintf("many/f%d", i), "")
	}
	for name, c := range map[string]struct {
		file string
		want string
	}{
		"one in the other":     {packed(t, sub("outer", "outer/charts/inner-1.0.0.tgz", inner)...), "x: inner"},
		"large":                {packed(t, sub("large", "large/a", big, "large/b", big, "large/c", big, "large/d", big, "large/e", big)...), "is a chart of more than 20971520 bytes, unpacked"},
		"many":                 {packed(t, sub("many", tiny...)...), "is a chart of more than 5000 files, unpacked"},
		"a path that leads up": {packed(t, "evil/../../etc/passwd", "x"), "charts/sub-1.0.0.tgz: Helm: chart illegally references parent directory"},
		"an absolute one":      {packed(t, "evil//etc/passwd", "x"), "charts/sub-1.0.0.tgz: Helm: chart illegally contains absolute paths"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := text(shop("charts/sub-1.0.0.tgz", c.file)); !strings.Contains(got, c.want) {
				t.Errorf("got %.300s, want %s", got, c.want)
			}
		})
	}
}

// TestOrderIsNoChance: two subcharts of one name are taken in the same order at each render.
func TestOrderIsNoChance(t *testing.T) {
	sub := func(version string) string { return "apiVersion: v2\nname: sub\nversion: " + version + "\n" }
	files := shop("charts/a/Chart.yaml", sub("2.0.0"), "charts/b/Chart.yaml", sub("1.0.0"), "charts/c/Chart.yaml", sub("3.0.0"),
		"charts/a/templates/x.yaml", config("a"), "charts/b/templates/x.yaml", config("b"), "charts/c/templates/x.yaml", config("c"))
	var all []string
	for range 20 {
		all = append(all, text(slices.Clone(files)))
	}
	if slices.Sort(all); len(slices.Compact(all)) != 1 {
		t.Errorf("several orders: %q", all)
	}
}
