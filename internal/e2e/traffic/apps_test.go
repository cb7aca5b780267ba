package traffic

import (
	"fmt"

	"gitrollout.dev/gitrollout/internal/proxytest"
)

// provider is one of Traefik's providers: its address, the routes of an app, and its fields in trafficRouting.
type provider struct {
	name   string
	url    func(*proxytest.World) string
	routed string // a canary app's routes, which lead to shop-stable between releases
	plain  string // routes of a blue-green app to the Service shop
	router string // lines below trafficRouting
}

// httpRouteTo returns the HTTPRoute that sends users to a Service. In the apps' files, HOST stands for the app's host, and SETTLE for the
// settle time.
func httpRouteTo(service string) string {
	return `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec:
  parentRefs: [{name: public, namespace: gateways}]
  hostnames: [HOST]
  rules:
  - backendRefs: [{name: ` + service + `, port: 80}]
`
}

// ingressRouteTo returns the IngressRoute that sends users to a service.
func ingressRouteTo(service string) string {
	return `apiVersion: traefik.io/v1alpha1
kind: IngressRoute
metadata: {name: shop}
spec:
  entryPoints: [crd]
  routes:
  - match: Host("HOST")
    kind: Rule
    services: [` + service + `]
`
}

// ingressTo returns the Ingress that sends users to a Service.
func ingressTo(service string) string {
	return `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec:
  ingressClassName: nginx
  rules:
  - host: HOST
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: ` + service + `, port: {number: 80}}}}]}
`
}

var gateway = provider{
	name:   "gatewayAPI",
	url:    func(w *proxytest.World) string { return w.GatewayURL },
	routed: httpRouteTo("shop-stable"),
	plain:  httpRouteTo("shop"),
	router: "gatewayAPI: {httpRoute: shop}",
}

var crd = provider{
	name: "traefik",
	url:  func(w *proxytest.World) string { return w.CRDURL },
	routed: `apiVersion: traefik.io/v1alpha1
kind: TraefikService
metadata: {name: shop}
spec:
  weighted:
    services:
    - {name: shop-stable, port: 80}
    - {name: shop-canary, port: 80}
---
` + ingressRouteTo("{name: shop, kind: TraefikService}"),
	plain:  ingressRouteTo("{name: shop, port: 80}"),
	router: "traefik: {weightedTraefikServiceName: shop, ingressRoutes: [shop]}",
}

var ingress = provider{
	name:   "nginx",
	url:    func(w *proxytest.World) string { return w.NginxURL },
	routed: ingressTo("shop-stable"),
	plain:  ingressTo("shop"),
	router: "nginx: {stableIngress: shop}",
}

var providers = []provider{gateway, crd, ingress}

// shop is an app's files in Git.
type shop struct {
	provider
	version  string
	replicas int    // 0: set by an autoscaler
	stop     string // time for which a deleted pod serves; "" is 200ms
	strategy string // lines below spec.strategy
	route    string // replaces the provider's routes
	template string // an analysis, or ""
	unasked  bool   // no requests are sent
	set      bool   // the workload is a StatefulSet
}

func (s shop) at(version string) shop { s.version = version; return s }

func (s shop) files() map[string]string {
	replicas, env := "", ""
	if s.replicas > 0 {
		replicas = fmt.Sprintf("  replicas: %d\n", s.replicas)
	}
	if s.stop != "" {
		env = fmt.Sprintf("        env: [{name: LOCALCLUSTER_STOP_AFTER, value: %s}]\n", s.stop)
	}
	all := ""
	for _, name := range []string{"shop", "shop-stable", "shop-canary"} {
		all += fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: %s}
spec:
  selector: {app: shop}
  ports: [{port: 80, targetPort: 8080}]
`, name)
	}
	kind := "Deployment"
	if s.set {
		kind, replicas = "StatefulSet", replicas+"  serviceName: shop\n  podManagementPolicy: Parallel\n"
	}
	resources := "shop.yaml, rollout.yaml, services.yaml, route.yaml"
	if s.template != "" {
		resources += ", template.yaml"
	}
	return map[string]string{
		"kustomization.yaml": "resources: [" + resources + "]\n",
		"shop.yaml": fmt.Sprintf(`apiVersion: apps/v1
kind: %s
metadata: {name: shop}
spec:
%s  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - name: shop
        image: shop:%s
        ports: [{containerPort: 8080}]
%s`, kind, replicas, s.version, env),
		"rollout.yaml": fmt.Sprintf(`apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata: {name: shop}
spec:
  workloadRef: {apiVersion: apps/v1, kind: %s, name: shop}
  strategy:
%s`, kind, s.strategy),
		"services.yaml": all,
		"route.yaml":    s.route,
		"template.yaml": s.template,
	}
}

// canary returns the test app with a canary strategy that has trafficRouting and `scaling: surge`.
func (p provider) canary(fields, steps []string) shop {
	return p.routedShop(append(services, fields...), nil, steps)
}

// routedShop returns the test app with the given fields, trafficRouting and steps of spec.strategy.canary.
func (p provider) routedShop(fields, routing, steps []string) shop {
	text := "    canary:\n      scaling: surge\n"
	text += lines("      ", fields) + "      trafficRouting:\n"
	text += lines("        ", append([]string{"settle: SETTLE", p.router}, routing...)) + "      steps:\n"
	text += lines("      - ", steps)
	return shop{provider: p, version: "v1", replicas: 10, strategy: text, route: p.routed}
}

// services are the fields of a canary that name the Services of both versions.
var services = []string{"stableService: shop-stable", "canaryService: shop-canary"}

// quick has the fields that delete unused pods after two seconds.
var quick = []string{"scaleDownDelaySeconds: 2", "abortScaleDownDelaySeconds: 2"}

// blueGreen returns the test app with a blue-green strategy.
func (p provider) blueGreen() shop {
	return shop{provider: p, version: "v1", replicas: 10, route: p.plain, strategy: `    blueGreen:
      activeService: shop
      previewService: shop-canary
      autoPromotionEnabled: false
      scaleDownDelaySeconds: 2
`}
}

// weights returns a setWeight step for each weight, with an unlimited pause after each step.
func weights(all ...int) []string {
	var steps []string
	for _, w := range all {
		steps = append(steps, fmt.Sprintf("setWeight: %d", w), "pause: {}")
	}
	return steps
}

func lines(before string, all []string) string {
	text := ""
	for _, line := range all {
		text += before + line + "\n"
	}
	return text
}
