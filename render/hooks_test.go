package render_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/sopstest"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

const halfway = ownHead + "  strategy: {canary: {steps: [{setWeight: 50}]}}\n"

// migrating returns the files of an app with a Rollout and with the given document, such as a hook Job.
func migrating(t *testing.T, document string) map[string]string {
	t.Helper()
	repo := archiveFiles(t, "testdata/invalid/rollout/base.txtar")
	repo["kustomization.yaml"] = "resources: [deployment.yaml, services.yaml, migrate.yaml, rollout.yaml]\n"
	repo["rollout.yaml"] = halfway
	repo["migrate.yaml"] = document
	return repo
}

// TestHooks checks that supported hooks stay among the objects, and that hooks for other events are left out with a warning. The error for
// an invalid hook names file and fix. An app with a hook Job but without a Rollout has a content hash.
func TestHooks(t *testing.T) {
	object := func(version, kind, annotation string) string {
		return "apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: migrate, annotations: {" + annotation + "}}\n"
	}
	for name, c := range map[string]struct {
		document string
		kept     bool   // the document is among the objects
		want     string // part of the message
	}{
		"ours":        {object("batch/v1", "Job", "gitrollout.dev/hook: before") + "spec: {ttlSecondsAfterFinished: 9}\n", true, ""},
		"Argo CD's":   {object("batch/v1", "Job", "argocd.argoproj.io/hook: PreSync"), true, ""},
		"beside them": {object("v1", "ConfigMap", "argocd.argoproj.io/hook: PreSync"), true, ""},
		"a test": {object("v1", "Pod", "helm.sh/hook: test"), false,
			"Pod/shop/migrate is a hook that does not run at releases, and is left out"},
		"Sync": {object("batch/v1", "Job", "argocd.argoproj.io/hook: Sync"), false,
			`migrate.yaml: metadata.annotations[argocd.argoproj.io/hook]: "Sync": a hook cannot run while other objects are applied ` +
				`(Job/shop/migrate); write PreSync to have it run before the release, or take the annotation out ` +
				`to have the object applied with the others`},
		"a CronJob": {object("batch/v1", "CronJob", "gitrollout.dev/hook: after"), false, "migrate.yaml: kind: CronJob cannot be a hook " +
			"(CronJob/shop/migrate); make it a Job of batch/v1, or remove its annotation to apply it with the other objects"},
	} {
		for _, staged := range []bool{true, false} {
			at := fmt.Sprintf("%s, staged %t", name, staged)
			repo := migrating(t, c.document)
			if !staged {
				repo["kustomization.yaml"] = strings.Replace(repo["kustomization.yaml"], ", rollout.yaml", "", 1)
			}
			r, err := rendered(repo, demo)
			if err != nil {
				compare.CheckNamed(t, at, c.want, err.Error())
				continue
			}
			compare.CheckNamed(t, at+": warnings", c.want, strings.Join(r.Warnings, "; "))
			compare.CheckNamed(t, at+": it is among the objects", c.kept, slices.Contains(strings.Fields(names(r)), "migrate"))
			digits := map[bool]string{true: "h1-"}[staged]
			if !staged && c.kept && strings.Contains(c.document, "kind: Job") {
				digits = "c1-"
			}
			if got := string(r.Release()); !strings.HasPrefix(got, digits) || (got == "") != (digits == "") {
				t.Errorf("%s: the release is %q, want %s…", at, got, digits)
			}
		}
	}
}

// TestContent checks the content hash of an app without Rollout documents. The hash changes with each object, including
// hooks and encrypted values. It does not depend on keys, on the order of objects, or on hooks that never run.
func TestContent(t *testing.T) {
	key := sopstest.Age(t)
	const hooks = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {gitrollout.dev/hook: before}}\n" +
		"spec: {completions: 1}\n"
	const try = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: try, annotations: {helm.sh/hook: test}}\nspec: {n: 1}\n"
	of := func(secret string, r *render.Renderer, more ...string) rollout.Hash {
		t.Helper()
		app, files := encryptedApp(map[string]string{"a/secret.yaml": secret,
			"a/kustomization.yaml": "resources: [deployment.yaml, secret.yaml, hooks.yaml]\n", "a/hooks.yaml": hooks + try})
		for i := 0; i < len(more); i += 3 {
			files[more[i]] = strings.Replace(files[more[i]], more[i+1], more[i+2], 1)
		}
		return mustRender(t, r, files, app).Release()
	}
	secret := sopstest.Manifest(t, secretManifest, key)
	first := of(secret, render.New(render.InProcess{}))
	for name, c := range map[string]struct {
		got  rollout.Hash
		same bool
	}{
		"with the key": {of(secret, opener(t, key)), true},
		"in other order": {of(secret, render.New(render.InProcess{}), "a/kustomization.yaml", "deployment.yaml, secret.yaml, hooks.yaml",
			"hooks.yaml, secret.yaml, deployment.yaml"), true},
		"another test":   {of(secret, render.New(render.InProcess{}), "a/hooks.yaml", "n: 1", "n: 2"), true},
		"another hook":   {of(secret, render.New(render.InProcess{}), "a/hooks.yaml", "completions: 1", "completions: 2"), false},
		"another secret": {of(sopstest.Manifest(t, strings.Replace(secretManifest, "postgres", "mysql", 1), key), opener(t, key)), false},
		"another object": {of(secret, render.New(render.InProcess{}), "a/deployment.yaml", "{name: db}", "{name: db, labels: {a: b}}"), false},
	} {
		if (c.got == first) != c.same {
			t.Errorf("%s: %s, and it was %s", name, c.got, first)
		}
	}
}

