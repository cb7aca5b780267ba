package render

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

// routeDocs has the objects of several routers for the Services web and next.
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
spec: {hosts: [web], http: [{name: main, route: [{destination: {host: web, subset: stable}}]}, {name: other, route: [{destination: {host: other}}]}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: pods}
spec: {host: web, subsets: [{name: stable}, {name: canary}]}
---
`

// router parses a router like package traffic.
func router(t *testing.T, kind string, config map[string]any) rollout.Router {
	t.Helper()
	r, err := traffic.Parse(kind, config, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTraffic(t *testing.T) {
	const services = "stableService: web, canaryService: next"
	named := func(kind string, names ...string) rollout.Router {
		var routes []any
		for _, n := range names {
			routes = append(routes, n)
		}
		return router(t, "nginx", map[string]any{kind: routes})
	}
	gateway := router(t, "gatewayAPI", map[string]any{"httpRoute": "main"})
	subsets := map[string]any{"name": "pods", "canarySubsetName": "canary", "stableSubsetName": "stable"}
	for _, c := range []struct {
		name, head, canary string
		want               rollout.Traffic // without MaxWeight 100 and Settle 3s
	}{
		{"gateway", ownHead, services + ", trafficRouting: {gatewayAPI: {httpRoute: main}}", rollout.Traffic{Routers: []rollout.Router{gateway}}},
		{"the plugin of Argo Rollouts", argoHead, services + ", trafficRouting: {plugins: {argoproj-labs/gatewayAPI: {httpRoute: main, namespace: shop}}}",
			rollout.Traffic{Routers: []rollout.Router{router(t, "gatewayAPI", map[string]any{"httpRoute": "main", "namespace": "shop"})}}},
		{"the plugin in a document of our own", ownHead, services + ", trafficRouting: {plugins: {argoproj-labs/gatewayAPI: {httpRoute: main}}}", rollout.Traffic{Routers: []rollout.Router{gateway}}},
		{"the plugin's list", argoHead, services + ", trafficRouting: {plugins: {argoproj-labs/gatewayAPI: {httpRoutes: [{name: main, useHeaderRoutes: true}]}}}",
			rollout.Traffic{Routers: []rollout.Router{router(t, "gatewayAPI", map[string]any{"httpRoutes": []any{map[string]any{"name": "main", "useHeaderRoutes": true}}})}}},
		{"two Ingresses", argoHead, services + ", trafficRouting: {nginx: {stableIngresses: [front, back]}}", rollout.Traffic{Routers: []rollout.Router{named("stableIngresses", "front", "back")}}},
		{"Istio's virtualServices", argoHead, services + ", trafficRouting: {istio: {virtualServices: [{name: mesh, routes: [main]}]}}",
			rollout.Traffic{Routers: []rollout.Router{router(t, "istio", map[string]any{"virtualServices": []any{map[string]any{"name": "mesh", "routes": []any{"main"}}}})}}},
		{"Istio's subsets, without Services", argoHead, "trafficRouting: {istio: {virtualServices: [{name: pods, routes: [main]}], destinationRule: {name: pods, canarySubsetName: canary, stableSubsetName: stable}}}",
			rollout.Traffic{Routers: []rollout.Router{router(t, "istio", map[string]any{"destinationRule": subsets, "virtualServices": []any{map[string]any{"name": "pods", "routes": []any{"main"}}}})}}},
		{"several routers, sorted", ownHead, services + ", trafficRouting: {nginx: {stableIngresses: [front]}, istio: {virtualService: {name: mesh}}, gatewayAPI: {httpRoute: main}, settle: 0s, maxTrafficWeight: 1000}",
			rollout.Traffic{MaxWeight: 1000, Settle: -1, Routers: []rollout.Router{gateway, router(t, "istio", map[string]any{"virtualService": map[string]any{"name": "mesh"}}), named("stableIngresses", "front")}}},
		{"two Services that take turns", ownHead, "pingPong: {pingService: web, pongService: next}, trafficRouting: {gatewayAPI: {httpRoute: main}}", rollout.Traffic{Routers: []rollout.Router{gateway}}},
		{"header routes", argoHead, services + `, trafficRouting: {managedRoutes: [{name: staff}, {name: copies}], plugins: {argoproj-labs/gatewayAPI: {httpRoute: main}}},
      steps: [{setCanaryScale: {replicas: 1}}, {setHeaderRoute: {name: staff, match: [{headerName: X-Staff, headerValue: {regex: ".*"}}]}}, {setMirrorRoute: {name: copies, percentage: 10, match: [{method: {exact: GET}, path: {prefix: /}, headers: {X-Copy: {exact: "1"}}}]}}, {setHeaderRoute: {name: staff}}]`,
			rollout.Traffic{Routers: []rollout.Router{gateway}, ManagedRoutes: []string{"staff", "copies"}}},
		{"sticky", ownHead, services + ", trafficRouting: {istio: {virtualService: {name: mesh}}, sticky: {maxAge: 1h}}",
			rollout.Traffic{Routers: []rollout.Router{router(t, "istio", map[string]any{"virtualService": map[string]any{"name": "mesh"}})}, Sticky: &rollout.Sticky{Cookie: "gitrollout-web", MaxAge: time.Hour}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			annotations := regexp.MustCompile(`, annotations: \{gitrollout.dev/scaling: %s.*\}(\})`)
			docs := serviceDocs + routeDocs + annotations.ReplaceAllString(c.head, "$1") + "  strategy: {canary: {" + c.canary + "}}\n"
			if c.head == ownHead {
				docs = deploymentHead + docs
			}
			got := renderDocs(t, docs)
			if len(got.Specs) != 1 || len(got.Warnings) > 0 || got.Specs[0].Scaling != rollout.Surge {
				t.Fatalf("specs %+v, warnings %q", got.Specs, got.Warnings)
			}
			want := c.want
			if want.MaxWeight == 0 {
				want.MaxWeight = 100
			}
			if want.Settle = max(want.Settle, -1); want.Settle == 0 {
				want.Settle = 3 * time.Second
			}
			want.Settle = max(want.Settle, 0)
			if diff := compare.Diff(&want, got.Specs[0].Canary.Traffic); diff != "" {
				t.Errorf("trafficRouting (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTrafficRenamed checks that names in the routers' blocks follow kustomize's renames by an overlay's prefix.
func TestTrafficRenamed(t *testing.T) {
	got := renderRepo(t, map[string]string{
		"kustomization.yaml":      "resources: [base]\nnamePrefix: eu-\nconfigurations: [names.yaml]\n",
		"names.yaml":              "nameReference:\n- kind: Service\n  version: v1\n  fieldSpecs: [{kind: HTTPRoute, path: spec/rules/backendRefs/name}, {kind: VirtualService, path: spec/http/route/destination/host}]\n",
		"base/kustomization.yaml": "resources: [all.yaml]\n",
		"base/all.yaml": deploymentHead + serviceDocs + routeDocs + ownHead +
			"  strategy: {canary: {stableService: web, canaryService: next, trafficRouting: {nginx: {stableIngresses: [front, back]}, gatewayAPI: {httpRoute: main}, istio: {virtualService: {name: mesh}}}}}\n",
	})
	want := []rollout.Router{
		router(t, "gatewayAPI", map[string]any{"httpRoute": "eu-main"}),
		router(t, "istio", map[string]any{"virtualService": map[string]any{"name": "eu-mesh"}}),
		router(t, "nginx", map[string]any{"stableIngresses": []any{"eu-front", "eu-back"}}),
	}
	c := got.Specs[0].Canary
	if diff := compare.Diff(want, c.Traffic.Routers); diff != "" || c.StableService != "eu-web" || c.CanaryService != "eu-next" {
		t.Errorf("Services %s and %s, routers (-want +got):\n%s", c.StableService, c.CanaryService, diff)
	}
}

// TestTwoRolloutsOnOneRoute gives each Rollout its rule and Services, so that they do not undo each other's changes.
func TestTwoRolloutsOnOneRoute(t *testing.T) {
	api := strings.NewReplacer("name: web", "name: api", "app: web", "app: api", "name: next", "name: api-next")
	got := renderDocs(t, deploymentHead+serviceDocs+ownHead+"  strategy: {canary: {stableService: web, canaryService: next, trafficRouting: {gatewayAPI: {httpRoute: main}}}}\n---\n"+
		api.Replace(deploymentHead+serviceDocs+ownHead)+"  strategy: {canary: {stableService: api, canaryService: api-next, trafficRouting: {gatewayAPI: {httpRoute: main}}}}\n"+`---
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
		route := traffic.Route{Name: spec.Name, Namespace: "shop", Stable: spec.Canary.StableService, Canary: spec.Canary.CanaryService, Weight: 10 * (i + 1), Max: 100, Active: true}
		if err := traffic.Overlay(objects, spec.Canary.Traffic.Routers, route); err != nil {
			t.Fatal(err)
		}
	}
	route, _ := objects.Find(rollout.Ref{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute", Namespace: "shop", Name: "main"})
	weights := map[string]any{}
	for _, rule := range route.Map("spec")["rules"].([]any) {
		for _, b := range asMap(rule)["backendRefs"].([]any) {
			weights[asMap(b)["name"].(string)] = asMap(b)["weight"]
		}
	}
	if diff := compare.Diff(map[string]any{"api": int64(90), "api-next": int64(10), "web": int64(80), "next": int64(20)}, weights); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
}
