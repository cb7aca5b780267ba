package render

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/sopstest"
	"gitrollout.dev/gitrollout/rollout"
)

const once = `metadata: {annotations: {gitrollout.dev/create-only: "true"}}`

// chanceChart is a chart with the given templates, in a kustomization that patches some of its objects.
func chanceChart(kinds string, templates ...string) map[string]string {
	files := map[string]string{"a/charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n"}
	for i, text := range templates {
		files["a/charts/db/templates/"+string(rune('a'+i))+".yaml"] = text
	}
	k := "namePrefix: my-\nhelmCharts: [{name: db, releaseName: db}]\n"
	if kinds != "" {
		k += "patches:\n"
		for kind := range strings.FieldsSeq(kinds) {
			k += "- {target: {kind: " + kind + "}, patch: '{apiVersion: v1, kind: " + kind + ", metadata: {name: x, annotations: {gitrollout.dev/create-only: \"true\"}}}'}\n"
		}
	}
	files["a/kustomization.yaml"] = k
	return files
}

const (
	chanceSecret = "apiVersion: v1\nkind: Secret\nmetadata: {name: auth}\nstringData: {user: me, password: {{ randAlphaNum 24 }}}\n"
	chanceConfig = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: seed}\ndata: {seed: {{ randAlphaNum 24 }}}\n"
	fixedConfig  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fixed}\ndata: {a: b}\n"
)

// TestMadeOnce generates a random Secret of a chart if it is create-only. No two renders have the same values, and
// everything that is compared is equal.
func TestMadeOnce(t *testing.T) {
	app := rollout.App{Name: "a", Path: "a", Namespace: "shop"}
	drawn := map[string]bool{}
	var digest string
	for range 3 {
		r, err := New(InProcess{}).Render(newTree(chanceChart("Secret", chanceSecret, fixedConfig)), app, rollout.Commit{})
		if err != nil {
			t.Fatal(err)
		}
		o := r.Objects[0]
		if !o.IsSecret() {
			o = r.Objects[1]
		}
		values := o.Map("stringData")
		password, _ := values["password"].(string)
		if len(password) != 24 || strings.Trim(password, "a") == "" || values["user"] != "me" || o.Name() != "my-auth" {
			t.Fatalf("the Secret is %v", o)
		}
		drawn[password] = true
		want := "Secret my-auth: its content is drawn at random when it is made, and is in the cluster alone"
		if len(r.Warnings) != 1 || r.Warnings[0] != want {
			t.Errorf("warnings: %v", r.Warnings)
		}
		if told := r.ByRef()[o.Ref()]; told == nil || told["stringData"] != nil || digest != "" && digest != r.Digest {
			t.Errorf("told is %v, the digest %s after %s", told, r.Digest, digest)
		}
		digest = r.Digest
	}
	if len(drawn) != 3 {
		t.Errorf("drawn are %v", drawn)
	}
}

