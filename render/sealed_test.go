package render

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/sopstest"
	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

const secretManifest = `apiVersion: v1
kind: Secret
metadata: {name: db}
stringData:
  password: hunter2-in-git
  user: postgres
`

// encryptedApp returns an app with decryption, and its files, with the given ones added.
func encryptedApp(files map[string]string) (rollout.App, map[string]string) {
	all := map[string]string{
		"a/kustomization.yaml": "resources: [deployment.yaml, secret.yaml]\n",
		"a/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: db}\nspec:\n  selector: {matchLabels: {a: b}}\n" +
			"  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: db, image: \"postgres:16\", envFrom: [{secretRef: {name: db}}]}]}\n",
	}
	maps.Copy(all, files)
	return rollout.App{Name: "a", Path: "a", Namespace: "shop", Decryption: "sops-keys"}, all
}

// opener returns a renderer with keys.
func opener(t testing.TB, keys ...sopstest.Key) *Renderer {
	data := map[string]string{}
	for _, k := range keys {
		data[k.Name] = k.Secret
	}
	k, err := sops.ReadKeys(data)
	if err != nil {
		t.Fatal(err)
	}
	return New(InProcess{Unlock: func(app rollout.App, locks []sops.Lock) ([]byte, error) {
		if app.Decryption != "sops-keys" {
			t.Errorf("asked for the keys in %q", app.Decryption)
		}
		return k.Unlock(locks)
	}})
}

// secretOf returns the values of the only Secret of a render.
func secretOf(t testing.TB, r *rollout.Render) (name string, values map[string]string) {
	t.Helper()
	values = map[string]string{}
	for _, o := range r.Objects {
		if o.Kind() != "Secret" {
			continue
		}
		name = o.Name()
		for _, field := range []string{"data", "stringData"} {
			for key := range o.Map(field) {
				each(rollout.Object{"apiVersion": "v1", "kind": "Secret", field: map[string]any{key: o.Map(field)[key]}},
					func(at, text string) {
						if strings.HasPrefix(at, field) {
							values[key] = text
						}
					})
			}
		}
	}
	return name, values
}

