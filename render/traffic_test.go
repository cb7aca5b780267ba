package render_test

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

// routeDocs are objects of several routers that route to the Services web and next.
const routeDocs = `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: main}
spec: {rules: [{backendRefs: [{name: web, port: 80}, {name: next, port: 80, weight: 0}]}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front}
spec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: back}
spec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: mesh}
spec: {hosts: [web], http: [{name: main, route: [{destination: {host: web}}]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: pods}
spec:
  hosts: [web]
  http: [{name: main, route: [{destination: {host: web, subset: stable}}]}, {name: other, route: [{destination: {host: other}}]}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: pods}
spec: {host: web, subsets: [{name: stable}, {name: canary}]}
---
`

// router parses a router's block, as routersOf does.
func router(t *testing.T, kind string, config map[string]any) rollout.Router {
	t.Helper()
	r, err := traffic.Parse(kind, config, nil)
	must(t, err)
	return r
}

func TestTraffic(t *testing.T) {
	const services, plugins = "stableService: web, canaryService: next, trafficRouting: {", "plugins: {argoproj-labs/gatewayAPI: "
	type fields = map[string]any
	routed := func(routers ...rollout.Router) rollout.Traffic {
		return rollout.Traffic{MaxWeight: 100, Settle: 3 * time.Second, Routers: routers}
	}
	gateway := router(t, "gatewayAPI", fields{"httpRoute": "main"})
	mesh := router(t, "istio", fields{"virtualService": fields{"name": "mesh"}})
	front := router(t, "nginx", fields{"stableIngresses": []any{"front"}})
	of := func(name string) []any { return []any{fields{"name": name, "routes": []any{"main"}}} }
	subsets := fields{"name": "pods", "canarySubsetName": "canary", "stableSubsetName": "stable"}
	headers, sticky := routed(gateway), routed(mesh)
	headers.ManagedRoutes = []string{"staff", "copies"}
	sticky.Sticky = &rollout.Sticky{Cookie: "gitrollout-web", MaxAge: time.Hour}
	for _, c := range []struct {
		name, head, canary string
		want               rollout.Traffic
	}{
		{"gateway", ownHead, services + "gatewayAPI: {httpRoute: main}}", routed(gateway)},
		{"the plugin of Argo Rollouts", argoHead, services + plugins + "{httpRoute: main, namespace: shop}}}",
			routed(router(t, "gatewayAPI", fields{"httpRoute": "main", "namespace": "shop"}))},
		{"the plugin in a document of our own", ownHead, services + plugins + "{httpRoute: main}}}", routed(gateway)},
		{"the plugin's list", argoHead, services + plugins + "{httpRoutes: [{name: main, useHeaderRoutes: true}]}}}",
			routed(router(t, "gatewayAPI", fields{"httpRoutes": []any{fields{"name": "main", "useHeaderRoutes": true}}}))},
		{"two Ingresses", argoHead, services + "nginx: {stableIngresses: [front, back]}}",
			routed(router(t, "nginx", fields{"stableIngresses": []any{"front", "back"}}))},
		{"Istio's virtualServices", argoHead, services + "istio: {virtualServices: [{name: mesh, routes: [main]}]}}",
			routed(router(t, "istio", fields{"virtualServices": of("mesh")}))},
		{"Istio's subsets, without Services", argoHead, "trafficRouting: {istio: {virtualServices: [{name: pods, routes: [main]}], " +
			"destinationRule: {name: pods, canarySubsetName: canary, stableSubsetName: stable}}}",
			routed(router(t, "istio", fields{"destinationRule": subsets, "virtualServices": of("pods")}))},
		{"several routers, sorted", ownHead, services + "nginx: {stableIngresses: [front]}, istio: {virtualService: {name: mesh}}, " +
			"gatewayAPI: {httpRoute: main}, settle: 0s, maxTrafficWeight: 1000}",
			rollout.Traffic{MaxWeight: 1000, Routers: []rollout.Router{gateway, mesh, front}}},
		{"two Services that take turns", ownHead,
			"pingPong: {pingService: web, pongService: next}, trafficRouting: {gatewayAPI: {httpRoute: main}}", routed(gateway)},
		{"header routes", argoHead, services + "managedRoutes: [{name: staff}, {name: copies}], " + plugins + `{httpRoute: main}}}, steps: [
      {setCanaryScale: {replicas: 1}},
      {setHeaderRoute: {name: staff, match: [{headerName: X-Staff, headerValue: {regex: ".*"}}]}},
      {setMirrorRoute: {name: copies, percentage: 10, match: [{method: {exact: GET}, path: {prefix: /}, headers: {X-Copy: {exact: "1"}}}]}},
      {setHeaderRoute: {name: staff}}]`, headers},
		{"sticky", ownHead, services + "istio: {virtualService: {name: mesh}}, sticky: {maxAge: 1h}}", sticky},
	} {
		t.Run(c.name, func(t *testing.T) {
			docs := serviceDocs + routeDocs + strings.Replace(c.head, "gitrollout.dev/scaling: inPlace, ", "", 1) +
				"  strategy: {canary: {" + c.canary + "}}\n"
			if c.head == ownHead {
				docs = deploymentHead + docs
			}
			got := renderDocs(t, docs)
			if len(got.Specs) != 1 || len(got.Warnings) > 0 || got.Specs[0].Scaling != rollout.Surge {
				t.Fatalf("specs %+v, warnings %q", got.Specs, got.Warnings)
			}
			compare.CheckNamed(t, "trafficRouting", &c.want, got.Specs[0].Canary.Traffic)
		})
	}
}

