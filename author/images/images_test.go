package images_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"gitrollout.dev/gitrollout/author/images"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/worktree"
	"gitrollout.dev/gitrollout/rollout"
)

const (
	digest1 = "sha256:" + "1111111111111111111111111111111111111111111111111111111111111111"
	digest2 = "sha256:" + "2222222222222222222222222222222222222222222222222222222222222222"
)

// pods is the start of a Deployment's manifest, to which tests append the containers.
const pods = `apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, labels: {version: v1}}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
`

// chart is a repository with a Helm chart, which takes the image from the values.
const chart = "-- .gitrollout/prod/config.yaml --\n" + config + `  helm: {}
-- apps/shop/Chart.yaml --
apiVersion: v2
name: shop
version: 1.0.0
appVersion: "v1"
-- apps/shop/templates/pods.yaml --
` + pods + `      - name: web
        image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
`

const kustomized = "-- apps/shop/pods.yaml --\n" + pods + `      - {name: web, image: web}
      - {name: log, image: "acme/log:v1"}
-- apps/shop/kustomization.yaml --
# the shop
resources: [pods.yaml]
`

// numbered is the repository `kustomized` with a ConfigMap. numbers is the ConfigMap, with 150 lines that look like the image tag 1.
var (
	numbered = strings.Replace(kustomized, "[pods.yaml]", "[counts.yaml, pods.yaml]", 1)
	numbers  = "-- apps/shop/counts.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: counts}\ndata:\n  text: |\n" +
		strings.Repeat("    '1'\n", 150)
)

