package traffic_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

// routerOf is a router's kind with a configuration in YAML.
type routerOf struct{ kind, config string }

func (r routerOf) parse(t *testing.T) rollout.Router {
	t.Helper()
	parsed, err := traffic.Parse(r.kind, read[any](t, r.config), nil)
	must(t, err)
	return parsed
}

var (
	httpRoute     = routerOf{"gatewayAPI", "httpRoute: web"}
	grpcRoute     = routerOf{"gatewayAPI", "grpcRoute: web"}
	apisixRule    = routerOf{"apisix", "{route: {name: web, rules: [a]}}"}
	albIngress    = routerOf{"alb", "{ingress: web, servicePort: 80}"}
	nginxIngress  = routerOf{"nginx", "{stableIngress: web}"}
	ambassadorMap = routerOf{"ambassador", "{mappings: [web]}"}
	traefikShares = routerOf{"traefik", "{weightedTraefikServiceName: web}"}
)

// manifest returns an object in YAML, with the name web and the namespace shop.
func manifest(kind, spec string) string {
	return "{" + kind + ", metadata: {name: web, namespace: shop}, spec: {" + spec + "}}"
}

const (
	routeKind   = "apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute"
	ingressKind = "apiVersion: networking.k8s.io/v1, kind: Ingress"
	istioKind   = "apiVersion: networking.istio.io/v1, kind: VirtualService"
	traefikKind = "apiVersion: traefik.io/v1alpha1, kind: TraefikService"
	usersKind   = "apiVersion: traefik.io/v1alpha1, kind: IngressRoute"
	apisixKind  = "apiVersion: apisix.apache.org/v2, kind: ApisixRoute"
	mappingKind = "apiVersion: getambassador.io/v3alpha1, kind: Mapping"
)

// ingress returns an Ingress whose only path leads to a port of the Service shop.
func ingress(port string) string {
	backend := "{service: {name: shop, port: " + port + "}}"
	return manifest(ingressKind, "rules: [{http: {paths: [{path: /, pathType: Prefix, backend: "+backend+"}]}}]")
}

