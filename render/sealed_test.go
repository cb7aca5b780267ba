package render_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/sopstest"
	"gitrollout.dev/gitrollout/render"
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

// encryptedApp returns an app whose entry has the field "decryption", and the app's files. The given files supplement or replace the app's
// files.
func encryptedApp(files map[string]string) (rollout.App, map[string]string) {
	all := merged(map[string]string{
		"a/kustomization.yaml": "resources: [deployment.yaml, secret.yaml]\n",
		"a/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: db}\nspec:\n  selector: {matchLabels: {a: b}}\n" +
			"  template:\n    metadata: {labels: {a: b}}\n" +
			"    spec: {containers: [{name: db, image: \"postgres:16\", envFrom: [{secretRef: {name: db}}]}]}\n",
	}, files)
	return rollout.App{Name: "a", Path: "a", Namespace: "shop", Decryption: "sops-keys"}, all
}

// opener returns a renderer that decrypts with the given keys.
func opener(t testing.TB, keys ...sopstest.Key) *render.Renderer {
	data := map[string]string{}
	for _, k := range keys {
		data[k.Name] = k.Secret
	}
	k, err := sops.ReadKeys(data)
	must(t, err)
	return render.New(render.InProcess{Unlock: func(app rollout.App, locks []sops.Lock) ([]byte, error) {
		if app.Decryption != "sops-keys" {
			t.Errorf("asked for the keys in %q", app.Decryption)
		}
		return k.Unlock(locks)
	}})
}

// inText returns a render's objects as JSON.
func inText(t testing.TB, r *rollout.Render) string {
	t.Helper()
	text, err := json.Marshal(r.Objects)
	must(t, err)
	return string(text)
}

// secretOf returns the name and the values of a render's only Secret.
func secretOf(t testing.TB, r *rollout.Render) (name string, values map[string]string) {
	t.Helper()
	values = map[string]string{}
	for _, o := range r.Objects {
		if o.Kind() != "Secret" {
			continue
		}
		name = o.Name()
		for _, field := range []string{"data", "stringData"} {
			for key, value := range o.Map(field) {
				one := rollout.Object{"apiVersion": "v1", "kind": "Secret", field: map[string]any{key: value}}
				render.Each(one, func(at, text string) {
					if strings.HasPrefix(at, field) {
						values[key] = text
					}
				})
			}
		}
	}
	return name, values
}

