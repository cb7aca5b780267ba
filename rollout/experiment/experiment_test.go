package experiment_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/experiment"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {team: a}}
spec:
  replicas: 10
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 3}}
  template:
    metadata:
      labels: {app: web, tier: front, team: a, mesh: "on"}
      annotations: {inject: "true"}
    spec:
      containers:
      - {name: web, image: "web:1", ports: [{name: http, containerPort: 8080}, {containerPort: 9090}]}
      - {name: proxy, image: "proxy:1", ports: [{name: http, containerPort: 15000}, {containerPort: 8080}]}
`

const services = `
- {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web},
    ports: [{name: http, port: 80, targetPort: http, nodePort: 30080}]}}
- {apiVersion: v1, kind: Service, metadata: {name: front, namespace: shop}, spec: {selector: {tier: front}, ports: [{port: 80}]}}
- {apiVersion: v1, kind: Service, metadata: {name: back, namespace: shop}, spec: {selector: {tier: back, team: a}, ports: [{port: 80}]}}
- {apiVersion: v1, kind: Service, metadata: {name: mesh, namespace: other}, spec: {selector: {mesh: "on"}, ports: [{port: 80}]}}
- {apiVersion: v1, kind: Service, metadata: {name: outside, namespace: shop}, spec: {externalName: example.com}}
- apiVersion: policy/v1
  kind: PodDisruptionBudget
  metadata: {name: web, namespace: shop}
  spec: {selector: {matchExpressions: [{key: app, operator: In, values: [web, api]}]}}
`

func object(t *testing.T, text string) rollout.Object {
	t.Helper()
	return read(t, text).(map[string]any)
}

func objects(t *testing.T, text string) []rollout.Object {
	t.Helper()
	return rollout.Mapped(read(t, text).([]any), func(o any) rollout.Object { return o.(map[string]any) })
}

// read decodes YAML as package render does, with whole numbers as int64.
func read(t *testing.T, text string) any {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := rollout.FromJSON[any](data)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func template(t *testing.T, change func(*experiment.Template)) experiment.Template {
	t.Helper()
	made := experiment.Template{
		ExperimentTemplate: rollout.ExperimentTemplate{Name: "canary", SpecRef: rollout.SpecCanary, Replicas: 2},
		Spec: rollout.Spec{
			Name: "web-rollout", Workload: rollout.Workload{Namespace: "shop", Name: "web"}, MinReadySeconds: 5, ProgressDeadlineSeconds: 600,
			Canary: &rollout.Canary{},
		},
		Release: "h1-0123456789", Step: 1, From: object(t, deployment), Others: objects(t, services),
	}
	if change != nil {
		change(&made)
	}
	return made
}

// TestObjects checks the complete objects that a template makes from a Deployment.
func TestObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*experiment.Template)
		want   string
	}{
		"labels by which a Service or a budget of the namespace selects are gone, the others stay": {nil, `
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web-0123456789-2-canary
    namespace: shop
    labels: {gitrollout.dev/experiment: web-0123456789-2-canary}
    annotations: {gitrollout.dev/generated-by: web-rollout}
  spec:
    replicas: 2
    minReadySeconds: 5
    progressDeadlineSeconds: 600
    revisionHistoryLimit: 0
    selector: {matchLabels: {gitrollout.dev/experiment: web-0123456789-2-canary}}
    template:
      metadata:
        labels: {team: a, mesh: "on", gitrollout.dev/experiment: web-0123456789-2-canary}
        annotations: {inject: "true"}
      spec:
        containers:
        - {name: web, image: "web:1", ports: [{name: http, containerPort: 8080}, {containerPort: 9090}]}
        - {name: proxy, image: "proxy:1", ports: [{name: http, containerPort: 15000}, {containerPort: 8080}]}
`},
		"labels and annotations of the template are added, and a Service has the stable one's ports": {func(x *experiment.Template) {
			x.Labels, x.Annotations = map[string]string{"app": "web-try", "team": "b"}, map[string]string{"note": "try"}
			x.Selector = map[string]any{"matchLabels": map[string]any{"app": "web-try"}}
			x.Service, x.Spec.Canary.StableService = new("try"), "web"
			x.From = object(t, strings.Replace(deployment, "      containers:", "      containers: []\n      initContainers:", 1))
		}, `
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web-0123456789-2-canary
    namespace: shop
    labels: {app: web-try, team: b, gitrollout.dev/experiment: web-0123456789-2-canary}
    annotations: {gitrollout.dev/generated-by: web-rollout}
  spec:
    replicas: 2
    minReadySeconds: 5
    progressDeadlineSeconds: 600
    revisionHistoryLimit: 0
    selector: {matchLabels: {app: web-try, gitrollout.dev/experiment: web-0123456789-2-canary}}
    template:
      metadata:
        labels: {app: web-try, team: b, mesh: "on", gitrollout.dev/experiment: web-0123456789-2-canary}
        annotations: {inject: "true", note: try}
      spec:
        containers: []
        initContainers:
        - {name: web, image: "web:1", ports: [{name: http, containerPort: 8080}, {containerPort: 9090}]}
        - {name: proxy, image: "proxy:1", ports: [{name: http, containerPort: 15000}, {containerPort: 8080}]}
