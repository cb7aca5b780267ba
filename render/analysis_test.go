package render_test

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// TestArgoAnalyses checks that the analyses of an Argo Rollout are read, and that their templates are not applied. The app has shared
// templates, a ClusterAnalysisTemplate, every kind of argument, a dry run, a background analysis and a step's analysis.
func TestArgoAnalyses(t *testing.T) {
	got := mustRender(t, render.New(render.InProcess{CheckProvider: provider.Check}), map[string]string{
		"shared/kustomization.yaml": "resources: [errors.yaml, latency.yaml]\n",
		"shared/errors.yaml": `apiVersion: argoproj.io/v1alpha1
kind: ClusterAnalysisTemplate
metadata: {name: errors}
spec:
  args: [{name: hash}, {name: token, valueFrom: {secretKeyRef: {name: metrics, key: token}}}, {name: limit, value: "0.01"}]
  metrics:
  - {name: errors, interval: 30s, failureLimit: 2, successCondition: "result < {{args.limit}}", provider: {
    web: {url: "http://metrics/{{args.hash}}", headers: [{key: Authorization, value: "Bearer {{args.token}}"}]}}}
`,
		"shared/latency.yaml": `apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: latency}
spec:
  args: [{name: region}, {name: app, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
  dryRun: [{metricName: latency}]
  metrics:
  - {name: latency, count: 3, interval: 1m, provider: {
    prometheus: {address: "http://prometheus:9090", query: 'p99{region="{{args.region}}",app="{{args.app}}"}'}}}
`,
		"app/kustomization.yaml": "namespace: shop\nresources: [web.yaml, rollout.yaml, ../shared]\n",
		"app/web.yaml":           deploymentHead,
		"app/rollout.yaml": `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, labels: {region: eu}}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  strategy:
    canary:
      analysis:
        startingStep: 1
        templates: [{templateName: errors, clusterScope: true}]
        args: [{name: hash, valueFrom: {podTemplateHashValue: Latest}}, {name: limit, value: "0.05"}]
      steps:
      - setWeight: 20
      - analysis:
          templates: [{templateName: latency}]
          args: [{name: region, valueFrom: {fieldRef: {fieldPath: "metadata.labels['region']"}}}]
      - pause: {}
`,
	}, rollout.App{Name: "web", Path: "app", Namespace: "shop"})
	for _, o := range got.Objects {
		if kind := o.Ref().Kind; kind != "Deployment" {
			t.Errorf("a %s would be applied", kind)
		}
	}
	if len(got.Specs) != 1 {
		t.Fatalf("%d specs", len(got.Specs))
	}
	canary := got.Specs[0].Canary
	background := rollout.Analysis{StartingStep: 1, Metrics: []rollout.Metric{{
		Name: "errors", Interval: 30 * time.Second, FailureLimit: 2, SuccessCondition: "result < 0.05", ConsecutiveErrorLimit: 4,
		Retention: 10, Provider: "web", Config: map[string]any{
			"url": "http://metrics/{{args.hash}}", "headers": []any{map[string]any{"key": "Authorization", "value": "Bearer {{args.token}}"}},
		},
		Secrets: map[string]rollout.SecretRef{"token": {Name: "metrics", Key: "token"}}, Pods: map[string]string{"hash": "Latest"},
	}}}
	compare.CheckNamed(t, "in the background", &background, canary.Analysis)
	step := rollout.Analysis{Metrics: []rollout.Metric{{
		Name: "latency", Count: 3, Interval: time.Minute, ConsecutiveErrorLimit: 4, Retention: 10, DryRun: true, Provider: "prometheus",
		Config:  map[string]any{"address": "http://prometheus:9090", "query": `p99{region="eu",app="web"}`},
		Secrets: map[string]rollout.SecretRef{}, Pods: map[string]string{},
	}}}
	compare.CheckNamed(t, "at the step", &step, canary.Steps[1].Analysis)
}

// TestAnalysesOfArgoRolloutsAreRead checks two mistakes that cause only warnings, because Argo Rollouts accepts them. A background analysis
// starts after the last step, and an argument comes from a missing label. If the label exists, the argument has the label's value.
func TestAnalysesOfArgoRolloutsAreRead(t *testing.T) {
	for labels, known := range map[string]bool{"{}": false, "{region: eu}": true} {
		got := mustRender(t, render.New(render.InProcess{CheckProvider: provider.Check}), map[string]string{
			"kustomization.yaml": "resources: [app.yaml, template.yaml, rollout.yaml]\n",
			"app.yaml":           deploymentHead,
			"template.yaml": `apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: load}
spec:
  args: [{name: region}]
  metrics: [{name: load, successCondition: result < 1, provider: {web: {url: "http://metrics/{{args.region}}"}}}]
`,
			"rollout.yaml": `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, labels: ` + labels + `}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  strategy:
    canary:
      analysis:
        startingStep: 2
        templates: [{templateName: load}]
        args: [{name: region, valueFrom: {fieldRef: {fieldPath: "metadata.labels['region']"}}}]
      steps: [{setWeight: 20}, {pause: {}}]
`,
		}, demo)
		text := strings.Join(got.Warnings, "\n")
		if !strings.Contains(text, "2 is after the last step") || strings.Contains(text, "cannot be measured") == known {
			t.Errorf("with labels %s: %s", labels, text)
		}
		config, err := analysis.Complete(got.Specs[0].Canary.Analysis.Metrics[0], analysis.Known{}, nil)
		if known && (err != nil || config["url"] != "http://metrics/eu") || !known && err == nil {
			t.Errorf("with labels %s: %v, %v", labels, config, err)
		}
	}
}
