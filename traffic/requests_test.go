package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

type request struct {
	path, method string
	headers      map[string]string
	query        map[string]string
}

func (q request) is(m rollout.Match) bool {
	for _, h := range m.Headers {
		if value, has := q.headers[strings.ToLower(h.Name)]; !has || !traffic.Matches(h.StringMatch, value) {
			return false
		}
	}
	for _, c := range m.Cookies {
		found := false
		for _, pair := range strings.Split(q.headers["cookie"], "; ") {
			name, value, _ := strings.Cut(pair, "=")
			found = found || name == c.Name && traffic.Matches(c.StringMatch, value)
		}
		if !found {
			return false
		}
	}
	for _, p := range m.QueryParams {
		if value, has := q.query[p.Name]; !has || !traffic.Matches(p.StringMatch, value) {
			return false
		}
	}
	return (m.Path == nil || traffic.Matches(*m.Path, q.path)) && (m.Method == nil || traffic.Matches(*m.Method, q.method))
}

// istioTakes reports whether a route takes a request: the route has no match, or all fields of one of its HTTPMatchRequests match.
func istioTakes(route map[string]any, q request) bool {
	own := traffic.List(route["match"])
	for _, item := range own {
		m := traffic.Mapping(item)
		all := traffic.IstioMatches(traffic.Mapping(m["uri"]), q.path) && traffic.IstioMatches(traffic.Mapping(m["method"]), q.method)
		for name, value := range traffic.Mapping(m["headers"]) {
			got, has := q.headers[name]
			all = all && has && traffic.IstioMatches(traffic.Mapping(value), got)
		}
		for name, value := range traffic.Mapping(m["queryParams"]) {
			got, has := q.query[name]
			all = all && has && traffic.IstioMatches(traffic.Mapping(value), got)
		}
		if all {
			return true
		}
	}
	return len(own) == 0
}

// istioServed returns the index of the first route that takes a request, and the weights of this route's destinations. If no route takes
// the request, the index is -1.
func istioServed(o rollout.Object, q request) (int, string) {
	routes := traffic.List(o.Map("spec")["http"])
	i := slices.IndexFunc(routes, func(route any) bool { return istioTakes(traffic.Mapping(route), q) })
	if i < 0 {
		return -1, "nobody"
	}
	var parts []string
	for _, d := range traffic.List(traffic.Mapping(routes[i])["route"]) {
		weight, given := traffic.Number(traffic.Mapping(d)["weight"])
		if !given {
			weight = 100
		}
		if weight > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", traffic.Text(traffic.Mapping(traffic.Mapping(d)["destination"])["host"]), weight))
		}
	}
	return i, strings.Join(parts, ", ")
}

func pick[T any](random *rand.Rand, all ...T) T { return all[random.IntN(len(all))] }

func anyRequest(random *rand.Rand) request {
	q := request{
		path: pick(random, "/", "/a", "/a/b", "/ab", "/b"), method: pick(random, "GET", "POST"),
		headers: map[string]string{}, query: map[string]string{},
	}
	for _, name := range []string{"x-staff", "x-team"} {
		if random.IntN(2) == 0 {
			q.headers[name] = pick(random, "1", "12", "2")
		}
	}
	if random.IntN(2) == 0 {
		q.headers["cookie"] = pick(random, "beta=on", "a=1; beta=on", "beta=off", "xbeta=on")
	}
	if random.IntN(2) == 0 {
		q.query["preview"] = pick(random, "1", "2")
	}
	return q
}

func anyMatch(random *rand.Rand) rollout.Match {
	value := func() rollout.StringMatch {
		return pick(random, rollout.StringMatch{Exact: "1"}, rollout.StringMatch{Prefix: "1"}, rollout.StringMatch{Regex: "1|2"})
	}
	named := func(name string, m rollout.StringMatch) []rollout.NamedMatch {
		return []rollout.NamedMatch{{Name: name, StringMatch: m}}
	}
	var m rollout.Match
	if random.IntN(2) == 0 {
		m.Headers = named(pick(random, "X-Staff", "x-team"), value())
	}
	if random.IntN(3) == 0 {
		m.Cookies = named("beta", pick(random, rollout.StringMatch{Exact: "on"}, rollout.StringMatch{Prefix: "o"}))
	}
	if random.IntN(3) == 0 {
		m.QueryParams = named("preview", value())
	}
	if random.IntN(3) == 0 {
		path := pick(random, rollout.StringMatch{Exact: "/a"}, rollout.StringMatch{Prefix: "/a"}, rollout.StringMatch{Prefix: "/a/"})
		m.Path = &path
	}
	if random.IntN(4) == 0 || m.Path == nil && len(m.Headers)+len(m.Cookies)+len(m.QueryParams) == 0 {
		m.Method = &rollout.StringMatch{Exact: pick(random, "GET", "POST")}
	}
	return m
}