// TestMadeOnceOtherwise refuses random values elsewhere, and the annotation where it has no meaning.
func TestMadeOnceOtherwise(t *testing.T) {
	const secret, wayOut = "a/charts/db/templates/a.yaml: ", `; or have it made once, by a patch that annotates it gitrollout.dev/create-only: "true"`
	by := func(what string) string { return " would be another at each render (randAlphaNum); " + what }
	const give = "give it by a value, or take it out of the template"
	note := strings.Replace(chanceSecret, "{name: auth}", "{name: auth, labels: {x: {{ randAlpha 3 }}}}", 1)
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"not annotated":  {chanceChart("", chanceSecret), secret + "Secret/auth: stringData.password" + by(give) + wayOut},
		"another object": {chanceChart("Secret", chanceSecret, chanceConfig), "a/charts/db/templates/b.yaml: ConfigMap/seed: data.seed" + by(give)},
		"another Secret": {chanceChart("", strings.Replace(chanceSecret, "{name: auth}", "{name: auth, annotations: {gitrollout.dev/create-only: \"true\"}}", 1), strings.Replace(chanceSecret, "auth", "other", 1)),
			"a/charts/db/templates/b.yaml: Secret/other: stringData.password" + by(give) + wayOut},
		"a label by chance":  {chanceChart("Secret", note), "has more than values of data and stringData that would be others at each render (Secret//my-auth); give it a fixed name, type, labels and annotations"},
		"on a ConfigMap":     {chanceChart("ConfigMap", fixedConfig), "metadata.annotations[gitrollout.dev/create-only]: is on a ConfigMap, and Secrets alone are made once (ConfigMap//my-fixed); take it out, and write the content of the object"},
		"another value":      {map[string]string{"a/kustomization.yaml": "resources: [s.yaml]", "a/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {gitrollout.dev/create-only: 'yes'}}\n"}, "a/s.yaml: metadata.annotations[gitrollout.dev/create-only]: is \"yes\", and true is all that it may be (Secret//s); write \"true\", or take it out"},
		"no value can come":  {chanceChart("Secret", strings.Replace(chanceSecret, "{{ randAlphaNum 24 }}", `{{ (genCAWithKey "x" 1 (randAlphaNum 5)).Cert }}`, 1)), "cannot be made with values by chance, as Helm would make it (Secret//my-auth); look at it with helm template, or give its values"},
		"an object or other": {chanceChart("Secret", chanceSecret+"---\n"+strings.Replace(fixedConfig, "fixed", "{{ randAlpha 3 | lower }}", 1)), "ConfigMap/aaa: metadata.name would be another at each render (randAlpha, randAlphaNum); " + give},
	} {
		_, err := New(InProcess{}).Render(newTree(c.files), rollout.App{Name: "a", Path: "a", Namespace: "shop"}, rollout.Commit{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", name, err, c.want)
		}
	}
}

// TestMadeOnceFromGit allows a Secret in Git to be create-only too; changes of its values are ignored.
func TestMadeOnceFromGit(t *testing.T) {
	digest := func(value string) string {
		files := map[string]string{"a/kustomization.yaml": "resources: [s.yaml]", "a/s.yaml": "apiVersion: v1\nkind: Secret\n" + strings.Replace(once, "{", "{name: s, ", 1) + "\nstringData: {a: " + value + "}\n"}
		r, err := New(InProcess{}).Render(newTree(files), rollout.App{Name: "a", Path: "a", Namespace: "shop"}, rollout.Commit{})
		if err != nil || r.Objects[0].Map("stringData")["a"] != value {
			t.Fatalf("%v, %v", r, err)
		}
		return r.Digest
	}
	if digest("one") != digest("two") {
		t.Error("the digest tells what it holds")
	}
}

// TestMadeOnceOfEncryptedValues has random and encrypted values in one Secret; without keys it is sealed.
func TestMadeOnceOfEncryptedValues(t *testing.T) {
	key := sopstest.Age(t)
	app, files := encryptedApp(chanceChart("Secret", strings.Replace(chanceSecret, "user: me", "user: {{ .Values.user }}", 1)))
	files["a/kustomization.yaml"] = strings.Replace(files["a/kustomization.yaml"], "releaseName: db", "releaseName: db, valuesFile: v.yaml", 1)
	files["a/v.yaml"] = sopstest.Encrypt(t, "v.yaml", "user: hunter2\n", "", func(string) bool { return true }, key)
	open, err := opener(t, key).Render(newTree(files), app, rollout.Commit{})
	if err != nil {
		t.Fatal(err)
	}
	if _, values := secretOf(t, open); values["user"] != "hunter2" || strings.Trim(values["password"], "a") == "" {
		t.Errorf("it holds %v", values)
	}
	sealed, err := New(InProcess{}).Render(newTree(files), app, rollout.Commit{})
	if err != nil {
		t.Fatal(err)
	}
	if o := sealed.Objects[0]; o.Annotation(rollout.AnnotationSealed) == "" || sealed.Digest != open.Digest {
		t.Errorf("without keys it is %v, and the digest %s for %s", o, sealed.Digest, open.Digest)
	}
}