// tests has a repository and an argument for each case. want has the changed lines or, for an error, the error's text. If nothing changes,
// want is "".
var tests = map[string]struct{ files, arg, want string }{
	"KustomizationTag": {kustomized + `images:
- name: other
  newTag: v1
- name: web # the shop's pages
  newTag: v1   # set by hand
`, "web=v2", "apps/shop/kustomization.yaml:7:   newTag: v2   # set by hand"},
	"OneLineEntry": {kustomized + "images: [{name: web, newTag: 'v1'}]\n", "web=v2",
		"apps/shop/kustomization.yaml:3: images: [{name: web, newTag: 'v2'}]"},
	"NumberIsQuoted": {kustomized + "images:\n- name: web\n  newTag: v1\n", "web=1.10", `apps/shop/kustomization.yaml:5:   newTag: "1.10"`},
	"TagFirst":       {kustomized + "images:\n- newTag: v1\n  name: web\n", "web=v2", "apps/shop/kustomization.yaml:4: - newTag: v2"},
	"TagToDigest": {kustomized + "images:\n- name: web\n  newTag: \"v1\"\n", "web=@" + digest2,
		"apps/shop/kustomization.yaml:5:   digest: " + digest2},
	"DigestToTag": {kustomized + "images:\n- name: web\n  digest: " + digest1 + " # pinned\n", "web=v2",
		"apps/shop/kustomization.yaml:5:   newTag: v2 # pinned"},
	"NewDigest": {kustomized + "images:\n- name: web\n  digest: " + digest1 + "\n", "web=@" + digest2,
		"apps/shop/kustomization.yaml:5:   digest: " + digest2},
	"NewRepository": {kustomized + "images:\n- name: web\n  newName: acme/web\n  newTag: v1\n", "web=ghcr.io/acme/web:v2",
		"apps/shop/kustomization.yaml:5:   newName: ghcr.io/acme/web\napps/shop/kustomization.yaml:6:   newTag: v2"},
	"TagBehindAReplacedName": {strings.Replace(kustomized, "image: web}", "image: web:v1}", 1) + "images:\n- name: web\n  newName: acme/web\n",
		"acme/web=v2", "apps/shop/pods.yaml:10:       - {name: web, image: web:v2}"},
	"Manifest":           {kustomized, "acme/log=v2", `apps/shop/pods.yaml:11:       - {name: log, image: "acme/log:v2"}`},
	"ManifestDigest":     {kustomized, "log=@" + digest2, `apps/shop/pods.yaml:11:       - {name: log, image: "acme/log@` + digest2 + `"}`},
	"ManifestWithoutTag": {kustomized, "web=v2", "apps/shop/pods.yaml:10:       - {name: web, image: web:v2}"},
	"ManifestRepository": {kustomized, "log=host:5000/log:v2", `apps/shop/pods.yaml:11:       - {name: log, image: "host:5000/log:v2"}`},
	"Unchanged":          {kustomized, "log=v1", ""},
	"Patch": {kustomized + `patches:
- target: {kind: Deployment}
  patch: |
    - {op: replace, path: /spec/template/spec/containers/0/image, value: web:v1}
`, "web=v2", "apps/shop/kustomization.yaml:6:     - {op: replace, path: /spec/template/spec/containers/0/image, value: web:v2}"},
	"WindowsLines": {"-- apps/shop/kustomization.yaml --\nresources: [pods.yaml]\r\nimages:\r\n- name: web\r\n  newTag: v1\r\n" +
		kustomized[:strings.Index(kustomized, "-- apps/shop/kust")], "web=v2", "apps/shop/kustomization.yaml:4:   newTag: v2\r"},
	"ChartTag": {chart + "-- apps/shop/values.yaml --\n# pages\nimage: {repository: acme/web, tag: v1}\nlog: v1\n", "web=v2",
		"apps/shop/values.yaml:2: image: {repository: acme/web, tag: v2}"},
	"ChartDefault": {chart + "-- apps/shop/values.yaml --\nimage:\n  repository: acme/web\n  tag: \"\" # appVersion\n", "web=v2",
		`apps/shop/values.yaml:3:   tag: "v2" # appVersion`},
	"ChartRepository": {chart + "-- apps/shop/values.yaml --\nimage:\n  repository: acme/web\n  tag: v1\n", "web=acme/shop:v2",
		"apps/shop/values.yaml:2:   repository: acme/shop\napps/shop/values.yaml:3:   tag: v2"},
	"ValueFile": {chart + "-- apps/shop/values.yaml --\nimage: {repository: acme/web, tag: v1}\n-- envs/prod.yaml --\nimage: {tag: v1}\n" +
		"-- .gitrollout/prod/config.yaml --\n" + config + "  helm: {valueFiles: [../../envs/prod.yaml]}\n", "web=v2",
		"envs/prod.yaml:1: image: {tag: v2}"},

	"Anchor": {kustomized + "images: [{name: web, newTag: &tag v1}]\n", "web=v2",
		"apps/shop/kustomization.yaml:3: has an anchor, which sets other fields as well"},
	"ChartWithoutTag": {chart + "-- apps/shop/values.yaml --\nimage: {repository: acme/web}\n", "web=v2",
		"apps/shop/Chart.yaml:4: is the version of the chart; set the tag in its values instead"},
	"SeveralLines": {strings.ReplaceAll(kustomized, "image: web}", "image: acme/log:v1}"), "acme/log=v2",
		"apps/shop/pods.yaml:10: does not set all of the images, or sets other fields as well\napps/shop/pods.yaml:11: does not set all"},
	"Variable": {strings.Replace(kustomized, "image: web}", "image: \"web:${TAG}\"}", 1) + "-- .gitrollout/prod/config.yaml --\n" + config +
		"  substitute: {TAG: v1}\n", "web=v2", ".gitrollout/prod/config.yaml:5:   substitute: {TAG: v2}"},
	"VariableWithAnchor": {strings.Replace(kustomized, "image: web}", "image: \"web:${TAG}\"}", 1) +
		"-- .gitrollout/prod/config.yaml --\n" + config + "  substitute: {TAG: &tag v1}\n", "web=v2",
		".gitrollout/prod/config.yaml:5: has an anchor, which sets other fields as well\n" +
			"apps/shop/pods.yaml:10: has the name of the image, but not its tag"},
	"WordsFirst": {numbered + "images: [{name: web, newTag: '1'}]\n" + numbers, "web=2",
		"apps/shop/kustomization.yaml:3: images: [{name: web, newTag: '2'}]"},
	"TooManyLines": {numbered + "images: [{name: web, newTag: &tag '1'}]\n" + numbers, "web=2",
		"apps/shop/kustomization.yaml:3: has an anchor, which sets other fields as well\n" +
			"apps/shop/counts.yaml: 51 more lines with this text, not tried"},
	"EachFile": {strings.Replace(numbered, "image: web}", "image: \"web:${VERSION}\"}", 1) + numbers + "-- .gitrollout/prod/config.yaml --\n" +
		config + "  substitute: {VERSION: '1'}\n", "web=2", ".gitrollout/prod/config.yaml:5:   substitute: {VERSION: '2'}"},
	"Generator": {kustomized + `configMapGenerator: [{name: version, literals: [IMAGE=web:v1]}]
replacements:
- source: {kind: ConfigMap, name: version, fieldPath: data.IMAGE}
  targets: [{select: {kind: Deployment}, fieldPaths: [spec.template.spec.containers.0.image]}]
`, "web=v2", "apps/shop/kustomization.yaml:3: does not set all of the images, or sets other fields as well"},
	"OtherFolder": {"-- base/pods.yaml --\n" + pods + "      - {name: web, image: web:v1}\n" +
		"-- base/kustomization.yaml --\nresources: [pods.yaml]\n-- apps/shop/kustomization.yaml --\nresources: [../../base]\n",
		"web=v2", "base/pods.yaml:10:       - {name: web, image: web:v2}"},
	"Vendored": {"-- apps/shop/vendor.yaml --\napiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n" +
		"- git: {url: 'https://git.example.com/web', ref: v1}\n  into: base\n" +
		"-- apps/shop/base/pods.yaml --\n" + pods + "      - {name: web, image: web:v1}\n-- apps/shop/base/kustomization.yaml --\n" +
		"resources: [pods.yaml]\n-- apps/shop/kustomization.yaml --\nresources: [base]\n", "web=v2",
		"apps/shop/base/pods.yaml:10: comes from apps/shop/vendor.yaml, so the next gitrollout vendor would remove the change"},

	"Misspelt": {kustomized, "acme/lgo=v2", `no container or image is named "acme/lgo"; did you mean acme/log?`},
	"Unknown":  {kustomized, "database=v2", `no container or image is named "database"; the app has acme/log, log, web`},
	"TwoImages": {kustomized + "-- apps/shop/job.yaml --\napiVersion: batch/v1\nkind: CronJob\nmetadata: {name: job}\n" +
		"spec: {schedule: '0 1 * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, " +
		"containers: [{name: log, image: acme/job}]}}}}}\n" +
		"-- apps/shop/kustomization.yaml --\nresources: [pods.yaml, job.yaml]\n", "log=v2",
		"containers named log have several images; name one image instead: acme/job, acme/log:v1"},
}