// TestEncryptedFiles renders encrypted values in every supported place, with an age key, with a PGP key and without a key. A render with a
// key must equal a render without a key, except for the values.
func TestEncryptedFiles(t *testing.T) {
	const plain = "password: hunter2-in-git\nuser: postgres\n"
	const object = `{"password": "hunter2-in-git", "user": "postgres"}`
	chart := chartOf("apiVersion: v1\nkind: Secret\nmetadata: {name: db}\n" +
		"stringData: {password: {{ .Values.password }}, user: {{ .Values.user }}}\n---\n" +
		configMap("db, annotations: {checksum/secret: {{ .Values.password | sha256sum }}}"))
	resources := func(more string) string { return "resources: [deployment.yaml]\n" + more + "\n" }
	type folder map[string]string
	for kind, key := range map[string]sopstest.Key{"age": sopstest.Age(t), "pgp": sopstest.PGP(t)} {
		whole := func(name, content string) string { return sopstest.Whole(t, name, content, key) }
		inJSON := func(name string) string {
			return sopstest.Encrypt(t, name, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": `+object+`}`,
				"^stringData$", func(k string) bool { return k == "stringData" }, key)
		}
		for name, files := range map[string]folder{
			"a manifest": {"a/secret.yaml": sopstest.Manifest(t, secretManifest, key)},
			"a manifest of which all is encrypted but what names it": {"a/secret.yaml": sopstest.Encrypt(t, "secret.yaml", secretManifest,
				"^(stringData|type)$", func(k string) bool { return k == "stringData" || k == "type" }, key)},
			"a .env of a generator": {"a/kustomization.yaml": resources("secretGenerator: [{name: db, envs: [db.env]}]"),
				"a/db.env": whole("db.env", "password=hunter2-in-git\nuser=postgres\n")},
			"files of a generator": {"a/kustomization.yaml": resources("secretGenerator: [{name: db, files: [password, user=u.bin]}]"),
				"a/password": whole("password", "hunter2-in-git"), "a/u.bin": whole("u.bin", "postgres")},
			"a .env that is encrypted as a whole": {
				"a/kustomization.yaml": resources("secretGenerator: [{name: db, files: [password, user=u.env]}]"),
				"a/password":           whole("password", "hunter2-in-git"), "a/u.env": whole("u", "postgres")},
			"a patch": {"a/kustomization.yaml": "resources: [deployment.yaml, secret.yaml]\npatches: [{path: patch.yaml}]\n",
				"a/secret.yaml": aSecret, "a/patch.yaml": sopstest.Manifest(t, secretManifest, key)},
			"a manifest in JSON": {"a/kustomization.yaml": "resources: [deployment.yaml, secret.json]\n", "a/secret.json": inJSON("secret.json")},
			"a patch in JSON": {"a/kustomization.yaml": "resources: [deployment.yaml, secret.yaml]\npatches: [{path: patch.json}]\n",
				"a/secret.yaml": aSecret, "a/patch.json": inJSON("patch.json")},
			"two .env of a generator": {"a/kustomization.yaml": resources("secretGenerator: [{name: db, envs: [a.env, b.env]}]"),
				"a/a.env": whole("a.env", "password=hunter2-in-git\n"), "a/b.env": whole("b.env", "user=postgres\n")},
			"data in base64": {
				"a/secret.yaml": sopstest.Manifest(t, aSecret+"data: {password: aHVudGVyMi1pbi1naXQ=, user: cG9zdGdyZXM=}\n", key)},
			"values in JSON":    merged(chart, folder{"a/values.yaml": whole("values.json", object)}),
			"values of a chart": merged(chart, folder{"a/values.yaml": whole("values.yaml", plain)}),
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				app, all := encryptedApp(files)
				open, sealed := mustRender(t, opener(t, key), all, app), mustRender(t, render.New(render.InProcess{}), all, app)
				secret, got := secretOf(t, open)
				compare.Check(t, map[string]string{"password": "hunter2-in-git", "user": "postgres"}, got)
				withoutKey, values := secretOf(t, sealed)
				compare.CheckNamed(t, "the Secret's name without the key", secret, withoutKey)
				for key, value := range values {
					if decoded, _ := base64.StdEncoding.DecodeString(value); !strings.HasPrefix(value+string(decoded), "gitrollout-sealed:") &&
						!strings.Contains(string(decoded), "gitrollout-sealed:") {
						t.Errorf("without a key %s is %q", key, value)
					}
				}
				compare.CheckNamed(t, "templates, want those with a key", open.Templates, sealed.Templates)
				if text := inText(t, sealed); strings.Contains(text, "hunter2") || !strings.Contains(text, rollout.AnnotationSealed) {
					t.Errorf("without a key: %s", text)
				}
				if text := inText(t, open); strings.Contains(text, rollout.AnnotationSealed) {
					t.Errorf("with a key: %s", text)
				}
			})
		}
	}
}

