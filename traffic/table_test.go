package traffic_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

// TestAnotherRouterIsOneRow checks that a router works after it is added to the table, without any other change of code.
func TestAnotherRouterIsOneRow(t *testing.T) {
	defer traffic.AddFake()()
	if !slices.Contains(traffic.Kinds(), "fake") || traffic.Types()["fake"].Name() != "fakeConfig" {
		t.Errorf("kinds %v, types %v", traffic.Kinds(), traffic.Types())
	}
	parsed, err := traffic.Parse("fake", map[string]any{"switch": "main"}, func(kind, name string) string { return kind + "-" + name })
	must(t, err)
	all := []rollout.Router{parsed}
	object := objectsIn(t, "{apiVersion: example.com/v1, kind: Switch, metadata: {name: Switch-main, namespace: shop}}")[0]
	objects := traffic.NewObjects([]rollout.Object{object})
	must(t, traffic.Overlay(objects, all, traffic.Route{Name: "shop", Namespace: "shop", Weight: 7, Max: 100}))
	if got := objects.List()[0].Map("spec")["share"]; got != int64(7) || object["spec"] != nil {
		t.Errorf("share %v, before %v", got, object)
	}
	refs := traffic.Watched(all, "shop")
	if len(refs) != 1 || refs[0] != object.Ref() {
		t.Fatalf("watches %v", refs)
	}
	for ready, want := range map[bool]traffic.Verdict{true: {Taken: true}, false: {Text: "Switch/Switch-main is not ready"}} {
		seen := map[rollout.Ref]rollout.ObservedRoute{refs[0]: {Status: map[string]any{"ready": ready}}}
		compare.CheckNamed(t, fmt.Sprint("ready ", ready), want, traffic.Verify(all, "shop", seen))
	}
	for f, text := range traffic.Optional() {
		if why := traffic.Lacks("fake", f); !strings.HasPrefix(why, "Fake "+text+": ") {
			t.Errorf("%s: %s", f, why)
		}
	}
	if !traffic.NeedsServices(parsed) {
		t.Error("it needs no Services")
	}
	_, err = traffic.Parse("fake", map[string]any{"swich": "main"}, nil)
	if err == nil || err.Error() != "fake.swich: is not a known field; did you mean switch?" {
		t.Errorf("error %v", err)
	}
}

// matchesOf returns a match for each feature and each comparison.
func matchesOf() map[string]map[string]rollout.Match {
	all := map[string]map[string]rollout.Match{}
	for way, m := range map[string]struct{ plain, path, source rollout.StringMatch }{
		"exact":  {rollout.StringMatch{Exact: "GET"}, rollout.StringMatch{Exact: "/a"}, rollout.StringMatch{Exact: "10.1.2.3"}},
		"prefix": {rollout.StringMatch{Prefix: "G"}, rollout.StringMatch{Prefix: "/a"}, rollout.StringMatch{Prefix: "10.1.0.0/16"}},
		"regex":  {rollout.StringMatch{Regex: "G|H"}, rollout.StringMatch{Regex: "/a|/b"}, rollout.StringMatch{Regex: "10.*"}},
	} {
		named := []rollout.NamedMatch{{Name: "x-staff", StringMatch: m.plain}}
		for f, match := range map[string]rollout.Match{
			"header": {Headers: named}, "cookie": {Cookies: named}, "query": {QueryParams: named},
			"path": {Path: &m.path}, "method": {Method: &m.plain}, "source": {Source: &m.source},
		} {
			if all[f] == nil {
				all[f] = map[string]rollout.Match{}
			}
			all[f][way] = match
		}
	}
	return all
}

// plainObjects returns an example for each router. An example has only one route or path, to the stable Service, so that all supported
// matches are possible.
func plainObjects(t *testing.T) map[string]example {
	t.Helper()
	all := map[string]example{}
	for router, objects := range map[routerOf]string{
		httpRoute:                                manifest(routeKind, "rules: [{backendRefs: [{name: shop, port: 80}]}]"),
		nginxIngress:                             ingress("{number: 80}"),
		albIngress:                               ingress("{name: use-annotation}"),
		ambassadorMap:                            manifest(mappingKind, "prefix: /, service: shop"),
		{"istio", "virtualService: {name: web}"}: manifest(istioKind, "http: [{route: [{destination: {host: shop}}]}]"),
		{"apisix", "route: {name: web}"}: manifest(apisixKind,
			"http: [{name: web, match: {paths: [/*]}, backends: [{serviceName: shop, port: 80}]}]"),
		{"traefik", "{weightedTraefikServiceName: web, ingressRoutes: [web]}"}: manifest(traefikKind,
			"weighted: {services: [{name: shop, port: 80}]}") + "\n---\n" +
			manifest(usersKind, "routes: [{match: Host(`shop`), services: [{name: web, kind: TraefikService}]}]"),
	} {
		all[router.kind] = example{name: router.kind, kind: router.kind, config: read[any](t, router.config), objects: objectsIn(t, objects),
			route: traffic.Route{Name: "shop", Namespace: "shop", Stable: "shop", Canary: "shop-canary", Weight: 20, Max: 100, Active: true}}
	}
	return all
}

