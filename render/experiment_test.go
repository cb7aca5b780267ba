package render_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

const experimentTemplate = `
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: errors}
spec:
  args: [{name: canary}, {name: baseline}, {name: since}, {name: region}]
  metrics:
  - name: errors
    interval: 1m
    count: 3
    provider:
      prometheus: {address: "http://p", query: "a{canary='{{args.canary}}',base='{{args.baseline}}'}[{{args.since}}] {{args.region}}"}
`

const experimentRollout = `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, annotations: {gitrollout.dev/scaling: surge}}
spec:
  progressDeadlineSeconds: 120
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  strategy:
    canary:
      stableService: web
      steps:
      - experiment:
          duration: 1h
          templates:
          - {name: baseline, specRef: stable, service: {}}
          - name: canary
            specRef: canary
            replicas: 3
            metadata: {labels: {app: web-try}, annotations: {note: try}}
            selector: {matchLabels: {app: web-try}}
            service: {name: web-try}
          analyses:
          - name: errors
            templateName: errors
            requiredForCompletion: true
            args:
            - {name: canary, value: "{{templates.canary.podTemplateHash}}"}
            - {name: baseline, value: "{{ templates.baseline.replicaset.name }}"}
            - {name: since, value: "{{experiment.availableAt}}..{{experiment.finishedAt}}"}
            - {name: region, value: eu}
          dryRun: [{metricName: err.*}]
      - setWeight: 50
`

// experimentApp returns the base app of testdata/invalid/rollout, with the given Rollout document and an
// AnalysisTemplate named "errors".
func experimentApp(t *testing.T, document string) map[string]string {
	t.Helper()
	repo := archiveFiles(t, "testdata/invalid/rollout/base.txtar")
	repo["kustomization.yaml"] = "resources: [deployment.yaml, services.yaml, rollout.yaml, errors.yaml]\n"
	repo["rollout.yaml"], repo["errors.yaml"] = document, experimentTemplate
	return repo
}

func TestExperiment(t *testing.T) {
	r := renderRepo(t, experimentApp(t, experimentRollout))
	got := *r.Specs[0].Canary.Steps[0].Experiment
	metric := got.Analyses[0].Metrics[0]
	want := rollout.Experiment{
		Duration: new(time.Hour), ProgressDeadlineSeconds: 120,
		Templates: []rollout.ExperimentTemplate{
			{Name: "baseline", SpecRef: rollout.SpecStable, Replicas: 1, Service: new("")},
			{Name: "canary", SpecRef: rollout.SpecCanary, Replicas: 3, Labels: map[string]string{"app": "web-try"},
				Annotations: map[string]string{"note": "try"}, Selector: map[string]any{"matchLabels": map[string]any{"app": "web-try"}},
				Service: new("web-try")},
		},
		Analyses: []rollout.ExperimentAnalysis{{Name: "errors", Required: true, Analysis: &rollout.Analysis{Metrics: []rollout.Metric{metric}}}},
	}
	compare.Check(t, want, got)
	pods := map[string]string{
		"canary": "{{templates.canary.podTemplateHash}}", "baseline": "{{ templates.baseline.replicaset.name }}",
		"since": "{{experiment.availableAt}}..{{experiment.finishedAt}}",
	}
	compare.CheckNamed(t, "arguments", pods, metric.Pods)
	if query := metric.Config["query"].(string); !strings.HasSuffix(query, "] eu") || !metric.DryRun || len(r.Warnings) > 0 {
		t.Errorf("dry run %t, query %s, warnings %v", metric.DryRun, query, r.Warnings)
	}
}

// TestExperimentWeight checks that a template with a weight has a Service, with the ports of the stable or the ping Service.
func TestExperimentWeight(t *testing.T) {
	const steps = `, trafficRouting: {gatewayAPI: {httpRoute: main}}, steps: [{setWeight: 80}, {experiment: {duration: 1h, templates: [
      {name: baseline, specRef: stable, weight: 10}, {name: canary, specRef: canary, weight: 10, service: {name: try}},
      {name: idle, specRef: stable}]}}]}}
`
	for name, services := range map[string]string{
		"services":  "stableService: web, canaryService: next",
		"ping pong": "pingPong: {pingService: web, pongService: next}",
	} {
		r := renderDocs(t, deploymentHead+serviceDocs+routeDocs+ownHead+"  strategy: {canary: {"+services+steps)
		e := r.Specs[0].Canary.Steps[1].Experiment
		want := []rollout.ExperimentTemplate{
			{Name: "baseline", SpecRef: rollout.SpecStable, Replicas: 1, Weight: 10, Service: new("")},
			{Name: "canary", SpecRef: rollout.SpecCanary, Replicas: 1, Weight: 10, Service: new("try")},
			{Name: "idle", SpecRef: rollout.SpecStable, Replicas: 1},
		}
		compare.CheckNamed(t, name, want, e.Templates)
	}
}

// TestExperimentWarnings checks the warnings for experiments that are valid but probably mistakes.
func TestExperimentWarnings(t *testing.T) {
	for name, tc := range map[string]struct{ old, with, want string }{
		"users are sent there": {"{app: web-try}, annotations", "{app: web}, annotations", "metadata.labels: Service/shop/web also selects"},
		"no delay":             {"duration: 1h", "duration: 1h\n          scaleDownDelaySeconds: 10", "scaleDownDelaySeconds is ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			document := strings.Replace(experimentRollout, tc.old, tc.with, 1)
			document = strings.Replace(document, "            selector: {matchLabels: {app: web-try}}\n", "", 1)
			compare.Contains(t, strings.Join(renderRepo(t, experimentApp(t, document)).Warnings, "\n"), tc.want)
		})
	}
}

// TestExperimentOfTheDocs checks that the example in docs/analysis.md renders.
func TestExperimentOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/analysis.md")
	must(t, err)
	_, section, _ := strings.Cut(string(page), "\n## Try two versions side by side\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) == 0 {
		t.Fatal("docs/analysis.md shows no experiment")
	}
	steps := "\n" + strings.TrimRight(strings.ReplaceAll("\n"+blocks[0][1], "\n", "\n      "), " \n") + "\n"
	head, _, _ := strings.Cut(experimentRollout, "\n      steps:")
	repo := experimentApp(t, strings.Replace(head, "argoproj.io", "gitrollout.dev", 1)+steps)
	repo["errors.yaml"] = strings.Replace(experimentTemplate, "{name: canary}, {name: baseline}, {name: since}, {name: region}",
		"{name: canary, value: x}, {name: baseline, value: x}, {name: since, value: x}, {name: region, value: x}", 1)
	e := renderRepo(t, repo).Specs[0].Canary.Steps[0].Experiment
	if e == nil || len(e.Templates) != 2 || len(e.Analyses) != 1 {
		t.Errorf("the page's experiment is read as %+v", e)
	}
}
