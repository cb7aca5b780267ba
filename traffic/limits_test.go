package traffic

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// fromYAML parses a case.
func fromYAML(t *testing.T, written string, into any) {
	t.Helper()
	raw, err := yaml.YAMLToJSONStrict([]byte(written))
	if err == nil {
		err = decodeJSON(raw, into)
	}
	if err != nil {
		t.Fatalf("%v:\n%s", err, written)
	}
}

// TestMatches combines a user's rule with a step's match, up to each router's limit and one beyond.
func TestMatches(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	gateway := func(rule string) string {
		return "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: web, namespace: shop}, spec: {rules: [" + rule + "]}}"
	}
	plain := gateway("{backendRefs: [{name: shop}]}")
	own := func(match string) string { return gateway("{backendRefs: [{name: shop}], matches: [" + match + "]}") }
	beside := func(match, other string) string {
		return gateway("{backendRefs: [{name: shop}], matches: [" + match + "]}, {backendRefs: [{name: other}], matches: [" + other + "]}")
	}
	grpc := strings.Replace(plain, "HTTPRoute", "GRPCRoute", 1)
	apisix := func(match string) string {
		return "{apiVersion: apisix.apache.org/v2, kind: ApisixRoute, metadata: {name: web, namespace: shop}, spec: {http: [" +
			"{name: a, match: {" + match + "}, backends: [{serviceName: shop, servicePort: 80}]}]}}"
	}
	ingress := func(path string) string {
		return "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: shop}, spec: {rules: [{http: {paths: [" + path + "]}}]}}"
	}
	alb := ingress("{path: /, pathType: Prefix, backend: {service: {name: shop, port: {name: use-annotation}}}}")
	hosted := strings.Replace(alb, "{http:", "{host: a.example.com, http:", 1)
	nginx := ingress("{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}")
	ambassador := func(fields string) string {
		return "{apiVersion: getambassador.io/v3alpha1, kind: Mapping, metadata: {name: web, namespace: shop}, spec: {prefix: /, service: \"shop:80\", " + fields + "}}"
	}
	for name, c := range map[string]struct {
		kind, config, object, match string
		want                        string // in the objects after, or in the error if it begins with !
	}{
		"GRPCHeader": {"gatewayAPI", "grpcRoute: web", grpc, "{headers: [{name: a, exact: b}]}", "kind: GRPCRoute"},
		"GRPCPath":   {"gatewayAPI", "grpcRoute: web", grpc, "{path: {prefix: /a}}", "!is of a GRPCRoute, which can be matched by headers and cookies only"},
		"GRPCMethod": {"gatewayAPI", "grpcRoute: web", grpc, "{method: {exact: GET}}", "!is of a GRPCRoute"},
		"GRPCQuery":  {"gatewayAPI", "grpcRoute: web", grpc, "{queryParams: [{name: a, exact: b}]}", "!is of a GRPCRoute"},
		"TCP": {"gatewayAPI", "tcpRoute: web", strings.Replace(plain, "HTTPRoute", "TCPRoute", 1), "{headers: [{name: a, exact: b}]}",
			"!is a TCPRoute, which matches no requests, and the steps have the route staff; leave out the match"},
		"UnknownMethod":  {"gatewayAPI", "httpRoute: web", plain, "{method: {exact: PURGE}}", "!spec.rules[0].matches[0].method: could not be the step's PURGE, which the Gateway API does not have; use one of GET"},
		"SameMethod":     {"gatewayAPI", "httpRoute: web", own("{method: GET}"), "{method: {exact: GET}, headers: [{name: a, exact: b}]}", "- headers:\n      - name: a\n        type: Exact\n        value: b\n      method: GET"},
		"OtherMethod":    {"gatewayAPI", "httpRoute: web", own("{method: POST}"), "{method: {exact: GET}}", "rules:\n  - backendRefs:\n    - name: shop\n      weight: 95\n    - name: shop-canary\n      weight: 5\n    matches:\n    - method: POST\n"},
		"LongPath":       {"gatewayAPI", "httpRoute: web", plain, "{path: {prefix: /" + x(1023) + "}}", "value: /" + x(1023)},
		"LongerPath":     {"gatewayAPI", "httpRoute: web", plain, "{path: {prefix: /" + x(1024) + "}}", "!could not be \"/" + x(59) + "…\": the Gateway API allows up to 1024 characters"},
		"LongHeader":     {"gatewayAPI", "httpRoute: web", plain, "{headers: [{name: a, exact: " + x(4096) + "}]}", "value: " + x(4096)},
		"LongerHeader":   {"gatewayAPI", "httpRoute: web", plain, "{headers: [{name: a, exact: " + x(4097) + "}]}", "!the header a with \"" + x(60) + "…\": the Gateway API allows up to 4096 characters of ASCII"},
		"WideHeader":     {"gatewayAPI", "httpRoute: web", plain, "{headers: [{name: a, exact: b  c}]}", "!the header a with \"b  c\": the Gateway API allows"},
		"SixtyLetters":   {"gatewayAPI", "httpRoute: web", plain, "{headers: [{name: a, exact: " + x(56) + "  cd}]}", "!the header a with \"" + x(56) + "  cd\": the"},
		"HeaderTwice":    {"gatewayAPI", "httpRoute: web", own("{headers: [{name: X-A, value: b}]}"), "{headers: [{name: x-a, exact: b}]}", "!would compare the header x-a twice, which the Gateway API does not allow; match only one"},
		"ParamName":      {"gatewayAPI", "httpRoute: web", plain, "{queryParams: [{name: a b, exact: b}]}", "!could not have the step's parameter \"a b\": "},
		"ParamTwice":     {"gatewayAPI", "httpRoute: web", own("{queryParams: [{name: a, value: b}]}"), "{queryParams: [{name: a, exact: b}]}", "!would compare the parameter a twice"},
		"ParamsBoth":     {"gatewayAPI", "httpRoute: web", own("{queryParams: [{name: a, value: b}]}"), "{queryParams: [{name: A, exact: b}]}", "- name: a\n        value: b\n      - name: A\n        type: Exact"},
		"LongParam":      {"gatewayAPI", "httpRoute: web", plain, "{queryParams: [{name: a, exact: " + x(1024) + "}]}", "value: " + x(1024)},
		"LongerParam":    {"gatewayAPI", "httpRoute: web", plain, "{queryParams: [{name: a, exact: " + x(1025) + "}]}", "!the parameter a with \"" + x(60) + "…\": the Gateway API allows up to 1024"},
		"PatternsOfBoth": {"gatewayAPI", "httpRoute: web", own("{path: {type: RegularExpression, value: /a.*}}"), "{path: {prefix: /a}}", "!\"/a.*\" and the step's match are not both plain"},
		"AnyPattern":     {"gatewayAPI", "httpRoute: web", own("{path: {type: RegularExpression, value: /}}"), "{path: {prefix: /a}}", "!\"/\" and the step's match are not both plain"},
		"ExactRoot":      {"gatewayAPI", "httpRoute: web", own("{path: {type: Exact, value: /}}"), "{path: {prefix: /a}}", "rules:\n  - backendRefs:\n    - name: shop\n      weight: 95\n"},
		"BelowRoot":      {"gatewayAPI", "httpRoute: web", own("{path: {value: /}}"), "{path: {regex: /a.*}}", "type: RegularExpression\n        value: ^/a.*$"},
		"BelowNothing":   {"gatewayAPI", "httpRoute: web", own("{path: {type: PathPrefix}}"), "{path: {regex: /a.*}}", "type: RegularExpression\n        value: ^/a.*$"},
		// Requests for a longer path that lead to another Service stay there.
		"TakenPath":    {"gatewayAPI", "httpRoute: web", beside("{path: {type: PathPrefix, value: /}}", "{path: {type: PathPrefix, value: /a}}"), "{path: {prefix: /a/b}}", "rules:\n  - backendRefs:\n    - name: shop\n      weight: 95\n"},
		"TakenSame":    {"gatewayAPI", "httpRoute: web", beside("{path: {type: PathPrefix, value: /}}", "{path: {type: Exact, value: /a}}"), "{path: {exact: /a}}", "rules:\n  - backendRefs:\n    - name: shop\n      weight: 95\n"},
		"NotTaken":     {"gatewayAPI", "httpRoute: web", beside("{path: {type: PathPrefix, value: /}}", "{path: {type: Exact, value: /a}}"), "{path: {exact: /a/b}}", "value: /a/b"},
		"NotAPattern":  {"gatewayAPI", "httpRoute: web", beside("{path: {type: PathPrefix, value: /}}", "{path: {type: RegularExpression, value: /a}}"), "{path: {exact: /a/b}}", "value: /a/b"},
		"AsLong":       {"gatewayAPI", "httpRoute: web", beside("{path: {type: PathPrefix, value: /a}}", "{path: {type: PathPrefix, value: /a}}"), "{path: {prefix: /a}, headers: [{name: a, exact: b}]}", "type: Exact\n        value: b"},
		"ForItsHeader": {"gatewayAPI", "httpRoute: web", beside("{path: {type: PathPrefix, value: /}}", "{path: {type: PathPrefix, value: /a}, headers: [{name: x, value: y}]}"), "{path: {prefix: /a/b}}", "value: /a/b"},

		"APISIXSame":    {"apisix", "{route: {name: web, rules: [a]}}", apisix("methods: [GET, POST]"), "{method: {exact: GET}}", "methods:\n      - GET\n    name:"},
		"APISIXOther":   {"apisix", "{route: {name: web, rules: [a]}}", apisix("methods: [POST]"), "{method: {exact: GET}}", "http:\n  - backends:\n    - serviceName: shop\n      servicePort: 80\n      weight: 95"},
		"APISIXUnknown": {"apisix", "{route: {name: web, rules: [a]}}", apisix("hosts: [b]"), "{method: {exact: PURGE}}", "!.methods: could not have the step's PURGE, which Apache APISIX does not know; use one of GET"},

		"ALBHost":       {"alb", "{ingress: web, servicePort: 80}", hosted, "{headers: [{name: a, exact: b}], method: {exact: GET}}", "name: staff"},
		"ALBTooMuch":    {"alb", "{ingress: web, servicePort: 80}", hosted, "{headers: [{name: a, exact: b}, {name: c, exact: d}, {name: e, exact: f}], method: {exact: GET}}", "!would be a rule with 6 values"},
		"ALBFive":       {"alb", "{ingress: web, servicePort: 80}", alb, "{headers: [{name: a, exact: b}, {name: c, exact: d}, {name: e, exact: f}], method: {exact: GET}}", "name: staff"},
		"ALBWildcards":  {"alb", "{ingress: web, servicePort: 80}", alb, "{cookies: [{name: a, exact: b}], headers: [{name: x, prefix: w}]}", "name: staff"},
		"ALBSixth":      {"alb", "{ingress: web, servicePort: 80}", alb, "{cookies: [{name: a, exact: b}], headers: [{name: x, prefix: w}, {name: z, prefix: w}]}", "!wildcards, and a load balancer takes 5"},
		"ALBPathHost":   {"alb", "{ingress: web, servicePort: 80}", hosted, "{path: {prefix: /a}, headers: [{name: a, exact: b}], method: {exact: GET}}", "path: /a"},
		"ALBPathsHost":  {"alb", "{ingress: web, servicePort: 80}", hosted, "{path: {prefix: /a}, headers: [{name: a, exact: b}, {name: c, exact: d}], method: {exact: GET}}", "!would be a rule with 6 values"},
		"ALBExactHost":  {"alb", "{ingress: web, servicePort: 80}", hosted, "{path: {exact: /a}, headers: [{name: a, exact: b}, {name: c, exact: d}], method: {exact: GET}}", "path: /a"},
		"ALBExactsHost": {"alb", "{ingress: web, servicePort: 80}", hosted, "{path: {exact: /a}, headers: [{name: a, exact: b}, {name: c, exact: d}, {name: e, exact: f}], method: {exact: GET}}", "!would be a rule with 6 values"},

		"NGINXName":   {"nginx", "{stableIngress: web}", nginx, "{headers: [{name: a b, exact: c}]}", "!ingress-nginx takes no header of the name \"a b\"; match another header"},
		"NGINXSpaces": {"nginx", "{stableIngress: web}", nginx, "{headers: [{name: a, exact: \" b\"}]}", "canary-by-header-pattern: ^\\x20b$"},
		"NGINXWords":  {"nginx", "{stableIngress: web}", nginx, "{headers: [{name: a, exact: b c}]}", "canary-by-header-value: b c"},
		"NGINXSigns":  {"nginx", "{stableIngress: web}", nginx, "{headers: [{name: a, exact: \"b,c\"}]}", "canary-by-header-pattern: ^b\\x2cc$"},

		"MappingSame":    {"ambassador", "{mappings: [web]}", ambassador("method: GET"), "{method: {exact: GET}}", "!is GET, and the step's match asks for nothing more; set the weight instead, or match a header too"},
		"MappingMore":    {"ambassador", "{mappings: [web]}", ambassador("method: GET"), "{method: {exact: GET}, headers: [{name: a, exact: b}]}", "headers:\n    a: b"},
		"MappingCookie":  {"ambassador", "{mappings: [web]}", ambassador("method: GET"), "{method: {exact: GET}, cookies: [{name: a, exact: b}]}", "regex_headers:"},
		"MappingQuery":   {"ambassador", "{mappings: [web]}", ambassador("method: GET"), "{method: {exact: GET}, queryParams: [{name: a, exact: b}]}", "query_parameters:\n    a: b"},
		"MappingHeaderQ": {"ambassador", "{mappings: [web]}", ambassador("method: GET"), "{method: {exact: GET}, headers: [{name: c, exact: d}], queryParams: [{name: a, exact: b}]}", "query_parameters:\n    a: b"},
		"MappingTwo":     {"ambassador", "{mappings: [web]}", ambassador("method: GET"), "{method: {exact: GET}, headers: [{name: c, exact: d}], cookies: [{name: a, exact: b}]}", "headers:\n    c: d"},
		"MappingOther":   {"ambassador", "{mappings: [web]}", ambassador("method: POST"), "{method: {exact: GET}}", "weight: 5"},
		"MappingAny":     {"ambassador", "{mappings: [web]}", ambassador("status: {x: y}"), "{method: {exact: GET}}", "method: GET"},
	} {
		t.Run(name, func(t *testing.T) {
			var config any
			var object rollout.Object
			route := Route{Name: "shop", Namespace: "shop", Stable: "shop", Canary: "shop-canary", Weight: 5, Max: 100, Active: true}
			fromYAML(t, c.config, &config)
			fromYAML(t, c.object, &object)
			fromYAML(t, "[{name: staff, matches: ["+c.match+"]}]", &route.Managed)
			objects, err := lay(t, c.kind, config, route, []rollout.Object{object})
			want, refused := strings.CutPrefix(c.want, "!")
			got := fmt.Sprint(err)
			if err == nil {
				got = string(bytesOf(t, objects.List()))
			}
			if (err != nil) != refused || !strings.Contains(got, want) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestBounds checks the largest numbers that a router accepts, and their results.
func TestBounds(t *testing.T) {
	ingress := func(port string) string {
		return "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: shop}, spec: {rules: [{http: {paths: [" +
			"{path: /, pathType: Prefix, backend: {service: {name: shop, port: " + port + "}}}]}}]}}"
	}
	alb, nginx := ingress("{name: use-annotation}"), ingress("{number: 80}")
	traefik := "{apiVersion: traefik.io/v1alpha1, kind: TraefikService, metadata: {name: web, namespace: shop}, spec: {weighted: {services: [{name: shop, port: 80}, {name: shop-canary, port: 80}]}}}"
	gateway := "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: web, namespace: shop}, spec: {rules: [{backendRefs: [{name: shop}]}]}}"
	annotated := strings.Replace(nginx, "namespace: shop}", "namespace: shop, annotations: {nginx.ingress.kubernetes.io/affinity: cookie}}", 1)
	const port = "ingress: web, servicePort: 80"
	for name, c := range map[string]struct {
		kind, config, object, route string
		want                        string
	}{
		"NoPort":     {"alb", "{ingress: web, servicePort: 0}", alb, "{weight: 5}", "!servicePort: is not the port of a Service"},
		"FirstPort":  {"alb", "{ingress: web, servicePort: 1}", alb, "{weight: 5}", `"ServicePort":"1"`},
		"LastPort":   {"alb", "{ingress: web, servicePort: 65535}", alb, "{weight: 5}", `"ServicePort":"65535"`},
		"HighPort":   {"alb", "{ingress: web, servicePort: 65536}", alb, "{weight: 5}", "!servicePort: is not the port of a Service"},
		"ALBMost":    {"alb", "{" + port + "}", alb, "{weight: 5, max: 999}", `"Weight":994`},
		"ALBMore":    {"alb", "{" + port + "}", alb, "{weight: 5, max: 1000}", "!takes weights up to 999, and maxTrafficWeight is 1000"},
		"ALBSecond":  {"alb", "{" + port + ", stickinessConfig: {enabled: true, durationSeconds: 1}}", alb, "{weight: 5}", `"DurationSeconds":1}`},
		"ALBWeek":    {"alb", "{" + port + ", stickinessConfig: {enabled: true, durationSeconds: 604800}}", alb, "{weight: 5}", `"DurationSeconds":604800}`},
		"ALBLonger":  {"alb", "{" + port + ", stickinessConfig: {enabled: true, durationSeconds: 604801}}", alb, "{weight: 5}", "!durationSeconds: is 604801; give 1 to 604800 seconds"},
		"ALBNever":   {"alb", "{" + port + ", stickinessConfig: {enabled: true}}", alb, "{weight: 5}", "!durationSeconds: is 0"},
		"ALBOff":     {"alb", "{" + port + ", stickinessConfig: {durationSeconds: 0}}", alb, "{weight: 5}", `"Weight":95`},
		"ALBSticks":  {"alb", "{" + port + "}", alb, "{weight: 1, sticky: {Cookie: c, MaxAge: 60000000000}}", `"DurationSeconds":60}`},
		"ALBAlone":   {"alb", "{" + port + "}", alb, "{weight: 100, sticky: {Cookie: c, MaxAge: 60000000000}}", `"Weight":0}]}}`},
		"ALBAnyText": {"alb", "{" + port + "}", strings.Replace(alb, "namespace: shop}", "namespace: shop, annotations: {alb.ingress.kubernetes.io/conditions.shop: x}}", 1), "{weight: 5, managed: [{name: staff, matches: [{method: {exact: GET}}]}]}", "!metadata.annotations[alb.ingress.kubernetes.io/conditions.shop]: is not a list of conditions: invalid"},

		"NGINX100":     {"nginx", "{stableIngress: web}", nginx, "{weight: 5}", "canary-weight: \"5\"\n  name"},
		"NGINX99":      {"nginx", "{stableIngress: web}", nginx, "{weight: 3, max: 99}", "canary-weight: \"6\"\n    nginx.ingress.kubernetes.io/canary-weight-total: \"198\""},
		"NGINX50":      {"nginx", "{stableIngress: web}", nginx, "{weight: 3, max: 50}", "canary-weight: \"6\"\n  name"},
		"NGINX33":      {"nginx", "{stableIngress: web}", nginx, "{weight: 1, max: 33}", "canary-weight: \"4\"\n    nginx.ingress.kubernetes.io/canary-weight-total: \"132\""},
		"NGINX1":       {"nginx", "{stableIngress: web}", nginx, "{weight: 1, max: 1}", "canary-weight: \"100\"\n  name"},
		"NGINX101":     {"nginx", "{stableIngress: web}", nginx, "{weight: 3, max: 101}", "canary-weight: \"3\"\n    nginx.ingress.kubernetes.io/canary-weight-total: \"101\""},
		"NGINXCookie":  {"nginx", "{stableIngress: web}", nginx, "{weight: 1, canaryPods: abc, sticky: {Cookie: c, MaxAge: 60000000000}}", "session-cookie-name: c-abc\n    nginx.ingress.kubernetes.io/session-cookie-path: /"},
		"NGINXUnnamed": {"nginx", "{stableIngress: web}", nginx, "{weight: 1, sticky: {Cookie: c, MaxAge: 60000000000}}", "session-cookie-name: c\n"},
		"NGINXOwn":     {"nginx", "{stableIngress: web, additionalIngressAnnotations: {canary-by-header: X}}", nginx, "{weight: 1, managed: [{name: staff, matches: [{headers: [{name: a, exact: b}]}]}]}", "!additionalIngressAnnotations: has canary-by-header for the whole release, and the steps match users; leave it to the steps"},
		"NGINXOwnAll":  {"nginx", "{stableIngress: web, additionalIngressAnnotations: {canary-by-header: X}}", nginx, "{weight: 1}", "canary-by-header: X"},
		"NGINXBack":    {"nginx", "{stableIngress: web}", annotated, "{weight: 0}", "affinity-canary-behavior: legacy"},

		"TraefikNone":    {"traefik", "{weightedTraefikServiceName: web}", traefik, "{weight: 0}", "services:\n    - name: shop\n      port: 80\n      weight: 100\n"},
		"TraefikIdle":    {"traefik", "{weightedTraefikServiceName: web}", traefik, "{weight: 0, active: false}", "- name: shop-canary\n      port: 80\n      weight: 0\n"},
		"TraefikOne":     {"traefik", "{weightedTraefikServiceName: web}", traefik, "{weight: 1}", "- name: shop-canary\n      port: 80\n      weight: 1\n"},
		"TraefikCookie":  {"traefik", "{weightedTraefikServiceName: web}", traefik, "{weight: 1, sticky: {Cookie: c, MaxAge: 60000000000}}", "cookie:\n        httpOnly: true\n        maxAge: 60\n        name: c\n"},
		"TraefikCookies": {"traefik", "{weightedTraefikServiceName: web}", traefik, "{weight: 1, canaryPods: abc, sticky: {Cookie: c, MaxAge: 60000000000}}", "name: c-abc\n"},
		"TraefikNobody":  {"traefik", "{weightedTraefikServiceName: web}", strings.Replace(traefik, "{name: shop-canary, port: 80}", "{name: x, port: 80, weight: 0}", 1), "{weight: 0}", "services:\n    - name: shop\n      port: 80\n      weight: 100\n    - name: x\n"},

		"MirrorAll":  {"gatewayAPI", "httpRoute: web", gateway, "{weight: 5, managed: [{name: copy, mirror: 100, matches: [{path: {prefix: /a}}]}]}", "backendRef:\n          name: shop-canary\n      type: RequestMirror"},
		"MirrorSome": {"gatewayAPI", "httpRoute: web", gateway, "{weight: 5, managed: [{name: copy, mirror: 99, matches: [{path: {prefix: /a}}]}]}", "name: shop-canary\n        percent: 99\n      type: RequestMirror"},
		"Unweighed":  {"gatewayAPI", "httpRoute: web", gateway, "{weight: 0}", "backendRefs:\n    - name: shop\n      weight: 100\n"},
		"FirstOne":   {"gatewayAPI", "httpRoute: web", gateway, "{weight: 1}", "- name: shop-canary\n      weight: 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var config any
			var object rollout.Object
			route := Route{Name: "shop", Namespace: "shop", Stable: "shop", Canary: "shop-canary", Max: 100, Active: true}
			fromYAML(t, c.config, &config)
			fromYAML(t, c.object, &object)
			fromYAML(t, c.route, &route)
			objects, err := lay(t, c.kind, config, route, []rollout.Object{object})
			want, refused := strings.CutPrefix(c.want, "!")
			got := fmt.Sprint(err)
			if err == nil {
				got = string(bytesOf(t, objects.List()))
			}
			if (err != nil) != refused || !strings.Contains(got, want) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestAllOfThem sets the weight at each router of a Rollout, and in each object that its configuration names.
func TestAllOfThem(t *testing.T) {
	read := func(objects ...string) (all []rollout.Object) {
		for _, written := range objects {
			var o rollout.Object
			fromYAML(t, written, &o)
			all = append(all, o)
		}
		return all
	}
	parse := func(kind, written string) rollout.Router {
		var config any
		fromYAML(t, written, &config)
		r, err := Parse(kind, config, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	virtual := func(name string) string {
		return "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: " + name + ", namespace: shop}, spec: {http: [{name: all, route: [{destination: {host: shop}}]}]}}"
	}
	gateway := "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: web, namespace: shop}, spec: {rules: [{backendRefs: [{name: shop}]}]}}"
	traefik := "{apiVersion: traefik.io/v1alpha1, kind: TraefikService, metadata: {name: web, namespace: shop}, spec: {weighted: {services: [{name: shop, port: 80}]}}}"
	users := func(name string) string {
		return "{apiVersion: traefik.io/v1alpha1, kind: IngressRoute, metadata: {name: " + name + ", namespace: shop}, spec: {routes: [{match: Host(`a`), services: [{name: web, kind: TraefikService}]}]}}"
	}
	staff := []rollout.ManagedRoute{{Name: "staff", Matches: []rollout.Match{{Headers: []rollout.NamedMatch{{Name: "a", StringMatch: rollout.StringMatch{Exact: "b"}}}}}}}
	objects := NewObjects(read(virtual("a"), virtual("b"), virtual("c"), gateway, traefik, users("d"), users("e")))
	routers := []rollout.Router{
		parse("gatewayAPI", "{httpRoute: web}"),
		parse("istio", "{virtualService: {name: a}, virtualServices: [{name: b}, {name: c, routes: [all]}]}"),
		parse("traefik", "{weightedTraefikServiceName: web, ingressRoutes: [d, e]}"),
	}
	route := Route{Name: "shop", Namespace: "shop", Stable: "shop", Canary: "shop-canary", Weight: 5, Max: 100, Active: true, Managed: staff}
	if err := Overlay(objects, routers, route); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects.List() {
		if !strings.Contains(string(bytesOf(t, []rollout.Object{o})), "shop-canary") {
			t.Errorf("%s gives the canary nothing", o.Ref())
		}
	}
	// An error names the field that has the name.
	for field, config := range map[string]string{
		"istio.virtualService.name":     "{virtualService: {name: x}}",
		"istio.virtualServices[0].name": "{virtualServices: [{name: x}, {name: a}]}",
		"istio.virtualServices[1].name": "{virtualService: {name: a}, virtualServices: [{name: b}, {name: x}]}",
	} {
		err := Overlay(NewObjects(read(virtual("a"), virtual("b"))), []rollout.Router{parse("istio", config)}, route)
		if err == nil || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%v, want one about %s", err, field)
		}
	}
	if err := Overlay(NewObjects(nil), []rollout.Router{{Kind: "haproxy"}}, route); err == nil || !strings.HasPrefix(err.Error(), "haproxy: is not a router") {
		t.Errorf("%v", err)
	}
	// Services without a name belong to no Rollout.
	subsets := Route{Name: "a", Namespace: "shop"}
	if err := Overlay(objects, nil, subsets); err != nil {
		t.Error(err)
	}
	subsets.Name = "b"
	if err := Overlay(objects, nil, subsets); err != nil {
		t.Errorf("two Rollouts without Services: %v", err)
	}
}