// TestWhatTheTableSaysIsTrue checks the table's entry for each router, feature and comparison. If the table supports a match, the overlay
// must apply it. Otherwise, Unsupported must refuse it.
func TestWhatTheTableSaysIsTrue(t *testing.T) {
	plain := plainObjects(t)
	for _, kind := range traffic.Kinds() {
		_, _, has, reports := traffic.Row(kind)
		e, ok := plain[kind]
		if !ok {
			if has["header"] != "" {
				t.Errorf("%s can match and has no objects here", kind)
			}
			continue
		}
		for f, ways := range matchesOf() {
			for way, m := range ways {
				t.Run(fmt.Sprintf("%s/%s/%s", kind, f, way), func(t *testing.T) {
					says := strings.Contains(has[f], way)
					route := e.route
					route.Managed = []rollout.ManagedRoute{{Name: "staff", Matches: []rollout.Match{m}}}
					field, why := traffic.Unsupported(kind, route.Managed[0])
					if (why == "") != says {
						t.Errorf("the table says %v, Unsupported %s: %q", says, field, why)
					}
					if !says {
						return
					}
					without, with := e.lay(t, e.objects, e.route), e.lay(t, e.objects, route)
					if compare.Equal(without, with) {
						t.Error("the match changes nothing")
					}
				})
			}
		}
		for f, change := range map[string]func(*traffic.Route){
			"mirror": func(r *traffic.Route) {
				half := 50
				r.Managed = []rollout.ManagedRoute{{Name: "copy", Matches: []rollout.Match{matchesOf()["header"]["exact"]}, Mirror: &half}}
			},
			"experiment":            func(r *traffic.Route) { r.Shares = map[string]int{"try": 5} },
			"requestHeaderModifier": func(r *traffic.Route) { r.Headers = &rollout.HeaderModifier{Remove: []string{"X-Debug"}} },
			"sticky": func(r *traffic.Route) {
				r.Sticky, r.CanaryPods = &rollout.Sticky{Cookie: "stay", MaxAge: 3600e9}, "abc"
			},
		} {
			if has[f] == "" {
				continue
			}
			route := e.route
			change(&route)
			if compare.Equal(e.lay(t, e.objects, e.route), e.lay(t, e.objects, route)) {
				t.Errorf("%s: %s changes nothing", kind, f)
			}
		}
		for f := range traffic.Optional() {
			if why := traffic.Lacks(kind, f); (why == "") != (has[f] != "") {
				t.Errorf("%s, %s: %q", kind, f, why)
			}
		}
		if reports != (has["verify"] != "") {
			t.Errorf("%s: the table says that it reports: %v", kind, !reports)
		}
	}
}

// TestNamesFollowKustomize checks that Parse calls rename for the name of each object that the overlay needs. Then the overlay must find
// the renamed objects.
func TestNamesFollowKustomize(t *testing.T) {
	for kind, e := range plainObjects(t) {
		var seen []string
		r, err := traffic.Parse(kind, e.config, func(of, name string) string {
			seen = append(seen, of+"/"+name)
			return "dev-" + name
		})
		must(t, err)
		var renamed []rollout.Object
		for _, o := range e.objects {
			if !slices.Contains(seen, o.Kind()+"/"+o.Name()) {
				t.Errorf("%s: %s/%s is not renamed, only %v", kind, o.Kind(), o.Name(), seen)
			}
			o = o.Copy()
			traffic.Set(o, "dev-"+o.Name(), "metadata", "name")
			renamed = append(renamed, o)
		}
		err = traffic.Overlay(traffic.NewObjects(renamed), []rollout.Router{r}, e.route)
		if kind == "traefik" { // unlike this test, kustomize also renames the reference in the IngressRoute
			if err == nil || !strings.Contains(err.Error(), "dev-web") {
				t.Errorf("traefik: %v", err)
			}
		} else if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ kind, config, want string }{
		{"haproxy", "", "haproxy: is not a router that gitrollout knows"},
		{"smi", "{rootservice: x}", "smi.rootservice: is not a known field"},
		{"smi", "[x]", "smi: must be a mapping, not a list"},
		{"istio", "{virtualServices: {}}", "istio.virtualServices: must be a list, not a mapping"},
		{"istio", `{virtualService: {tlsRoutes: [{port: "80"}]}}`,
			`istio.virtualService.tlsRoutes[0].port: must be a whole number, not the string "80"`},
		{"alb", `{stickinessConfig: {enabled: "yes"}}`, `alb.stickinessConfig.enabled: must be true or false, not the string "yes"`},
		{"object", "{name: 1}", "object[0].name: must be a string, not 1"},
		{"object", "[{}, {verify: x}]", `object[1].verify: must be a mapping, not the string "x"`},
	} {
		_, err := traffic.Parse(c.kind, read[any](t, c.config), nil)
		var known *rollout.InvalidError
		if !errors.As(err, &known) || !strings.HasPrefix(err.Error(), c.want+"; ") {
			t.Errorf("%s %s: %v, want %s", c.kind, c.config, err, c.want)
		}
	}
}

// TestParseTwice checks that a configuration stays equal if it is encoded and parsed again.
func TestParseTwice(t *testing.T) {
	for _, e := range examples(t) {
		first, err := traffic.Parse(e.kind, e.config, nil)
		if err != nil {
			continue // TestOverlays checks invalid configurations
		}
		written, err := rollout.Plain(first.Config)
		must(t, err)
		second, err := traffic.Parse(e.kind, written, nil)
		if err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		compare.CheckNamed(t, e.name, first, second)
	}
}

// TestNamesThatMayBeLeftOut checks that Parse renames an optional name if it is given, and does not call rename if the name is absent.
func TestNamesThatMayBeLeftOut(t *testing.T) {
	for given, want := range map[string]string{"": "", "root split": "Service root, TrafficSplit split"} {
		root, split, _ := strings.Cut(given, " ")
		var shown []string
		_, err := traffic.Parse("smi", map[string]any{"rootService": root, "trafficSplitName": split}, func(kind, name string) string {
			shown = append(shown, kind+" "+name)
			return name
		})
		if got := strings.Join(shown, ", "); err != nil || got != want {
			t.Errorf("%q: %q (%v), want %q", given, got, err, want)
		}
	}
}