const config = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/shop\n"

func TestSet(t *testing.T) {
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, f := range txtar.Parse([]byte("-- .gitrollout/prod/config.yaml --\n" + config + tt.files)).Files {
				file := filepath.Join(dir, f.Name)
				must(t, os.MkdirAll(filepath.Dir(file), 0o755))
				must(t, os.WriteFile(file, f.Data, 0o644))
			}
			tree, err := worktree.Open(dir)
			must(t, err)
			r := render.New(render.InProcess{})
			renders := 0
			a := images.App{Tree: tree, Config: ".gitrollout/prod/config.yaml", Render: func(tree rollout.Tree) (*rollout.Render, error) {
				renders++
				data, _, err := source.ReadFile(tree, ".gitrollout/prod/config.yaml")
				must(t, err)
				c, err := rollout.ParseConfig(".gitrollout/prod/config.yaml", data)
				if err != nil {
					return nil, err
				}
				apps, err := render.FindApps(tree, c)
				must(t, err)
				return r.Render(tree, apps[0], rollout.Commit{})
			}}
			o, err := images.Parse(tt.arg)
			must(t, err)
			e, err := a.Set(o)
			if renders > 101 {
				t.Errorf("%d renders", renders)
			}
			got := ""
			if err != nil {
				compare.Contains(t, err.Error(), tt.want)
				return
			}
			if e.Path != "" {
				old, _, err := source.ReadFile(tree, e.Path)
				must(t, err)
				was := strings.Split(string(old), "\n")
				for i, line := range strings.Split(e.Content, "\n") {
					if was[i] != line {
						got += fmt.Sprintf("\n%s:%d: %s", e.Path, i+1, line)
					}
				}
			}
			compare.Check(t, tt.want, strings.TrimPrefix(got, "\n"))
			again, err := a.Set(o)
			if err != nil || again.Path != "" {
				t.Errorf("the edited tree: %+v, %v", again, err)
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string][3]string{
		"web=v2":                         {"web", "", ":v2"},
		"web=:v2":                        {"web", "", ":v2"},
		"acme/web=localhost:5000/web:v2": {"acme/web", "localhost:5000/web", ":v2"},
		"web=@" + digest1:                {"web", "", "@" + digest1},
		"web=acme/web@" + digest1:        {"web", "acme/web", "@" + digest1},
		"web":                            {}, "web=": {}, "=v2": {}, "web=acme/web": {}, "web=@v2": {}, "web=:" + digest1: {}, "web=v 2": {},
		"web=localhost:5000/web": {}, "web=@sha256:1234": {},
	} {
		got, err := images.Parse(text)
		compare.CheckNamed(t, text, want, got.Parts())
		if (err != nil) != (want == [3]string{}) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