// TestHooksOfCharts checks that a chart's supported hooks stay among the objects of an app with a Rollout. Other hooks are left out. Each
// of them causes a warning, except test hooks.
func TestHooksOfCharts(t *testing.T) {
	const chart = "apps/shop/charts/shop"
	files := merged(shopChart(chart), map[string]string{
		"apps/shop/kustomization.yaml": "resources: [rollout.yaml]\nhelmCharts: [{name: shop, releaseName: eu}]\n",
		"apps/shop/rollout.yaml":       strings.ReplaceAll(halfway, "name: web", "name: eu-web"),
		chart + "/templates/job.yaml": "apiVersion: batch/v1\nkind: Job\n" +
			"metadata: {name: migrate, annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}}\nspec: {template: {}}\n",
		chart + "/templates/map.yaml":  configMap("with, annotations: {helm.sh/hook: pre-upgrade}"),
		chart + "/templates/pod.yaml":  "apiVersion: v1\nkind: Pod\nmetadata: {name: old, annotations: {helm.sh/hook: pre-upgrade}}\n",
		chart + "/templates/gone.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: gone, annotations: {helm.sh/hook: pre-delete}}\n",
		chart + "/templates/test.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: try, annotations: {helm.sh/hook: test}}\n",
	})
	r := mustRender(t, render.New(render.InProcess{}), files, rollout.App{Name: "shop", Path: "apps/shop", Namespace: "shop"})
	compare.Check(t, []string{"core/ConfigMap/shop/with", "apps/Deployment/shop/eu-web", "batch/Job/shop/migrate"}, refs(r.Objects))
	want := "Job/shop/gone is a Helm hook (pre-delete), and is left out; " +
		"Pod/shop/old is a Helm hook (pre-upgrade), and is left out: kind: Pod cannot be a hook; " +
		"make it a Job of batch/v1, or remove its annotation to apply it with the other objects"
	compare.CheckNamed(t, "warnings", want, strings.Join(r.Warnings, "; "))
}

// TestHooksThatServicesSelect checks the warning about a Service that selects a hook Job's pods. In the test, kustomize
// adds the same label to all objects.
func TestHooksThatServicesSelect(t *testing.T) {
	repo := migrating(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {gitrollout.dev/hook: before}}\n"+
		"spec: {template: {metadata: {labels: {job: migrate}}, spec: {containers: [{name: a, image: b}]}}}\n")
	resources := repo["kustomization.yaml"]
	for labels, want := range map[string]bool{
		"": false, "commonLabels: {app: web}\n": true, "labels: [{pairs: {team: a}, includeTemplates: true}]\n": false,
	} {
		repo["kustomization.yaml"] = resources + labels
		r := renderRepo(t, repo)
		if got := strings.Contains(strings.Join(r.Warnings, "\n"), "selects the pods of Job migrate"); got != want {
			t.Errorf("%q: warnings %q, want a warning about the Service: %t", labels, r.Warnings, want)
		}
	}
}

// TestHooksWithoutAName checks that a Job without a name is named after its generateName. The first case is Argo CD's example.
func TestHooksWithoutAName(t *testing.T) {
	const argo = `apiVersion: batch/v1
kind: Job
metadata:
  generateName: schema-migrate-
  annotations:
    argocd.argoproj.io/hook: PreSync
`
	for text, want := range map[string]string{
		argo:                                     "schema-migrate",
		strings.ReplaceAll(argo, "\n", "\r\n"):   "schema-migrate",
		"# first\n---\n" + argo + "--- # last\n": "schema-migrate",
		strings.Replace(argo, "schema-migrate-", `"db.up-" # numbered`, 1):                                    "db.up",
		strings.Replace(argo, "  annotations", "  name: own\n  annotations", 1):                               "own",
		strings.Replace(argo, "argocd.argoproj.io/hook: PreSync", "team: a", 1):                               "",
		strings.Replace(argo, "kind: Job", "kind: CronJob", 1):                                                "",
		"metadata: {generateName: a-}\n":                                                                      "",
		"kind: [\ngenerateName: a\n":                                                                          "",
		strings.Replace(argo, "  generateName: schema-migrate-\n", "", 1) + "spec:\n  generateName: other-\n": "",
	} {
		got, name := string(render.WithNames([]byte(text))), ""
		for _, part := range regexp.MustCompile(`(?m)^---.*\n`).Split(got, -1) {
			var o rollout.Object
			if yaml.Unmarshal([]byte(part), &o) == nil && o.Name() != "" {
				name = o.Name()
			}
		}
		if name != want || (want == "" || want == "own") && got != text {
			t.Errorf("%q has the name %q, want %q:\n%s", text, name, want, got)
		}
	}
	for _, plain := range []bool{false, true} {
		repo, app, want := migrating(t, argo), demo, "eu-schema-migrate"
		app.Plain = true
		if repo["kustomization.yaml"] += "namePrefix: eu-\n"; plain {
			delete(repo, "kustomization.yaml")
			want = "schema-migrate"
		}
		hooks := hook.At(mustRender(t, render.New(render.InProcess{}), repo, app).Objects, rollout.HookBefore, hook.Release{})
		if len(hooks) != 1 || hooks[0].JobName("h1-0123456789", 2) != want+"-01234567-2" {
			t.Errorf("of a folder of manifests %t: %+v", plain, hooks)
		}
	}
}