// checkLaid applies a Route with the given fields to the given objects. The resulting objects must contain want. If want begins with !, the
// overlay must fail, and the error must contain the rest of want.
func checkLaid(t *testing.T, router routerOf, written, fields, want string) {
	t.Helper()
	route := traffic.Route{Name: "shop", Namespace: "shop", Stable: "shop", Canary: "shop-canary", Max: 100, Active: true}
	must(t, yaml.UnmarshalStrict([]byte(fields), &route))
	objects, err := lay(t, router.kind, read[any](t, router.config), route, objectsIn(t, written))
	text, refused := strings.CutPrefix(want, "!")
	got := fmt.Sprint(err)
	if err == nil {
		got = manifests(t, objects.List())
	}
	if (err != nil) != refused || !strings.Contains(got, text) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestMatches checks how a user's rule is combined with a step's match. It also checks the limits of routers: a value at the limit, and a
// value beyond the limit.
func TestMatches(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	gateway := func(rule string) string { return manifest(routeKind, "rules: ["+rule+"]") }
	plain := gateway("{backendRefs: [{name: shop}]}")
	own := func(match string) string { return gateway("{backendRefs: [{name: shop}], matches: [{" + match + "}]}") }
	beside := func(match, other string) string {
		return gateway("{backendRefs: [{name: shop}], matches: [{" + match + "}]}, {backendRefs: [{name: other}], matches: [{" + other + "}]}")
	}
	grpc := strings.Replace(plain, "HTTPRoute", "GRPCRoute", 1)
	apisix := func(match string) string {
		return manifest(apisixKind, "http: [{name: a, match: {"+match+"}, backends: [{serviceName: shop, servicePort: 80}]}]")
	}
	alb := ingress("{name: use-annotation}")
	hosted := strings.Replace(alb, "{http:", "{host: a.example.com, http:", 1)
	nginx := ingress("{number: 80}")
	ambassador := func(fields string) string {
		return manifest(mappingKind, "prefix: /, service: \"shop:80\", "+fields)
	}
	byPattern := func(path string) string { return own("path: {type: RegularExpression, value: " + path + "}") }
	const get, header, cookie = "method: {exact: GET}", "headers: [{name: a, exact: b}]", "cookies: [{name: a, exact: b}]"
	const param, otherHeader = "queryParams: [{name: a, exact: b}]", "headers: [{name: c, exact: d}]"
	const two = "headers: [{name: a, exact: b}, {name: c, exact: d}]"
	const three = "headers: [{name: a, exact: b}, {name: c, exact: d}, {name: e, exact: f}]"
	const anyPath, belowA = "path: {type: PathPrefix, value: /}", "path: {type: PathPrefix, value: /a}"
	const noRule = "rules:\n  - backendRefs:\n    - name: shop\n      weight: 95\n" // no rule is added for the match
	for name, c := range map[string]struct {
		router              routerOf
		object, match, want string // want has the form that checkLaid expects
	}{
		"GRPCHeader": {grpcRoute, grpc, header, "kind: GRPCRoute"},
		"GRPCPath":   {grpcRoute, grpc, "path: {prefix: /a}", "!belongs to a GRPCRoute, which can only match headers and cookies"},
		"GRPCMethod": {grpcRoute, grpc, get, "!belongs to a GRPCRoute"},
		"GRPCQuery":  {grpcRoute, grpc, param, "!belongs to a GRPCRoute"},
		"TCP": {routerOf{"gatewayAPI", "tcpRoute: web"}, strings.Replace(plain, "HTTPRoute", "TCPRoute", 1), header,
			"!is a TCPRoute, which cannot match requests or change headers, and a step asks for this; leave out match, setHeaderRoute, "},
		"UnknownMethod": {httpRoute, plain, "method: {exact: PURGE}",
			"!spec.rules[0].matches[0].method: cannot be the step's method PURGE, which the Gateway API does not support; use one of GET"},
		"SameMethod": {httpRoute, own("method: GET"), get + ", " + header,
			"- headers:\n      - name: a\n        type: Exact\n        value: b\n      method: GET"},
		"OtherMethod": {httpRoute, own("method: POST"), get,
			noRule + "    - name: shop-canary\n      weight: 5\n    matches:\n    - method: POST\n"},
		"LongPath": {httpRoute, plain, "path: {prefix: /" + x(1023) + "}", "value: /" + x(1023)},
		"LongerPath": {httpRoute, plain, "path: {prefix: /" + x(1024) + "}",
			"!cannot be \"/" + x(59) + "…\": the Gateway API allows up to 1024 characters"},
		"LongHeader": {httpRoute, plain, "headers: [{name: a, exact: " + x(4096) + "}]", "value: " + x(4096)},
		"LongerHeader": {httpRoute, plain, "headers: [{name: a, exact: " + x(4097) + "}]",
			"!the header a with \"" + x(60) + "…\": the Gateway API allows up to 4096 characters of ASCII"},
		"WideHeader":   {httpRoute, plain, "headers: [{name: a, exact: b  c}]", "!the header a with \"b  c\": the Gateway API allows"},
		"SixtyLetters": {httpRoute, plain, "headers: [{name: a, exact: " + x(56) + "  cd}]", "!the header a with \"" + x(56) + "  cd\": the"},
		"HeaderTwice": {httpRoute, own("headers: [{name: X-A, value: b}]"), "headers: [{name: x-a, exact: b}]",
			"!would compare the header x-a twice, which the Gateway API does not allow; match only one"},
		"ParamName":  {httpRoute, plain, "queryParams: [{name: a b, exact: b}]", "!cannot have the step's parameter \"a b\": "},
		"ParamTwice": {httpRoute, own("queryParams: [{name: a, value: b}]"), param, "!would compare the parameter a twice"},
		"ParamsBoth": {httpRoute, own("queryParams: [{name: a, value: b}]"), "queryParams: [{name: A, exact: b}]",
			"- name: a\n        value: b\n      - name: A\n        type: Exact"},
		"LongParam": {httpRoute, plain, "queryParams: [{name: a, exact: " + x(1024) + "}]", "value: " + x(1024)},
		"LongerParam": {httpRoute, plain, "queryParams: [{name: a, exact: " + x(1025) + "}]",
			"!the parameter a with \"" + x(60) + "…\": the Gateway API allows up to 1024"},
		"PatternsOfBoth": {httpRoute, byPattern("/a.*"), "path: {prefix: /a}", "!\"/a.*\" cannot be combined with the step's match"},
		"AnyPattern":     {httpRoute, byPattern("/"), "path: {prefix: /a}", "!\"/\" cannot be combined with the step's match"},
		"ExactRoot":      {httpRoute, own("path: {type: Exact, value: /}"), "path: {prefix: /a}", noRule},
		"BelowRoot":      {httpRoute, own("path: {value: /}"), "path: {regex: /a.*}", "type: RegularExpression\n        value: ^/a.*$"},
		"BelowNothing":   {httpRoute, own("path: {type: PathPrefix}"), "path: {regex: /a.*}", "type: RegularExpression\n        value: ^/a.*$"},
		// A rule that sends a longer path to another Service keeps its requests.
		"TakenPath":    {httpRoute, beside(anyPath, belowA), "path: {prefix: /a/b}", noRule},
		"TakenSame":    {httpRoute, beside(anyPath, "path: {type: Exact, value: /a}"), "path: {exact: /a}", noRule},
		"NotTaken":     {httpRoute, beside(anyPath, "path: {type: Exact, value: /a}"), "path: {exact: /a/b}", "value: /a/b"},
		"NotAPattern":  {httpRoute, beside(anyPath, "path: {type: RegularExpression, value: /a}"), "path: {exact: /a/b}", "value: /a/b"},
		"AsLong":       {httpRoute, beside(belowA, belowA), "path: {prefix: /a}, " + header, "type: Exact\n        value: b"},
		"ForItsHeader": {httpRoute, beside(anyPath, belowA+", headers: [{name: x, value: y}]"), "path: {prefix: /a/b}", "value: /a/b"},

		"APISIXSame": {apisixRule, apisix("methods: [GET, POST]"), get, "methods:\n      - GET\n    name:"},
		"APISIXOther": {apisixRule, apisix("methods: [POST]"), get,
			"http:\n  - backends:\n    - serviceName: shop\n      servicePort: 80\n      weight: 95"},
		"APISIXUnknown": {apisixRule, apisix("hosts: [b]"), "method: {exact: PURGE}",
			"!.methods: cannot have the step's method PURGE, which Apache APISIX does not know; use one of GET"},

		"ALBHost":      {albIngress, hosted, header + ", " + get, "name: staff"},
		"ALBTooMuch":   {albIngress, hosted, three + ", " + get, "!would be a rule with 6 values"},
		"ALBFive":      {albIngress, alb, three + ", " + get, "name: staff"},
		"ALBWildcards": {albIngress, alb, cookie + ", headers: [{name: x, prefix: w}]", "name: staff"},
		"ALBSixth": {albIngress, alb, cookie + ", headers: [{name: x, prefix: w}, {name: z, prefix: w}]",
			"!wildcards, and a load balancer takes 5"},
		"ALBPathHost":   {albIngress, hosted, "path: {prefix: /a}, " + header + ", " + get, "path: /a"},
		"ALBPathsHost":  {albIngress, hosted, "path: {prefix: /a}, " + two + ", " + get, "!would be a rule with 6 values"},
		"ALBExactHost":  {albIngress, hosted, "path: {exact: /a}, " + two + ", " + get, "path: /a"},
		"ALBExactsHost": {albIngress, hosted, "path: {exact: /a}, " + three + ", " + get, "!would be a rule with 6 values"},

		"NGINXName": {nginxIngress, nginx, "headers: [{name: a b, exact: c}]",
			"!ingress-nginx takes no header of the name \"a b\"; match another header"},
		"NGINXSpaces": {nginxIngress, nginx, "headers: [{name: a, exact: \" b\"}]", "canary-by-header-pattern: ^\\x20b$"},
		"NGINXWords":  {nginxIngress, nginx, "headers: [{name: a, exact: b c}]", "canary-by-header-value: b c"},
		"NGINXSigns":  {nginxIngress, nginx, "headers: [{name: a, exact: \"b,c\"}]", "canary-by-header-pattern: ^b\\x2cc$"},

		"MappingSame": {ambassadorMap, ambassador("method: GET"), get,
			"!is GET, so the step's match would cover all Mapping requests; set the weight instead, or match a header too"},
		"MappingMore":    {ambassadorMap, ambassador("method: GET"), get + ", " + header, "headers:\n    a: b"},
		"MappingCookie":  {ambassadorMap, ambassador("method: GET"), get + ", " + cookie, "regex_headers:"},
		"MappingQuery":   {ambassadorMap, ambassador("method: GET"), get + ", " + param, "query_parameters:\n    a: b"},
		"MappingHeaderQ": {ambassadorMap, ambassador("method: GET"), get + ", " + otherHeader + ", " + param, "query_parameters:\n    a: b"},
		"MappingTwo":     {ambassadorMap, ambassador("method: GET"), get + ", " + otherHeader + ", " + cookie, "headers:\n    c: d"},
		"MappingOther":   {ambassadorMap, ambassador("method: POST"), get, "weight: 5"},
		"MappingAny":     {ambassadorMap, ambassador("status: {x: y}"), get, "method: GET"},
	} {
		t.Run(name, func(t *testing.T) {
			checkLaid(t, c.router, c.object, "{weight: 5, managed: [{name: staff, matches: [{"+c.match+"}]}]}", c.want)
		})
	}
}

// TestBounds checks the smallest and the largest numbers that routers accept, and the resulting objects.
func TestBounds(t *testing.T) {
	alb, nginx := ingress("{name: use-annotation}"), ingress("{number: 80}")
	traefik := manifest(traefikKind, "weighted: {services: [{name: shop, port: 80}, {name: shop-canary, port: 80}]}")
	gateway := manifest(routeKind, "rules: [{backendRefs: [{name: shop}]}]")
	annotated := func(object, annotation string) string {
		return strings.Replace(object, "namespace: shop}", "namespace: shop, annotations: {"+annotation+"}}", 1)
	}
	albWith := func(fields string) routerOf { return routerOf{"alb", "{ingress: web, " + fields + "}"} }
	albSticking := func(fields string) routerOf { return albWith("servicePort: 80, stickinessConfig: {" + fields + "}") }
	nginxOwn := routerOf{"nginx", "{stableIngress: web, additionalIngressAnnotations: {canary-by-header: X}}"}
	const sticky = ", sticky: {Cookie: c, MaxAge: 60000000000}"
	const total = "    nginx.ingress.kubernetes.io/canary-weight-total: "
	for name, c := range map[string]struct {
		router              routerOf
		object, route, want string
	}{
		"NoPort":    {albWith("servicePort: 0"), alb, "weight: 5", "!servicePort: is not the port of a Service"},
		"FirstPort": {albWith("servicePort: 1"), alb, "weight: 5", `"ServicePort":"1"`},
		"LastPort":  {albWith("servicePort: 65535"), alb, "weight: 5", `"ServicePort":"65535"`},
		"HighPort":  {albWith("servicePort: 65536"), alb, "weight: 5", "!servicePort: is not the port of a Service"},
		"ALBMost":   {albIngress, alb, "weight: 5, max: 999", `"Weight":994`},
		"ALBMore":   {albIngress, alb, "weight: 5, max: 1000", "!takes weights up to 999, and maxTrafficWeight is 1000"},
		"ALBSecond": {albSticking("enabled: true, durationSeconds: 1"), alb, "weight: 5", `"DurationSeconds":1}`},
		"ALBWeek":   {albSticking("enabled: true, durationSeconds: 604800"), alb, "weight: 5", `"DurationSeconds":604800}`},
		"ALBLonger": {albSticking("enabled: true, durationSeconds: 604801"), alb, "weight: 5",
			"!durationSeconds: is 604801; give 1 to 604800 seconds"},
		"ALBNever":  {albSticking("enabled: true"), alb, "weight: 5", "!durationSeconds: is 0"},
		"ALBOff":    {albSticking("durationSeconds: 0"), alb, "weight: 5", `"Weight":95`},
		"ALBSticks": {albIngress, alb, "weight: 1" + sticky, `"DurationSeconds":60}`},
		"ALBAlone":  {albIngress, alb, "weight: 100" + sticky, `"Weight":0}]}}`},
		"ALBAnyText": {albIngress, annotated(alb, "alb.ingress.kubernetes.io/conditions.shop: x"),
			"weight: 5, managed: [{name: staff, matches: [{method: {exact: GET}}]}]",
			"!metadata.annotations[alb.ingress.kubernetes.io/conditions.shop]: is not a list of conditions: invalid"},

		"NGINX100": {nginxIngress, nginx, "weight: 5", "canary-weight: \"5\"\n  name"},
		"NGINX99":  {nginxIngress, nginx, "weight: 3, max: 99", "canary-weight: \"6\"\n" + total + "\"198\""},
		"NGINX50":  {nginxIngress, nginx, "weight: 3, max: 50", "canary-weight: \"6\"\n  name"},
		"NGINX33":  {nginxIngress, nginx, "weight: 1, max: 33", "canary-weight: \"4\"\n" + total + "\"132\""},
		"NGINX1":   {nginxIngress, nginx, "weight: 1, max: 1", "canary-weight: \"100\"\n  name"},
		"NGINX101": {nginxIngress, nginx, "weight: 3, max: 101", "canary-weight: \"3\"\n" + total + "\"101\""},
		"NGINXCookie": {nginxIngress, nginx, "weight: 1, canaryPods: abc" + sticky,
			"session-cookie-name: c-abc\n    nginx.ingress.kubernetes.io/session-cookie-path: /"},
		"NGINXUnnamed": {nginxIngress, nginx, "weight: 1" + sticky, "session-cookie-name: c\n"},
		"NGINXOwn": {nginxOwn, nginx, "weight: 1, managed: [{name: staff, matches: [{headers: [{name: a, exact: b}]}]}]",
			"!additionalIngressAnnotations: has canary-by-header, but the steps' routes also set it; remove it here"},
		"NGINXOwnFull": {routerOf{"nginx", "{stableIngress: web, additionalIngressAnnotations: {canary-by-header: Z}, " +
			"canaryIngressAnnotations: {nginx.ingress.kubernetes.io/canary-by-header: X}}"}, nginx,
			"weight: 1, managed: [{name: staff, matches: [{headers: [{name: a, exact: b}]}]}]",
			"!canaryIngressAnnotations: has canary-by-header, but the steps' routes also set it; remove it here"},
		"NGINXOwnAll": {nginxOwn, nginx, "weight: 1", "canary-by-header: X"},
		"NGINXBack": {nginxIngress, annotated(nginx, "nginx.ingress.kubernetes.io/affinity: cookie"), "weight: 0",
			"affinity-canary-behavior: legacy"},

		"TraefikNone": {traefikShares, traefik, "weight: 0", "services:\n    - name: shop\n      port: 80\n      weight: 100\n"},
		"TraefikIdle": {traefikShares, traefik, "weight: 0, active: false", "- name: shop-canary\n      port: 80\n      weight: 0\n"},
		"TraefikOne":  {traefikShares, traefik, "weight: 1", "- name: shop-canary\n      port: 80\n      weight: 1\n"},
		"TraefikCookie": {traefikShares, traefik, "weight: 1" + sticky,
			"cookie:\n        httpOnly: true\n        maxAge: 60\n        name: c\n"},
		"TraefikCookies": {traefikShares, traefik, "weight: 1, canaryPods: abc" + sticky, "name: c-abc\n"},
		"TraefikNobody": {traefikShares, strings.Replace(traefik, "{name: shop-canary, port: 80}", "{name: x, port: 80, weight: 0}", 1),
			"weight: 0", "services:\n    - name: shop\n      port: 80\n      weight: 100\n    - name: x\n"},

		"MirrorAll": {httpRoute, gateway, "weight: 5, managed: [{name: copy, mirror: 100, matches: [{path: {prefix: /a}}]}]",
			"backendRef:\n          name: shop-canary\n      type: RequestMirror"},
		"MirrorSome": {httpRoute, gateway, "weight: 5, managed: [{name: copy, mirror: 99, matches: [{path: {prefix: /a}}]}]",
			"name: shop-canary\n        percent: 99\n      type: RequestMirror"},
		"Unweighed": {httpRoute, gateway, "weight: 0", "backendRefs:\n    - name: shop\n      weight: 100\n"},
		"FirstOne":  {httpRoute, gateway, "weight: 1", "- name: shop-canary\n      weight: 1\n"},
	} {
		t.Run(name, func(t *testing.T) { checkLaid(t, c.router, c.object, "{"+c.route+"}", c.want) })
	}
}

// TestAllOfThem checks that the weight is set for each router of a Rollout, and in each object that a configuration names.
func TestAllOfThem(t *testing.T) {
	named := func(name, object string) string {
		return strings.Replace(object, "name: web", "name: "+name, 1) + "\n---\n"
	}
	virtual := manifest(istioKind, "http: [{name: all, route: [{destination: {host: shop}}]}]")
	users := manifest(usersKind, "routes: [{match: Host(`a`), services: [{name: web, kind: TraefikService}]}]")
	objects := traffic.NewObjects(objectsIn(t, named("a", virtual)+named("b", virtual)+named("c", virtual)+named("d", users)+named("e", users)+
		named("web", manifest(routeKind, "rules: [{backendRefs: [{name: shop}]}]"))+
		manifest(traefikKind, "weighted: {services: [{name: shop, port: 80}]}")))
	routers := []rollout.Router{
		httpRoute.parse(t),
		routerOf{"istio", "{virtualService: {name: a}, virtualServices: [{name: b}, {name: c, routes: [all]}]}"}.parse(t),
		routerOf{"traefik", "{weightedTraefikServiceName: web, ingressRoutes: [d, e]}"}.parse(t),
	}
	route := traffic.Route{Name: "shop", Namespace: "shop", Stable: "shop", Canary: "shop-canary", Weight: 5, Max: 100, Active: true,
		Managed: []rollout.ManagedRoute{{Name: "staff", Matches: []rollout.Match{withHeader("a", "b")}}}}
	must(t, traffic.Overlay(objects, routers, route))
	for _, o := range objects.List() {
		if !strings.Contains(manifests(t, []rollout.Object{o}), "shop-canary") {
			t.Errorf("%s gives the canary nothing", o.Ref())
		}
	}
	// The error for a missing object contains the path of the configuration field that names the object.
	for field, config := range map[string]string{
		"istio.virtualService.name":     "{virtualService: {name: x}}",
		"istio.virtualServices[0].name": "{virtualServices: [{name: x}, {name: a}]}",
		"istio.virtualServices[1].name": "{virtualService: {name: a}, virtualServices: [{name: b}, {name: x}]}",
	} {
		two := traffic.NewObjects(objectsIn(t, named("a", virtual)+named("b", virtual)))
		err := traffic.Overlay(two, []rollout.Router{routerOf{"istio", config}.parse(t)}, route)
		if err == nil || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%v, want one about %s", err, field)
		}
	}
	err := traffic.Overlay(traffic.NewObjects(nil), []rollout.Router{{Kind: "haproxy"}}, route)
	if err == nil || !strings.HasPrefix(err.Error(), "haproxy: is not a router") {
		t.Errorf("%v", err)
	}
	// A Route without Services claims no Service, so two such Routes do not conflict.
	for _, name := range []string{"a", "b"} {
		must(t, traffic.Overlay(objects, nil, traffic.Route{Name: name, Namespace: "shop"}))
	}
}

// withHeader returns a match of the requests whose header has exactly this value.
func withHeader(name, value string) rollout.Match {
	return rollout.Match{Headers: []rollout.NamedMatch{{Name: name, StringMatch: rollout.StringMatch{Exact: value}}}}
}
