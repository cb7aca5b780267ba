package render_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/sopstest"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

const once = `annotations: {gitrollout.dev/create-only: "true"}`

// chanceChart returns an app in folder a whose chart has the given templates. If kind is not "", a patch marks the
// objects of this kind as create-only.
func chanceChart(kind string, templates ...string) map[string]string {
	files := map[string]string{"a/charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n"}
	for i, text := range templates {
		files["a/charts/db/templates/"+string(rune('a'+i))+".yaml"] = text
	}
	files["a/kustomization.yaml"] = "namePrefix: my-\nhelmCharts: [{name: db, releaseName: db}]\n"
	if kind != "" {
		files["a/kustomization.yaml"] += "patches:\n- {target: {kind: " + kind + "}, patch: '{apiVersion: v1, kind: " + kind +
			", metadata: {name: x, " + once + "}}'}\n"
	}
	return files
}

const (
	chanceSecret = "apiVersion: v1\nkind: Secret\nmetadata: {name: auth}\nstringData: {user: me, password: {{ randAlphaNum 24 }}}\n"
	chanceConfig = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: seed}\ndata: {seed: {{ randAlphaNum 24 }}}\n"
	fixedConfig  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fixed}\ndata: {a: b}\n"
)

var appA = rollout.App{Name: "a", Path: "a", Namespace: "shop"}

// TestMadeOnce checks that a chart may have a Secret with random values if the Secret is create-only. Each render has new random values,
// but the same digest.
func TestMadeOnce(t *testing.T) {
	drawn := map[string]bool{}
	var digest string
	for range 3 {
		r := mustRender(t, render.New(render.InProcess{}), chanceChart("Secret", chanceSecret, fixedConfig), appA)
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
		want := "Secret my-auth: its content is generated at random when the Secret is created, and exists only in the cluster"
		if len(r.Warnings) != 1 || r.Warnings[0] != want {
			t.Errorf("warnings: %v", r.Warnings)
		}
		if told := r.ByRef()[o.Ref()]; told == nil || told["stringData"] != nil || digest != "" && digest != r.Digest {
			t.Errorf("told is %v, the digest %s after %s", told, r.Digest, digest)
		}
		digest = r.Digest
	}
	compare.CheckNamed(t, "passwords", 3, len(drawn))
}

// TestMadeOnceOtherwise checks the errors for random values outside of a create-only Secret's data, and for wrong create-only annotations.
func TestMadeOnceOtherwise(t *testing.T) {
	const secret = "a/charts/db/templates/a.yaml: Secret/auth: stringData.password"
	const wayOut = `; or have the Secret created only once, with a patch that adds the annotation gitrollout.dev/create-only: "true"`
	const give = "set it by a value, or remove it from the template"
	const by = " would differ at each render (randAlphaNum); " + give
	const annotation = "metadata.annotations[gitrollout.dev/create-only]: is "
	annotated := strings.Replace(chanceSecret, "{name: auth}", "{name: auth, "+once+"}", 1)
	labelled := strings.Replace(chanceSecret, "{name: auth}", "{name: auth, labels: {x: {{ randAlpha 3 }}}}", 1)
	certificate := strings.Replace(chanceSecret, "{{ randAlphaNum 24 }}", `{{ (genCAWithKey "x" 1 (randAlphaNum 5)).Cert }}`, 1)
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"not annotated":  {chanceChart("", chanceSecret), secret + by + wayOut},
		"another object": {chanceChart("Secret", chanceSecret, chanceConfig), "a/charts/db/templates/b.yaml: ConfigMap/seed: data.seed" + by},
		"another Secret": {chanceChart("", annotated, strings.Replace(chanceSecret, "auth", "other", 1)),
			"a/charts/db/templates/b.yaml: Secret/other: stringData.password" + by + wayOut},
		"a label by chance": {chanceChart("Secret", labelled), "would differ at each render, not only in the values of data and " +
			"stringData (Secret//my-auth); give it a fixed name, type, labels and annotations"},
		"on a ConfigMap": {chanceChart("ConfigMap", fixedConfig), annotation + "on a ConfigMap, but only a Secret can be create-only " +
			"(ConfigMap//my-fixed); remove the annotation, and write the object's content"},
		"another value": {map[string]string{"a/kustomization.yaml": "resources: [s.yaml]", "a/s.yaml": "apiVersion: v1\nkind: Secret\n" +
			"metadata: {name: s, " + strings.Replace(once, "true", "yes", 1) + "}\n"},
			"a/s.yaml: " + annotation + `"yes", but only true is allowed (Secret//s); write "true", or take it out`},
		"no value can come": {chanceChart("Secret", certificate), "cannot be created: rendering with random values failed " +
			"(Secret//my-auth); commit the output of helm template, or set its values"},
		"an object or other": {chanceChart("Secret", chanceSecret+"---\n"+strings.Replace(fixedConfig, "fixed", "{{ randAlpha 3 | lower }}", 1)),
			"ConfigMap/aaa: metadata.name would differ at each render (randAlpha, randAlphaNum); " + give},
	} {
		if _, err := rendered(c.files, appA); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", name, err, c.want)
		}
	}
}

// TestMadeOnceFromGit checks that a Secret in Git may be create-only. The digest does not depend on the Secret's values.
func TestMadeOnceFromGit(t *testing.T) {
	digest := func(value string) string {
		r := renderDocs(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: s, "+once+"}\nstringData: {a: "+value+"}\n")
		if r.Objects[0].Map("stringData")["a"] != value {
			t.Fatal(r)
		}
		return r.Digest
	}
	if digest("one") != digest("two") {
		t.Error("the digest tells what it holds")
	}
}

// TestMadeOnceOfEncryptedValues checks a Secret with both random and encrypted values. Without keys, the Secret stays sealed.
func TestMadeOnceOfEncryptedValues(t *testing.T) {
	key := sopstest.Age(t)
	app, files := encryptedApp(chanceChart("Secret", strings.Replace(chanceSecret, "user: me", "user: {{ .Values.user }}", 1)))
	files["a/kustomization.yaml"] = strings.Replace(files["a/kustomization.yaml"], "releaseName: db", "releaseName: db, valuesFile: v.yaml", 1)
	files["a/v.yaml"] = sopstest.Encrypt(t, "v.yaml", "user: hunter2\n", "", func(string) bool { return true }, key)
	open, sealed := mustRender(t, opener(t, key), files, app), mustRender(t, render.New(render.InProcess{}), files, app)
	if _, values := secretOf(t, open); values["user"] != "hunter2" || strings.Trim(values["password"], "a") == "" {
		t.Errorf("it holds %v", values)
	}
	if o := sealed.Objects[0]; o.Annotation(rollout.AnnotationSealed) == "" || sealed.Digest != open.Digest {
		t.Errorf("without keys it is %v, and the digest %s for %s", o, sealed.Digest, open.Digest)
	}
}
