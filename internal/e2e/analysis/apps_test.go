package analysis

import (
	"fmt"
	"strings"
)

// shop is what an app's people keep in Git: a canary whose requests are routed.
type shop struct {
	name    string
	version string
	metric  string // of the template errors, indented as a list's entry
	fields  string // more of the canary, a line
	steps   []string
	plain   bool // no requests are routed: a part of the pods is new
}

// The queries of the documentation, for one namespace of several. There is no
// counter of failures before the first one, so nothing is taken for zero.
const (
	failed   = `sum(increase(http_requests_total{code="500",namespace="NS",pod_template_hash="{{args.hash}}"}[%[1]s])) or vector(0)`
	all      = `sum(increase(http_requests_total{namespace="NS",pod_template_hash="{{args.hash}}"}[%[1]s]))`
	share    = `(` + failed + `) / ` + all
	both     = `label_replace(` + failed + `, "n", "bad", "", "") or label_replace(` + all + ` or vector(0), "n", "of", "", "")`
	slowness = `histogram_quantile(0.9, sum by (le) (rate(http_request_duration_seconds_bucket{namespace="NS",pod_template_hash="{{args.hash}}"}[%[1]s])))`
)

// metric is one whose query looks at a time back.
func metric(name, query, back string, fields ...string) string {
	text := "  - name: " + name + "\n"
	for _, f := range fields {
		text += "    " + f + "\n"
	}
	return text + "    provider:\n      prometheus:\n        address: PROMETHEUS\n        timeout: 5\n        query: |\n          " + fmt.Sprintf(query, back) + "\n"
}

const (
	templates = `templates: [{templateName: errors}], args: [{name: hash, valueFrom: {podTemplateHashValue: Latest}}]`
	inline    = `analysis: {` + templates + `}`
)

func (s shop) files() map[string]string {
	services := ""
	for _, name := range []string{"shop-stable", "shop-canary"} {
		services += fmt.Sprintf("---\napiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec:\n  selector: {app: shop}\n  ports: [{port: 80, targetPort: 8080}]\n", name)
	}
	routing := `      stableService: shop-stable
      canaryService: shop-canary
      abortScaleDownDelaySeconds: 2
      scaleDownDelaySeconds: 2
      trafficRouting: {settle: 1s, gatewayAPI: {httpRoute: shop}}
`
	replicas := 10
	if s.plain {
		routing, replicas = "", 2
	}
	if s.fields != "" {
		s.fields = "      " + s.fields + "\n"
	}
	return map[string]string{
		"kustomization.yaml": "resources: [shop.yaml, rollout.yaml, services.yaml, errors.yaml]\n",
		"shop.yaml": fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: %d
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - {name: shop, image: "shop:%s", ports: [{containerPort: 8080}]}
`, replicas, s.version),
		"rollout.yaml": `apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata: {name: shop}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: shop}
  strategy:
    canary:
      scaling: surge
` + routing + s.fields + "      steps:\n      - " + strings.Join(s.steps, "\n      - ") + "\n",
		"services.yaml": services + `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec:
  parentRefs: [{name: public, namespace: gateways}]
  hostnames: [NS.test]
  rules:
  - backendRefs: [{name: shop-stable, port: 80}]
`,
		"errors.yaml": `apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: errors}
spec:
  args: [{name: hash}, {name: token, valueFrom: {secretKeyRef: {name: metrics, key: token}}}]
  metrics:
` + s.metric,
	}
}