// TestEncryptedFiles builds apps with encrypted values from every possible place, with keys of both kinds and without
// any: everything but the values is equal.
func TestEncryptedFiles(t *testing.T) {
	keys := map[string]sopstest.Key{"age": sopstest.Age(t), "pgp": sopstest.PGP(t)}
	chart := map[string]string{
		"a/kustomization.yaml":           "resources: [deployment.yaml]\nhelmCharts: [{name: db, releaseName: db, valuesFile: values.yaml}]\n",
		"a/charts/db/Chart.yaml":         "apiVersion: v2\nname: db\nversion: 1.0.0\n",
		"a/charts/db/templates/all.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: {{ .Values.password }}, user: {{ .Values.user }}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: db, annotations: {checksum/secret: {{ .Values.password | sha256sum }}}}\n",
	}
	values := "password: hunter2-in-git\nuser: postgres\n"
	for kind, key := range keys {
		whole := func(name, content string) string { return sopstest.Whole(t, name, content, key) }
		inJSON := func(name string) string {
			return sopstest.Encrypt(t, name, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"password": "hunter2-in-git", "user": "postgres"}}`,
				"^stringData$", func(k string) bool { return k == "stringData" }, key)
		}
		for name, files := range map[string]map[string]string{
			"a manifest": {"a/secret.yaml": sopstest.Manifest(t, secretManifest, key)},
			"a manifest of which all is encrypted but what names it": {"a/secret.yaml": sopstest.Encrypt(t, "secret.yaml", secretManifest,
				"^(stringData|type)$", func(k string) bool { return k == "stringData" || k == "type" }, key)},
			"a .env of a generator": {"a/kustomization.yaml": "resources: [deployment.yaml]\nsecretGenerator: [{name: db, envs: [db.env]}]\n",
				"a/db.env": sopstest.Whole(t, "db.env", "password=hunter2-in-git\nuser=postgres\n", key)},
			"files of a generator": {"a/kustomization.yaml": "resources: [deployment.yaml]\nsecretGenerator: [{name: db, files: [password, user=u.bin]}]\n",
				"a/password": sopstest.Whole(t, "password", "hunter2-in-git", key), "a/u.bin": sopstest.Whole(t, "u.bin", "postgres", key)},
			"a .env that is encrypted as a whole": {"a/kustomization.yaml": "resources: [deployment.yaml]\nsecretGenerator: [{name: db, files: [password, user=u.env]}]\n",
				"a/password": sopstest.Whole(t, "password", "hunter2-in-git", key), "a/u.env": sopstest.Whole(t, "u", "postgres", key)},
			"a patch": {"a/kustomization.yaml": "resources: [deployment.yaml, secret.yaml]\npatches: [{path: patch.yaml}]\n",
				"a/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\n", "a/patch.yaml": sopstest.Manifest(t, secretManifest, key)},
			"a manifest in JSON": {"a/kustomization.yaml": "resources: [deployment.yaml, secret.json]\n", "a/secret.json": inJSON("secret.json")},
			"a patch in JSON": {"a/kustomization.yaml": "resources: [deployment.yaml, secret.yaml]\npatches: [{path: patch.json}]\n",
				"a/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\n", "a/patch.json": inJSON("patch.json")},
			"two .env of a generator": {"a/kustomization.yaml": "resources: [deployment.yaml]\nsecretGenerator: [{name: db, envs: [a.env, b.env]}]\n",
				"a/a.env": whole("a.env", "password=hunter2-in-git\n"), "a/b.env": whole("b.env", "user=postgres\n")},
			"data in base64":    {"a/secret.yaml": sopstest.Manifest(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\ndata: {password: aHVudGVyMi1pbi1naXQ=, user: cG9zdGdyZXM=}\n", key)},
			"values in JSON":    {"a/values.yaml": whole("values.json", "{\"password\": \"hunter2-in-git\", \"user\": \"postgres\"}")},
			"values of a chart": {"a/values.yaml": sopstest.Whole(t, "values.yaml", values, key)},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				if strings.HasPrefix(name, "values ") {
					maps.Copy(files, chart)
				}
				app, all := encryptedApp(files)
				tree := newTree(all)
				open, err := opener(t, key).Render(tree, app, rollout.Commit{})
				if err != nil {
					t.Fatal(err)
				}
				secret, got := secretOf(t, open)
				if diff := compare.Diff(map[string]string{"password": "hunter2-in-git", "user": "postgres"}, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				sealed, err := New(InProcess{}).Render(tree, app, rollout.Commit{})
				if err != nil {
					t.Fatal(err)
				}
				withoutKey, values := secretOf(t, sealed)
				if withoutKey != secret {
					t.Errorf("the Secret is %s, and %s without the key", secret, withoutKey)
				}
				for key, value := range values {
					if plain, _ := base64.StdEncoding.DecodeString(value); !strings.HasPrefix(value+string(plain), "gitrollout-sealed:") && !strings.Contains(string(plain), "gitrollout-sealed:") {
						t.Errorf("without a key %s is %q", key, value)
					}
				}
				if diff := compare.Diff(open.Templates, sealed.Templates); diff != "" {
					t.Errorf("templates (-open +sealed):\n%s", diff)
				}
				if text, _ := json.Marshal(sealed.Objects); strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), rollout.AnnotationSealed) {
					t.Errorf("without a key: %s", text)
				}
				if text, _ := json.Marshal(open.Objects); strings.Contains(string(text), rollout.AnnotationSealed) {
					t.Errorf("with a key: %s", text)
				}
			})
		}
	}
}

// TestEncryptedIsHeld refuses values that cannot be decrypted or would appear outside a Secret. The error has the file
// and the remedy, without a value.
func TestEncryptedIsHeld(t *testing.T) {
	key, other := sopstest.Age(t), sopstest.Age(t)
	manifest := sopstest.Manifest(t, secretManifest, key)
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: db}\ndata: {password: hunter2-in-git}\n"
	sealedLine := manifest[strings.Index(manifest, "ENC["):]
	sealedLine = sealedLine[:strings.Index(sealedLine, "]")+1]
	reserved := "a/secret.yaml: metadata.annotations[gitrollout.dev/sealed]: is reserved for gitrollout"
	marked := strings.Replace(secretManifest, "name: db", "name: db, annotations: {gitrollout.dev/sealed: x}", 1)
	for name, c := range map[string]struct {
		file, content string
		more          map[string]string
		no            bool // the entry has no decryption
		want          string
	}{
		"another key":      {file: "a/secret.yaml", content: sopstest.Manifest(t, secretManifest, other), want: "no key in Secret shop/sops-keys opens it; put such a key there"},
		"no entry":         {file: "a/secret.yaml", content: manifest, no: true, want: "a/secret.yaml: is encrypted by SOPS, and the app's entry names no keys; add decryption"},
		"a value changed":  {file: "a/secret.yaml", content: strings.Replace(manifest, "name: db", "name: du", 1), want: "a/secret.yaml: was changed by something else than sops"},
		"no code":          {file: "a/secret.yaml", content: strings.Replace(manifest, "  mac:", "  mad:", 1), want: "has no sops.mac"},
		"a plain value":    {file: "a/secret.yaml", content: strings.Replace(manifest, "kind: Secret", "kind: Secret\ndata: {x: aGk=}", 1), want: "data.x is to be encrypted, and is not"},
		"a cloud's key":    {file: "a/secret.yaml", content: strings.Replace(manifest, "  age:", "  kms:", 1), want: "keys of age and OpenPGP alone are read; add such a recipient: sops rotate"},
		"without notes":    {file: "a/secret.yaml", content: manifest[:strings.Index(manifest, "sops:")], want: "stringData.password: holds a value that SOPS has encrypted"},
		"our own mark":     {file: "a/secret.yaml", content: marked, want: reserved},
		"in a literal":     {file: "a/secret.yaml", content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {x: \"" + sealedLine + "\"}\n", want: "data.x: holds a value that SOPS has encrypted"},
		"an INI file":      {file: "a/secret.yaml", content: secretManifest, more: map[string]string{"a/x.ini": "[a]\nb = ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]\n[sops]\nmac = x\n", "a/kustomization.yaml": "resources: [secret.yaml]\nsecretGenerator: [{name: x, files: [x.ini]}]\n"}, want: "a/x.ini: is an INI file"},
		"into a ConfigMap": {file: "a/secret.yaml", content: sopstest.Encrypt(t, "secret.yaml", config, "^data$", func(k string) bool { return k == "data" }, key), want: "a/secret.yaml: data.password: depends on encrypted values"},
		"into how many": {file: "a/secret.yaml", content: secretManifest, more: map[string]string{
			"a/kustomization.yaml": "resources: [deployment.yaml]\nhelmCharts: [{name: db, releaseName: db, valuesFile: values.yaml}]\n", "a/charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
			"a/charts/db/templates/all.yaml": "{{ if eq .Values.password \"hunter2-in-git\" }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: db}\n{{ end }}\n",
			"a/values.yaml":                  sopstest.Whole(t, "values.yaml", "password: hunter2-in-git\n", key)}, want: "a/values.yaml: something that is no value of a Secret depends on encrypted values"},
		"into replicas": {file: "a/secret.yaml", content: secretManifest, more: map[string]string{
			"a/kustomization.yaml": "resources: [deployment.yaml]\nhelmCharts: [{name: db, releaseName: db, valuesFile: values.yaml}]\n", "a/charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
			"a/charts/db/templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: db}\ndata: {n: \"{{ .Values.replicas }}\"}\n",
			"a/values.yaml":                  sopstest.Whole(t, "values.yaml", "replicas: 3\n", key)}, want: "a/charts/db/templates/all.yaml: data.n: depends on encrypted values"},
	} {
		t.Run(name, func(t *testing.T) {
			app, all := encryptedApp(map[string]string{c.file: c.content})
			maps.Copy(all, c.more)
			if c.no {
				app.Decryption = ""
			}
			_, err := opener(t, key).Render(newTree(all), app, rollout.Commit{})
			var invalid *rollout.InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %s", err, c.want)
			}
			if strings.Contains(err.Error(), "hunter2") || invalid.Fix == "" {
				t.Errorf("the error tells the value, or has no fix: %v", err)
			}
		})
	}
	broken := errors.New("is encrypted by SOPS, and its keys cannot be had: Secret shop/sops-keys: not found")
	r := New(InProcess{Unlock: func(rollout.App, []sops.Lock) ([]byte, error) { return nil, broken }})
	app, all := encryptedApp(map[string]string{"a/secret.yaml": manifest})
	_, err := r.Render(newTree(all), app, rollout.Commit{})
	if want := "a/secret.yaml: " + broken.Error() + "; put its keys there, in entries that end in .agekey or .asc, and allow reading it"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestSomebodyElseDecrypts applies an annotated object as it is in Git, with SOPS's metadata. A Secret, or an object
// without the annotation, is refused.
func TestSomebodyElseDecrypts(t *testing.T) {
	key := sopstest.Age(t)
	theirs := func(name, more string) string {
		return sopstest.Encrypt(t, "theirs.yaml", "apiVersion: isindir.github.com/v1alpha3\nkind: SopsSecret\nmetadata: {name: "+name+more+"}\nspec:\n  secretTemplates:\n  - name: theirs\n    stringData: {password: hunter2-in-git}\n",
			"^stringData$", func(k string) bool { return k == "stringData" }, key)
	}
	none := func(value string) string { return ", annotations: {gitrollout.dev/decryption: " + value + "}" }
	for name, c := range map[string]struct{ theirs, want string }{
		"annotated":     {theirs("theirs", none("none")), ""},
		"two":           {theirs("theirs", none("none")) + "---\n" + theirs("more", none("none")), ""},
		"one of two":    {theirs("theirs", none("none")) + "---\n" + theirs("more", ""), "gitrollout.dev/decryption: none"},
		"not annotated": {theirs("theirs", ""), "gitrollout.dev/decryption: none"},
		"another word":  {theirs("theirs", none("later")), `a/theirs.yaml: metadata.annotations[gitrollout.dev/decryption]: is "later", and none is all that it may be`},
		"a Secret":      {sopstest.Manifest(t, strings.Replace(secretManifest, "name: db", "name: theirs"+none("none"), 1), key), "a/theirs.yaml: metadata.annotations[gitrollout.dev/decryption]: is on a Secret"},
	} {
		for _, decrypts := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, %t", name, decrypts), func(t *testing.T) {
				app, files := encryptedApp(map[string]string{"a/kustomization.yaml": "resources: [deployment.yaml, secret.yaml, theirs.yaml]\n", "a/theirs.yaml": c.theirs})
				if files["a/secret.yaml"] = sopstest.Manifest(t, secretManifest, key); !decrypts {
					app.Decryption, files["a/secret.yaml"] = "", secretManifest
				}
				got, err := opener(t, key).Render(newTree(files), app, rollout.Commit{})
				if c.want != "" {
					if err == nil || !strings.Contains(err.Error(), c.want) {
						t.Errorf("error %v, want %s", err, c.want)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range got.Objects {
					if text, _ := json.Marshal(o); o.Kind() == "SopsSecret" && (!strings.Contains(string(text), "ENC[AES256_GCM,data:") || o["sops"] == nil || o.Annotation(rollout.AnnotationSealed) != "") {
						t.Errorf("it is %s", text)
					}
				}
				if _, values := secretOf(t, got); values["password"] != "hunter2-in-git" {
					t.Errorf("the app's own Secret has %q", values)
				}
			})
		}
	}
}

// TestWhereItIsHeldTellsNothing checks that a chart's author without a key gets the same errors whatever a password is.
// They have no name of a value, object or field that depends on it.
func TestWhereItIsHeldTellsNothing(t *testing.T) {
	key := sopstest.Age(t)
	secret := func(data string) string { return "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\n" + data + "\n" }
	ask := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: db}\ndata:\n"
	for i := range 26 {
		ask += fmt.Sprintf("  c%d: \"{{ eq (substr 0 1 .Values.password) \"%c\" }}\"\n", i, 'a'+i)
	}
	for name, template := range map[string]string{
		"a name of text":          secret(`stringData: {"{{ .Values.password }}": x}`),
		"a name of a number":      secret(`stringData: {"{{ .Values.password }}": 5}`),
		"a name of no base64":     secret(`data: {"{{ .Values.password | upper }}": "!!"}`),
		"a name below a name":     secret(`stringData: {a: {"{{ .Values.password }}": 5}}`),
		"a field for each letter": ask,
		"an object for each letter": `{{ range $i := until 26 }}
{{ if eq (substr 0 1 $.Values.password) (substr (int $i) (int (add 1 $i)) "abcdefghijklmnopqrstuvwxyz") }}
apiVersion: v1
kind: ConfigMap
metadata: {name: "c{{ $i }}"}
---
{{ end }}{{ end }}`,
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			for _, password := range []string{"hunter2-in-git", "swordfish"} {
				app, all := encryptedApp(map[string]string{
					"a/kustomization.yaml":           "resources: [deployment.yaml]\nhelmCharts: [{name: db, releaseName: db, valuesFile: values.yaml}]\n",
					"a/charts/db/Chart.yaml":         "apiVersion: v2\nname: db\nversion: 1.0.0\n",
					"a/charts/db/templates/all.yaml": template,
					"a/values.yaml":                  sopstest.Whole(t, "values.yaml", "password: "+password+"\n", key),
				})
				_, err := opener(t, key).Render(newTree(all), app, rollout.Commit{})
				if err == nil {
					t.Fatal("it is not held")
				}
				told = append(told, err.Error())
			}
			if told[0] != told[1] || !strings.Contains(told[0], "depends on encrypted values") {
				t.Errorf("it is told %q of one password, and %q of another", told[0], told[1])
			}
		})
	}
}

// TestEncryptedExample opens the example's files with their key, and renders them without.
func TestEncryptedExample(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{"kustomization.yaml", "deployment.yaml", "rollout.yaml", "database.yaml", "api.env"} {
		data, err := os.ReadFile("../examples/encrypted/apps/shop/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files["apps/shop/"+name] = string(data)
	}
	secret, err := os.ReadFile("sops/testdata/test.agekey")
	if err != nil {
		t.Fatal(err)
	}
	app := rollout.App{Name: "shop", Path: "apps/shop", Namespace: "shop", Decryption: "sops-keys"}
	open, err := opener(t, sopstest.Key{Name: "test.agekey", Secret: string(secret)}).Render(newTree(files), app, rollout.Commit{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"password": "example-of-a-password", "user": "postgres", "API_TOKEN": "example-of-a-token"}
	if _, got := secretOf(t, open); !compare.Equal(want, got) {
		t.Errorf("(-want +got):\n%s", compare.Diff(want, got))
	}
	sealed, err := New(InProcess{}).Render(newTree(files), app, rollout.Commit{})
	if err != nil {
		t.Fatal(err)
	}
	if open.Release() != sealed.Release() || !slices.Equal(sealed.Unopened, []string{"apps/shop/api.env", "apps/shop/database.yaml"}) || len(open.Unopened)+len(open.Warnings)+len(sealed.Warnings) > 0 {
		t.Errorf("release %s with the key and %s without, which leaves %q closed, warnings %q", open.Release(), sealed.Release(), sealed.Unopened, sealed.Warnings)
	}
}

// TestAnUnchangedFileAsksForNoKey does not build again, with or without a key. A file without a matching key is retried
// each time, since a key may be added.
func TestAnUnchangedFileAsksForNoKey(t *testing.T) {
	key, asked := sopstest.Age(t), 0
	keys := &sops.Keys{}
	r := New(InProcess{Unlock: func(_ rollout.App, locks []sops.Lock) ([]byte, error) {
		asked++
		return keys.Unlock(locks)
	}})
	app, files := encryptedApp(map[string]string{"a/secret.yaml": sopstest.Manifest(t, secretManifest, key)})
	for want := 1; want <= 2; want++ {
		if _, err := r.Render(newTree(files), app, rollout.Commit{}); rollout.ReasonOf(err) != rollout.HeldUndecryptable || asked != want {
			t.Fatalf("asked %d times, error %v", asked, err)
		}
	}
	keys, _ = sops.ReadKeys(map[string]string{key.Name: key.Secret})
	for range 3 {
		if _, err := r.Render(newTree(files), app, rollout.Commit{}); err != nil || asked != 3 {
			t.Fatalf("asked %d times, error %v", asked, err)
		}
	}
}