- apiVersion: v1
  kind: Service
  metadata:
    name: try
    namespace: shop
    labels: {app: web-try, team: b, gitrollout.dev/experiment: web-0123456789-2-canary}
    annotations: {gitrollout.dev/generated-by: web-rollout}
  spec:
    selector: {gitrollout.dev/experiment: web-0123456789-2-canary}
    ports: [{name: http, port: 80, targetPort: http}]
`},
	} {
		made := template(t, tc.change)
		from := made.From.Copy()
		compare.CheckNamed(t, name, objects(t, tc.want), made.Objects())
		compare.CheckNamed(t, name+": its Deployment is left alone", from, made.From)
		compare.CheckNamed(t, name+": the other objects are left alone", objects(t, services), made.Others)
	}
}

// TestPorts checks that each port of the containers is listed once, and that each listed port has a unique name.
func TestPorts(t *testing.T) {
	port := func(name string, n int64) map[string]any {
		return map[string]any{"name": name, "port": n, "targetPort": n, "protocol": "TCP"}
	}
	want := []any{port("http", 8080), port("port-9090", 9090), port("port-15000", 15000)}
	compare.Check(t, want, template(t, nil).Ports())
}

// TestCaught checks that Caught returns the app's objects whose selectors match the labels that an experiment's template adds.
func TestCaught(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"nothing":      {nil, ""},
		"another name": {map[string]string{"app": "web-try"}, ""},
		"the app's":    {map[string]string{"app": "web"}, "Deployment/web Service/web PodDisruptionBudget/web"},
		"the budget's": {map[string]string{"app": "api"}, "PodDisruptionBudget/web"},
		"one Service":  {map[string]string{"tier": "back"}, "Service/back"},
	} {
		caught := template(t, func(x *experiment.Template) { x.Labels = tc.labels }).Caught()
		got := rollout.Mapped(caught, func(ref rollout.Ref) string { return ref.Kind + "/" + ref.Name })
		compare.CheckNamed(t, name, tc.want, strings.Join(got, " "))
	}
}

func TestName(t *testing.T) {
	long := strings.Repeat("checkout-", 7) + "api"
	for name, tc := range map[string]struct {
		workload, template, want string
	}{
		"short": {"web", "canary", "web-0123456789-2-canary"},
		"just fits": {"shop-checkout-service-in-the-north", "experiment-one",
			"shop-checkout-service-in-the-north-0123456789-2-experiment-one"},
		"too long":     {long, "canary", "checkout-checkout-checkout-checkout-checkout-checkou-63c83a0ecd"},
		"cut at a -":   {strings.Repeat("a", 51), "x", strings.Repeat("a", 51) + "-1505e19f2a"},
		"dots":         {"web.v2", "canary", "web-v2-0123456789-2-canary-6307ffa5e3"},
		"dots, others": {"web-v2", "canary", "web-v2-0123456789-2-canary"},
	} {
		got := experiment.Name(rollout.Workload{Namespace: "shop", Name: tc.workload}, "h1-0123456789", 1, tc.template)
		if got != tc.want || len(got) > 63 {
			t.Errorf("%s: got %s (%d), want %s", name, got, len(got), tc.want)
		}
	}
}

func TestMatches(t *testing.T) {
	labels := map[string]string{"app": "web", "tier": "front"}
	for selector, want := range map[string]bool{
		`{}`:                                    false,
		`{matchLabels: {app: web}}`:             true,
		`{matchLabels: {app: web, tier: back}}`: false,
		`{matchLabels: {zone: ""}}`:             false,
		`{matchExpressions: [{key: app, operator: In, values: [api, web]}]}`:                           true,
		`{matchExpressions: [{key: zone, operator: In, values: [a]}]}`:                                 false,
		`{matchExpressions: [{key: zone, operator: NotIn, values: [a]}]}`:                              true,
		`{matchExpressions: [{key: app, operator: NotIn, values: [web]}]}`:                             false,
		`{matchExpressions: [{key: app, operator: Exists}]}`:                                           true,
		`{matchExpressions: [{key: app, operator: DoesNotExist}]}`:                                     false,
		`{matchExpressions: [{key: app, operator: Near, values: [web]}]}`:                              false,
		`{matchLabels: {app: web}, matchExpressions: [{key: tier, operator: NotIn, values: [front]}]}`: false,
	} {
		compare.CheckNamed(t, selector, want, experiment.Matches(object(t, selector), labels))
	}
}