// TestEncryptedIsHeld checks that an app is refused if an encrypted value cannot be decrypted, or would appear outside
// of a Secret. The error has the file and the fix, but not the value.
func TestEncryptedIsHeld(t *testing.T) {
	key, other := sopstest.Age(t), sopstest.Age(t)
	manifest := sopstest.Manifest(t, secretManifest, key)
	inConfig := sopstest.Encrypt(t, "secret.yaml", configMap("db")+"data: {password: hunter2-in-git}\n", "^data$",
		func(k string) bool { return k == "data" }, key)
	sealedLine := manifest[strings.Index(manifest, "ENC["):]
	sealedLine = sealedLine[:strings.Index(sealedLine, "]")+1]
	marked := strings.Replace(secretManifest, "name: db", "name: db, annotations: {gitrollout.dev/sealed: x}", 1)
	type more map[string]string
	chart := func(template, values string) map[string]string {
		return with(chartOf(template), "a/values.yaml", sopstest.Whole(t, "values.yaml", values, key))
	}
	for name, c := range map[string]struct {
		secret string
		more   more
		want   string
	}{
		"another key":     {sopstest.Manifest(t, secretManifest, other), nil, "no key in Secret shop/sops-keys opens it; add a recipient's key"},
		"no entry":        {manifest, nil, "a/secret.yaml: is encrypted by SOPS, and the app's entry names no keys; add decryption"},
		"a value changed": {strings.Replace(manifest, "name: db", "name: du", 1), nil, "a/secret.yaml: was changed without sops"},
		"no code":         {strings.Replace(manifest, "  mac:", "  mad:", 1), nil, "has no sops.mac"},
		"a plain value": {strings.Replace(manifest, "kind: Secret", "kind: Secret\ndata: {x: aGk=}", 1), nil,
			"data.x is in plain text, but the file's rules encrypt it"},
		"a cloud's key": {strings.Replace(manifest, "  age:", "  kms:", 1), nil,
			"only keys of age and OpenPGP are supported; add a recipient of age or OpenPGP: sops rotate"},
		"without notes": {manifest[:strings.Index(manifest, "sops:")], nil, "stringData.password: holds a value that SOPS has encrypted"},
		"our own mark":  {marked, nil, "a/secret.yaml: metadata.annotations[gitrollout.dev/sealed]: is reserved for gitrollout"},
		"in a literal":  {configMap("x") + "data: {x: \"" + sealedLine + "\"}\n", nil, "data.x: holds a value that SOPS has encrypted"},
		"an INI file": {secretManifest, more{"a/x.ini": "[a]\nb = ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]\n[sops]\nmac = x\n",
			"a/kustomization.yaml": "resources: [secret.yaml]\nsecretGenerator: [{name: x, files: [x.ini]}]\n"}, "a/x.ini: is an INI file"},
		"into a ConfigMap": {inConfig, nil, "a/secret.yaml: data.password: depends on encrypted values"},
		"into how many": {secretManifest, chart("{{ if eq .Values.password \"hunter2-in-git\" }}\n"+configMap("db")+"{{ end }}\n",
			"password: hunter2-in-git\n"), "a/values.yaml: a field other than a Secret's values depends on encrypted values"},
		"the part of a value": {manifest, more{"a/map.yaml": configMap("x") + "data: {x: y}\n", "a/kustomization.yaml": "resources: " +
			"[secret.yaml, map.yaml]\nreplacements:\n- source: {kind: Secret, fieldPath: stringData.password, options: {delimiter: /, index: 3}}\n" +
			"  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.x]}]\n"}, "whether the app can be built depends on encrypted values"},
		"into replicas": {secretManifest, chart(configMap("db")+"data: {n: \"{{ .Values.replicas }}\"}\n", "replicas: 3\n"),
			"a/charts/db/templates/all.yaml: data.n: depends on encrypted values"},
	} {
		t.Run(name, func(t *testing.T) {
			app, all := encryptedApp(merged(more{"a/secret.yaml": c.secret}, c.more))
			if name == "no entry" { // the app's entry has no field "decryption"
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
	broken := errors.New("is encrypted with SOPS, and its keys cannot be read: Secret shop/sops-keys: not found")
	r := render.New(render.InProcess{Unlock: func(rollout.App, []sops.Lock) ([]byte, error) { return nil, broken }})
	app, all := encryptedApp(more{"a/secret.yaml": manifest})
	_, err := r.Render(newTree(all), app, rollout.Commit{})
	want := "; put the keys into that Secret, in entries that end in .agekey or .asc, and allow gitrollout to read it"
	compare.Check(t, "a/secret.yaml: "+broken.Error()+want, fmt.Sprint(err))
}

// TestSomebodyElseDecrypts checks objects with the annotation gitrollout.dev/decryption: none. gitrollout applies them encrypted, and
// another operator decrypts them. A Secret must not have this annotation. Encrypted objects of other kinds must have it.
func TestSomebodyElseDecrypts(t *testing.T) {
	key := sopstest.Age(t)
	theirs := func(name, more string) string {
		return sopstest.Encrypt(t, "theirs.yaml", "apiVersion: isindir.github.com/v1alpha3\nkind: SopsSecret\nmetadata: {name: "+name+more+"}\n"+
			"spec:\n  secretTemplates:\n  - name: theirs\n    stringData: {password: hunter2-in-git}\n", "^stringData$",
			func(k string) bool { return k == "stringData" }, key)
	}
	const at = "a/theirs.yaml: metadata.annotations[gitrollout.dev/decryption]: is "
	none := func(value string) string { return ", annotations: {gitrollout.dev/decryption: " + value + "}" }
	for name, c := range map[string]struct{ theirs, want string }{
		"annotated":     {theirs("theirs", none("none")), ""},
		"two":           {theirs("theirs", none("none")) + "---\n" + theirs("more", none("none")), ""},
		"one of two":    {theirs("theirs", none("none")) + "---\n" + theirs("more", ""), "gitrollout.dev/decryption: none"},
		"not annotated": {theirs("theirs", ""), "gitrollout.dev/decryption: none"},
		"another word":  {theirs("theirs", none("later")), at + `"later", but only "none" is allowed`},
		"a Secret": {sopstest.Manifest(t, strings.Replace(secretManifest, "name: db", "name: theirs"+none("none"), 1), key),
			at + "on a Secret"},
	} {
		for _, decrypts := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, %t", name, decrypts), func(t *testing.T) {
				app, files := encryptedApp(map[string]string{
					"a/kustomization.yaml": "resources: [deployment.yaml, secret.yaml, theirs.yaml]\n", "a/theirs.yaml": c.theirs})
				if files["a/secret.yaml"] = sopstest.Manifest(t, secretManifest, key); !decrypts {
					app.Decryption, files["a/secret.yaml"] = "", secretManifest
				}
				got, err := opener(t, key).Render(newTree(files), app, rollout.Commit{})
				if c.want != "" {
					compare.Contains(t, fmt.Sprint(err), c.want)
					return
				}
				must(t, err)
				for _, o := range got.Objects {
					text, _ := json.Marshal(o)
					isSealed := o.Annotation(rollout.AnnotationSealed) != "" || !strings.Contains(string(text), "ENC[AES256_GCM,data:")
					if o.Kind() == "SopsSecret" && (isSealed || o["sops"] == nil) {
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

// TestWhereItIsHeldTellsNothing checks that a chart's author without a key learns nothing about a password. The error is equal for all
// passwords, and names no value, object or field that depends on the password.
func TestWhereItIsHeldTellsNothing(t *testing.T) {
	key := sopstest.Age(t)
	ask := aConfigMap + "data:\n"
	for i := range 26 {
		ask += fmt.Sprintf("  c%d: \"{{ eq (substr 0 1 .Values.password) \"%c\" }}\"\n", i, 'a'+i)
	}
	for name, template := range map[string]string{
		"a name of text":          aSecret + `stringData: {"{{ .Values.password }}": x}`,
		"a name of a number":      aSecret + `stringData: {"{{ .Values.password }}": 5}`,
		"a name of no base64":     aSecret + `data: {"{{ .Values.password | upper }}": "!!"}`,
		"a name below a name":     aSecret + `stringData: {a: {"{{ .Values.password }}": 5}}`,
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
				app, all := charted(t, template, "password: "+password+"\n", key)
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

// TestEncryptedExample checks that the files of examples/encrypted render with and without their key, and give the same release.
func TestEncryptedExample(t *testing.T) {
	files := readFiles(t, "../examples/encrypted")
	secret, err := os.ReadFile("sops/testdata/test.agekey")
	must(t, err)
	app := rollout.App{Name: "shop", Path: "apps/shop", Namespace: "shop", Decryption: "sops-keys"}
	open := mustRender(t, opener(t, sopstest.Key{Name: "test.agekey", Secret: string(secret)}), files, app)
	_, got := secretOf(t, open)
	compare.Check(t, map[string]string{"password": "example-of-a-password", "user": "postgres", "API_TOKEN": "example-of-a-token"}, got)
	sealed := mustRender(t, render.New(render.InProcess{}), files, app)
	compare.CheckNamed(t, "left closed without the key", []string{"apps/shop/api.env", "apps/shop/database.yaml"}, sealed.Unopened)
	if open.Release() != sealed.Release() || len(open.Unopened)+len(open.Warnings)+len(sealed.Warnings) > 0 {
		t.Errorf("release %s with the key, which leaves %q closed, and %s without, warnings %q and %q",
			open.Release(), open.Unopened, sealed.Release(), open.Warnings, sealed.Warnings)
	}
}

// TestAnUnchangedFileAsksForNoKey checks how often Unlock is called. Without a matching key, each render calls Unlock,
// because a key may have been added. With a matching key, an unchanged app is not built again, so Unlock is not called.
func TestAnUnchangedFileAsksForNoKey(t *testing.T) {
	key, asked := sopstest.Age(t), 0
	keys := &sops.Keys{}
	r := render.New(render.InProcess{Unlock: func(_ rollout.App, locks []sops.Lock) ([]byte, error) {
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
