package traffic

import (
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// gatewayAPI is the Kubernetes Gateway API, which most ingress controllers and
// meshes serve. In each rule that has the stable Service, the weights are set;
// a canary backend that is not there is added for the release. Matched users
// get a rule of their own, a copy with the match added: the API says that a rule
// which matches more of a request wins, whatever the order
// (https://gateway-api.sigs.k8s.io/reference/spec/#httprouterule).
var gatewayAPI = router{
	kind: "gatewayAPI", title: "Gateway API", since: "v1.0",
	features: features{
		Weight: yes, AnyWeight: yes, Header: anyText, Cookie: anyText, Query: anyText, Path: anyText, Method: exact, Mirror: yes, Status: yes,
	},
	config: func() editor { return &gatewayConfig{} },
	verify: verifyParents,
}

const gatewayGroup = "gateway.networking.k8s.io"

// gatewayConfig has the fields of Argo Rollouts' Gateway API plugin.
type gatewayConfig struct {
	Namespace  string        `json:"namespace,omitempty"`
	HTTPRoute  string        `json:"httpRoute,omitempty"`
	GRPCRoute  string        `json:"grpcRoute,omitempty"`
	TCPRoute   string        `json:"tcpRoute,omitempty"`
	TLSRoute   string        `json:"tlsRoute,omitempty"`
	HTTPRoutes []gatewayName `json:"httpRoutes,omitempty"`
	GRPCRoutes []gatewayName `json:"grpcRoutes,omitempty"`
	TCPRoutes  []gatewayName `json:"tcpRoutes,omitempty"`
	TLSRoutes  []gatewayName `json:"tlsRoutes,omitempty"`

	// In Argo Rollouts, these tell other tools to keep their hands off. Here
	// there are none: the routes are applied with their weights.
	InProgressLabelKey     string `json:"inProgressLabelKey,omitempty"`
	InProgressLabelValue   string `json:"inProgressLabelValue,omitempty"`
	DisableInProgressLabel bool   `json:"disableInProgressLabel,omitempty"`
}

type gatewayName struct {
	Name            string `json:"name"`
	UseHeaderRoutes bool   `json:"useHeaderRoutes,omitempty"` // accepted: header routes go to every route that can have them
}

type gatewayRoute struct{ kind, field, name string }

func (c *gatewayConfig) all() []gatewayRoute {
	var all []gatewayRoute
	for _, k := range []struct {
		kind, field, name string
		names             []gatewayName
	}{
		{"HTTPRoute", "httpRoute", c.HTTPRoute, c.HTTPRoutes}, {"GRPCRoute", "grpcRoute", c.GRPCRoute, c.GRPCRoutes},
		{"TCPRoute", "tcpRoute", c.TCPRoute, c.TCPRoutes}, {"TLSRoute", "tlsRoute", c.TLSRoute, c.TLSRoutes},
	} {
		if k.name != "" {
			all = append(all, gatewayRoute{k.kind, k.field, k.name})
		}
		for i, n := range k.names {
			all = append(all, gatewayRoute{k.kind, fmt.Sprintf("%ss[%d].name", k.field, i), n.Name})
		}
	}
	return all
}

func (c *gatewayConfig) names(visit func(kind string, name *string)) {
	visit("HTTPRoute", &c.HTTPRoute)
	visit("GRPCRoute", &c.GRPCRoute)
	visit("TCPRoute", &c.TCPRoute)
	visit("TLSRoute", &c.TLSRoute)
	for kind, names := range map[string][]gatewayName{"HTTPRoute": c.HTTPRoutes, "GRPCRoute": c.GRPCRoutes, "TCPRoute": c.TCPRoutes, "TLSRoute": c.TLSRoutes} {
		for i := range names {
			visit(kind, &names[i].Name)
		}
	}
}

func (c *gatewayConfig) watched(namespace string) []rollout.Ref {
	var refs []rollout.Ref
	for _, r := range c.all() {
		refs = append(refs, rollout.Ref{Group: gatewayGroup, Kind: r.kind, Namespace: orElse(c.Namespace, namespace), Name: r.name})
	}
	return refs
}

func (c *gatewayConfig) overlay(o *Objects, r Route) error {
	all := c.all()
	if len(all) == 0 {
		return &Error{Msg: "names no route", Fix: "give httpRoute: NAME, or httpRoutes, grpcRoutes, tcpRoutes or tlsRoutes"}
	}
	for i, ref := range c.watched(r.Namespace) {
		object, ok := o.Edit(ref)
		if !ok {
			return missing(all[i].field, ref.Kind, ref.Namespace, ref.Name)
		}
		if err := gatewayRules(o, object, ref, r); err != nil {
			return err
		}
	}
	return nil
}

// gatewayRules sets the weights of a route and adds the rules of matched users.
func gatewayRules(o *Objects, object rollout.Object, ref rollout.Ref, r Route) error {
	var rules, added []any
	found := false
	for i, item := range list(object.Map("spec")["rules"]) {
		rule := mapping(item)
		place := fmt.Sprintf("spec.rules[%d]", i)
		if gatewayBackend(rule, r.Stable) < 0 {
			rules = append(rules, item)
			continue
		}
		found = true
		if err := o.Claim(ref, place, r); err != nil {
			return err
		}
		for _, managed := range r.Managed {
			extra, err := gatewayManaged(ref, place, rule, managed, r)
			if err != nil {
				return err
			}
			added = append(added, extra...)
		}
		if err := gatewayWeights(ref, place, rule, r); err != nil {
			return err
		}
		rules = append(rules, rule)
	}
	if !found {
		return &Error{About: ref, Field: "spec.rules", Msg: fmt.Sprintf("no rule has the stable Service %s as a backend", r.Stable), Fix: "add it to the backendRefs of each rule that is to be split"}
	}
	set(object, append(added, rules...), "spec", "rules")
	return nil
}

// gatewayBackend finds a Service of the route's own namespace among the
// backends of a rule, -1 if it is not there.
func gatewayBackend(rule map[string]any, service string) int {
	return slices.IndexFunc(list(rule["backendRefs"]), func(b any) bool {
		m := mapping(b)
		kind := text(m["kind"])
		return service != "" && text(m["name"]) == service && (kind == "" || kind == "Service") && text(m["group"]) == ""
	})
}

func gatewayWeights(ref rollout.Ref, place string, rule map[string]any, r Route) error {
	backends := list(rule["backendRefs"])
	stable, canary := gatewayBackend(rule, r.Stable), gatewayBackend(rule, r.Canary)
	for i, b := range backends {
		weight, given := number(mapping(b)["weight"])
		if i == stable || i == canary || given && weight == 0 {
			continue
		}
		return &Error{About: ref, Field: fmt.Sprintf("%s.backendRefs[%d]", place, i),
			Msg: fmt.Sprintf("is a third backend (%s), so that the weights of stable and canary would not add up to all requests", text(mapping(b)["name"])),
			Fix: "give it a rule of its own, or weight: 0"}
	}
	mapping(backends[stable])["weight"] = int64(r.Rest())
	switch {
	case canary >= 0:
		mapping(backends[canary])["weight"] = int64(r.Weight)
	case r.Weight > 0:
		backends = append(backends, gatewayCanary(rule, r, int64(r.Weight)))
	}
	rule["backendRefs"] = backends
	return nil
}

// gatewayCanary is the canary's backend: its own if the rule has it, else like
// stable's.
func gatewayCanary(rule map[string]any, r Route, weight int64) map[string]any {
	i := gatewayBackend(rule, r.Canary)
	if i < 0 {
		i = gatewayBackend(rule, r.Stable)
	}
	backend := copyMap(mapping(list(rule["backendRefs"])[i]))
	backend["name"], backend["weight"] = r.Canary, weight
	return backend
}

// gatewayManaged returns the rules for one managed route: a copy of the rule for
// each way in which a request can match both.
func gatewayManaged(ref rollout.Ref, place string, rule map[string]any, managed rollout.ManagedRoute, r Route) ([]any, error) {
	if ref.Kind != "HTTPRoute" && ref.Kind != "GRPCRoute" {
		return nil, &Error{About: ref, Msg: fmt.Sprintf("is a %s, which matches no requests, and the steps have the route %s", ref.Kind, managed.Name), Fix: "leave out the match"}
	}
	var combined []any
	own := list(rule["matches"])
	if len(own) == 0 {
		own = []any{map[string]any{}}
	}
	for i, o := range own {
		for _, m := range managed.Matches {
			both, ok, err := gatewayMatch(ref, fmt.Sprintf("%s.matches[%d]", place, i), mapping(o), m)
			if err != nil {
				return nil, err
			}
			if ok {
				combined = append(combined, both)
			}
		}
	}
	if len(combined) == 0 {
		return nil, nil
	}
	out := copyMap(rule)
	out["matches"] = combined
	delete(out, "name") // each rule's name is there once
	if managed.Mirror == nil {
		out["backendRefs"] = []any{gatewayCanary(rule, r, 1)}
		return []any{out}, nil
	}
	if ref.Kind != "HTTPRoute" && ref.Kind != "GRPCRoute" {
		return nil, nil
	}
	stable := copyMap(mapping(list(rule["backendRefs"])[gatewayBackend(rule, r.Stable)]))
	stable["weight"] = int64(1)
	out["backendRefs"] = []any{stable}
	to := gatewayCanary(rule, r, 1)
	delete(to, "weight")
	delete(to, "filters")
	mirror := map[string]any{"backendRef": to}
	if *managed.Mirror < 100 {
		mirror["percent"] = int64(*managed.Mirror)
	}
	out["filters"] = append(list(out["filters"]), map[string]any{"type": "RequestMirror", "requestMirror": mirror})
	return []any{out}, nil
}

// gatewayMatch returns what matches a rule's match and a managed route's; it is
// false if no request can match both.
func gatewayMatch(ref rollout.Ref, place string, own map[string]any, m rollout.Match) (map[string]any, bool, error) {
	both := copyMap(own)
	if ref.Kind == "GRPCRoute" && (m.Path != nil || m.Method != nil || len(m.QueryParams) > 0) {
		return nil, false, &Error{About: ref, Field: place, Msg: "is of a GRPCRoute, which can be matched by headers and cookies only", Fix: "match a header, or use an HTTPRoute"}
	}
	headers := list(both["headers"])
	for _, h := range m.Headers {
		headers = append(headers, gatewayNamed(h.Name, h.StringMatch))
	}
	for _, c := range m.Cookies {
		headers = append(headers, map[string]any{"name": "Cookie", "type": "RegularExpression", "value": whole(cookiePattern(c))})
	}
	if name := repeated(headers); name != "" {
		return nil, false, &Error{About: ref, Field: place + ".headers", Msg: fmt.Sprintf("would compare the header %s twice, which the Gateway API does not allow", name), Fix: "match one of them"}
	}
	if len(headers) > 0 {
		both["headers"] = headers
	}
	params := list(both["queryParams"])
	for _, q := range m.QueryParams {
		params = append(params, gatewayNamed(q.Name, q.StringMatch))
	}
	if len(params) > 0 {
		both["queryParams"] = params
	}
	if m.Method != nil {
		if own := text(both["method"]); own != "" && own != m.Method.Exact {
			return nil, false, nil
		}
		both["method"] = m.Method.Exact
	}
	if m.Path == nil {
		return both, true, nil
	}
	path, ok, err := gatewayPath(ref, place, mapping(both["path"]), *m.Path)
	both["path"] = path
	return both, ok, err
}

func gatewayNamed(name string, m rollout.StringMatch) map[string]any {
	if m.Exact != "" {
		return map[string]any{"name": name, "type": "Exact", "value": m.Exact}
	}
	return map[string]any{"name": name, "type": "RegularExpression", "value": whole(pattern(m))}
}

// repeated returns a header name that is there twice, in any case of letters.
func repeated(headers []any) string {
	seen := map[string]bool{}
	for _, h := range headers {
		name := strings.ToLower(text(mapping(h)["name"]))
		if seen[name] {
			return text(mapping(h)["name"])
		}
		seen[name] = true
	}
	return ""
}

// gatewayPath returns the paths that both a rule and a match have.
func gatewayPath(ref rollout.Ref, place string, own map[string]any, m rollout.StringMatch) (map[string]any, bool, error) {
	kind, value := text(own["type"]), text(own["value"])
	everything := len(own) == 0 || kind != "Exact" && kind != "RegularExpression" && (value == "" || value == "/")
	switch {
	case everything && m.Exact != "":
		return map[string]any{"type": "Exact", "value": m.Exact}, true, nil
	case everything && m.Prefix != "":
		return map[string]any{"type": "PathPrefix", "value": m.Prefix}, true, nil
	case everything:
		return map[string]any{"type": "RegularExpression", "value": whole(m.Regex)}, true, nil
	case kind == "Exact":
		return own, matches(m, value), nil
	case kind == "RegularExpression" || m.Regex != "":
		return nil, false, &Error{About: ref, Field: place + ".path", Msg: fmt.Sprintf("%q and the step's match are not both plain, and nothing can match the two together", value), Fix: "match the path in a rule of its own"}
	case m.Exact != "":
		return map[string]any{"type": "Exact", "value": m.Exact}, below(m.Exact, value), nil
	case below(m.Prefix, value):
		return map[string]any{"type": "PathPrefix", "value": m.Prefix}, true, nil
	default:
		return own, below(value, m.Prefix), nil
	}
}

// below reports whether a path is the prefix itself or under it, by whole
// elements, as PathPrefix compares.
func below(path, prefix string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// verifyParents reads the conditions that each Gateway's controller writes
// (RouteParentStatus). One that has not seen the newest spec is late; one that
// says Accepted or ResolvedRefs is False refuses it.
func verifyParents(route rollout.ObservedRoute) Verdict {
	verdict := Verdict{Taken: true}
	for _, p := range list(route.Status["parents"]) {
		for _, c := range list(mapping(p)["conditions"]) {
			condition := mapping(c)
			kind := text(condition["type"])
			if kind != "Accepted" && kind != "ResolvedRefs" {
				continue
			}
			seen, _ := number(condition["observedGeneration"])
			switch {
			case seen != 0 && seen < route.Generation:
				verdict = Verdict{Text: "is not yet accepted by " + orElse(text(mapping(p)["controllerName"]), "its controller")}
			case text(condition["status"]) == "False":
				return Verdict{Rejected: true, Text: fmt.Sprintf("is rejected by %s: %s is False, %s: %s",
					orElse(text(mapping(p)["controllerName"]), "its controller"), kind, text(condition["reason"]), text(condition["message"]))}
			}
		}
	}
	return verdict
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