// anyIstioRoutes returns random routes, some with matches, and the names of the routes that lead to the stable Service.
func anyIstioRoutes(random *rand.Rand) (routes []any, split []string) {
	for i := range 1 + random.IntN(4) {
		host := pick(random, "shop", "shop", "search")
		name := fmt.Sprintf("r%d", i)
		route := map[string]any{"name": name, "route": []any{map[string]any{"destination": map[string]any{"host": host}}}}
		var own []any
		for range random.IntN(3) {
			m := map[string]any{}
			if random.IntN(2) == 0 {
				m["uri"] = pick(random, map[string]any{"prefix": "/a"}, map[string]any{"exact": "/a"}, map[string]any{"prefix": "/"})
			}
			if random.IntN(3) == 0 {
				m["method"] = map[string]any{"exact": "GET"}
			}
			if random.IntN(3) == 0 {
				m["headers"] = map[string]any{"x-api": map[string]any{"exact": "1"}}
			}
			if len(m) > 0 {
				own = append(own, m)
			}
		}
		if len(own) > 0 {
			route["match"] = own
		}
		if routes = append(routes, route); host == "shop" {
			split = append(split, name)
		}
	}
	return routes, split
}

// TestIstioServesUsersAsTheStepsSay compares the destinations of random requests before and after the overlay. A request to the stable
// Service must go to the canary if a step matches it, or be split by weight if no step does. Other requests must keep their destination.
func TestIstioServesUsersAsTheStepsSay(t *testing.T) {
	toCanary, byWeight, elsewhere := 0, 0, 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 2))
		routes, split := anyIstioRoutes(random)
		if len(split) == 0 {
			continue
		}
		object := rollout.Object{
			"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
			"metadata": map[string]any{"name": "shop", "namespace": "shop"}, "spec": map[string]any{"http": routes},
		}
		route := traffic.Route{Name: "shop", Namespace: "shop", Stable: "shop", Canary: "shop-canary", Weight: 30, Max: 100, Active: true}
		for i := range 1 + random.IntN(2) {
			managed := rollout.ManagedRoute{Name: fmt.Sprintf("m%d", i)}
			for range 1 + random.IntN(2) {
				managed.Matches = append(managed.Matches, anyMatch(random))
			}
			route.Managed = append(route.Managed, managed)
		}
		named := rollout.Mapped(split, func(name string) any { return name })
		config := map[string]any{"virtualService": map[string]any{"name": "shop", "routes": named}}
		objects, err := lay(t, "istio", config, route, []rollout.Object{object})
		must(t, err)
		after := objects.List()[0]
		for range 60 {
			q := anyRequest(random)
			i, before := istioServed(object, q)
			want := before
			switch matched := slices.ContainsFunc(route.Managed, func(m rollout.ManagedRoute) bool {
				return slices.ContainsFunc(m.Matches, q.is)
			}); {
			case i < 0 || before != "shop 100":
				elsewhere++
			case matched:
				want = "shop-canary 100"
				toCanary++
			default:
				want = "shop 70, shop-canary 30"
				byWeight++
			}
			if _, got := istioServed(after, q); got != want {
				t.Fatalf("seed %d: %+v went to %s, and goes to %s, want %s\n%s\n%s", seed, q, before, got, want, dump(t, route.Managed), dump(t, after))
			}
		}
	}
	if toCanary < 1000 || byWeight < 1000 || elsewhere < 1000 {
		t.Errorf("%d requests to the canary, %d by weight, %d elsewhere", toCanary, byWeight, elsewhere)
	}
}

// TestGatewayLeavesOtherRulesTheirRequests checks a step that matches a path. The step must not take requests from another Service's rule
// for the path /search.
func TestGatewayLeavesOtherRulesTheirRequests(t *testing.T) {
	for step, want := range map[rollout.StringMatch]int{
		{Prefix: "/search"}: 0, {Exact: "/search"}: 0, {Prefix: "/search/x"}: 0, {Exact: "/search/x"}: 0,
		{Prefix: "/s"}: 1, {Exact: "/searching"}: 1, {Prefix: "/cart"}: 1, {Prefix: "/"}: 1,
	} {
		e := plainObjects(t)["gatewayAPI"]
		e.objects = objectsIn(t, manifest(routeKind, "rules: [{backendRefs: [{name: search, port: 80}], matches: "+
			"[{path: {type: PathPrefix, value: /search}}]}, {backendRefs: [{name: shop, port: 80}]}]"))
		e.route.Managed = []rollout.ManagedRoute{{Name: "staff", Matches: []rollout.Match{{Path: &step}}}}
		after := e.lay(t, e.objects, e.route)[0]
		if got := len(traffic.List(after.Map("spec")["rules"])) - 2; got != want {
			t.Errorf("%+v adds %d rules, want %d", step, got, want)
		}
	}
}
