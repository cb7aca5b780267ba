package render_test

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// benchApp returns an app of typical size, with seven files. The base has a Deployment, two Services and a generated
// ConfigMap. The overlay has a patch and a Rollout.
func benchApp() map[string]string {
	return map[string]string{
		"base/kustomization.yaml": "resources: [deployment.yaml, services.yaml]\nconfigMapGenerator: [{name: settings, envs: [settings.env]}]\n",
		"base/settings.env":       "A=1\nB=2\n",
		"base/deployment.yaml":    deploymentHead + "  replicas: 4\n",
		"base/services.yaml":      serviceDocs[4:],
		"prod/kustomization.yaml": "resources: [../base, rollout.yaml]\nnamespace: shop\nnamePrefix: prod-\npatches: [{path: patch.yaml}]\n" +
			"images: [{name: web, newTag: \"2\"}]\n",
		"prod/patch.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n" +
			"spec: {template: {spec: {containers: [{name: web, envFrom: [{configMapRef: {name: settings}}]}]}}}\n",
		"prod/rollout.yaml": strings.Replace(ownHead, "Deployment, name: web", "Deployment, name: prod-web", 1) +
			"  strategy: {canary: {steps: [{setWeight: 20}, {pause: {}}]}}\n",
	}
}

// BenchmarkBuild builds one app, without a cache.
func BenchmarkBuild(b *testing.B) {
	tree := newTree(benchApp())
	b.ReportAllocs()
	for b.Loop() {
		_, err := render.New(render.InProcess{}).Render(tree, rollout.App{Name: "a", Path: "prod", Namespace: "shop"}, rollout.Commit{})
		must(b, err)
	}
}

// BenchmarkFluxRule resets the schema before and after each build, as fluxcd/pkg does. Compare the result with BenchmarkBuild.
func BenchmarkFluxRule(b *testing.B) {
	tree := newTree(benchApp())
	for b.Loop() {
		must(b, render.BuildAlone(tree, "prod"))
	}
}

// BenchmarkUnchanged renders an app at a commit that changed only another app.
func BenchmarkUnchanged(b *testing.B) {
	files, apps := manyApps(200)
	r := render.New(render.InProcess{})
	mustRender(b, r, files, apps[0])
	next := newTree(with(files, "apps/a07/prod/cm.yaml", "x"))
	b.ReportAllocs()
	for b.Loop() {
		_, err := r.Render(next, apps[0], rollout.Commit{})
		must(b, err)
	}
	compare.CheckNamed(b, "builds", 1, r.Builds())
}

// BenchmarkChart renders a chart of 40 templates with typical helpers. A render should take at most 30 ms.
func BenchmarkChart(b *testing.B) {
	files := shopChart("apps/shop")
	files["apps/shop/templates/_helpers.tpl"] = `{{- define "name" -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{- end }}
{{- define "labels" -}}
app.kubernetes.io/name: {{ include "name" . }}
app.kubernetes.io/version: {{ .Chart.Version | quote }}
{{- end }}
`
	for i := range 39 {
		files[fmt.Sprintf("apps/shop/templates/t%d.yaml", i)] = fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "name" . }}-%d
  labels: {{- include "labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: a%d}}
  template:
    metadata: {labels: {app: a%d}}
    spec:
      containers:
      - name: main
        image: "web:{{ .Values.colour }}"
        {{- with .Values.list }}
        args: {{- toYaml . | nindent 8 }}
        {{- end }}
        ports:
        - {name: http, containerPort: 80}
`, i, i, i)
	}
	tree := newTree(files)
	b.ReportAllocs()
	for b.Loop() {
		_, err := render.New(render.InProcess{}).Render(tree, chartShop(rollout.Helm{}), rollout.Commit{})
		must(b, err)
	}
}