// TestHeadersOfAStep checks that a step may have both setWeight and a change of headers.
func TestHeadersOfAStep(t *testing.T) {
	got := renderDocs(t, deploymentHead+serviceDocs+routeDocs+ownHead+"  strategy: {canary: {stableService: web, canaryService: next, "+
		`trafficRouting: {gatewayAPI: {httpRoute: main}, istio: {virtualService: {name: mesh}}}, steps: [{setWeight: 5, requestHeaderModifier:
      {set: [{name: X-Canary, value: "yes"}], add: [{name: X-Via, value: canary}], remove: [X-Debug]}}, {pause: {}}]}}
`)
	want := &rollout.HeaderModifier{Set: []rollout.Header{{Name: "X-Canary", Value: "yes"}},
		Add: []rollout.Header{{Name: "X-Via", Value: "canary"}}, Remove: []string{"X-Debug"}}
	compare.CheckNamed(t, "steps", []rollout.Step{{SetWeight: new(5), Headers: want}, {Pause: &rollout.Pause{}}}, got.Specs[0].Canary.Steps)
}

// TestTrafficRenamed checks that names in the routers' blocks get the prefix that an overlay adds to the objects.
func TestTrafficRenamed(t *testing.T) {
	got := renderRepo(t, map[string]string{
		"kustomization.yaml": "resources: [base]\nnamePrefix: eu-\nconfigurations: [names.yaml]\n",
		"names.yaml": "nameReference:\n- kind: Service\n  version: v1\n  fieldSpecs:\n" +
			"  - {kind: HTTPRoute, path: spec/rules/backendRefs/name}\n  - {kind: VirtualService, path: spec/http/route/destination/host}\n",
		"base/kustomization.yaml": "resources: [all.yaml]\n",
		"base/all.yaml": deploymentHead + serviceDocs + routeDocs + ownHead +
			"  strategy: {canary: {stableService: web, canaryService: next, trafficRouting: {nginx: {stableIngresses: [front, back]}, " +
			"gatewayAPI: {httpRoute: main}, istio: {virtualService: {name: mesh}}}}}\n",
	})
	want := []rollout.Router{
		router(t, "gatewayAPI", map[string]any{"httpRoute": "eu-main"}),
		router(t, "istio", map[string]any{"virtualService": map[string]any{"name": "eu-mesh"}}),
		router(t, "nginx", map[string]any{"stableIngresses": []any{"eu-front", "eu-back"}}),
	}
	c := got.Specs[0].Canary
	compare.CheckNamed(t, "routers", want, c.Traffic.Routers)
	if c.StableService != "eu-web" || c.CanaryService != "eu-next" {
		t.Errorf("Services %s and %s", c.StableService, c.CanaryService)
	}
}

// TestTwoRolloutsOnOneRoute checks that two Rollouts with different Services may share an HTTPRoute that has a rule for each Rollout.
func TestTwoRolloutsOnOneRoute(t *testing.T) {
	api := strings.NewReplacer("name: web", "name: api", "app: web", "app: api", "name: next", "name: api-next")
	const docs = deploymentHead + serviceDocs + ownHead
	strategy := func(stable, canary string) string {
		return "  strategy: {canary: {stableService: " + stable + ", canaryService: " + canary +
			", trafficRouting: {gatewayAPI: {httpRoute: main}}}}\n---\n"
	}
	got := renderDocs(t, docs+strategy("web", "next")+api.Replace(docs)+strategy("api", "api-next")+`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: main}
spec:
  rules:
  - {matches: [{path: {value: /api}}], backendRefs: [{name: api, port: 80}]}
  - {backendRefs: [{name: web, port: 80}]}
`)
	if len(got.Specs) != 2 {
		t.Fatalf("%d specs, want 2", len(got.Specs))
	}
	objects := traffic.NewObjects(got.Objects)
	for i, spec := range got.Specs {
		route := traffic.Route{Name: spec.Name, Namespace: "shop", Stable: spec.Canary.StableService, Canary: spec.Canary.CanaryService,
			Weight: 10 * (i + 1), Max: 100, Active: true}
		must(t, traffic.Overlay(objects, spec.Canary.Traffic.Routers, route))
	}
	route, _ := objects.Find(rollout.Ref{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute", Namespace: "shop", Name: "main"})
	weights := map[string]any{}
	for _, rule := range route.Map("spec")["rules"].([]any) {
		for _, b := range rule.(map[string]any)["backendRefs"].([]any) {
			backend := b.(map[string]any)
			weights[backend["name"].(string)] = backend["weight"]
		}
	}
	compare.CheckNamed(t, "weights", map[string]any{"api": int64(90), "api-next": int64(10), "web": int64(80), "next": int64(20)}, weights)
}
