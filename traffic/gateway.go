package traffic

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// gatewayAPI is the Kubernetes Gateway API of most ingress controllers and meshes. The overlay sets the weights in each
// rule that has the stable Service, and adds a canary backend for a release. For matched requests, it adds a copy of
// the rule. The copy wins, because a further match makes the copy more specific
// (https://gateway-api.sigs.k8s.io/reference/spec/#httprouterule).
var gatewayAPI = router{
	kind: "gatewayAPI", title: "Gateway API", since: "v1.0",
	features: features{
		splits: can, anyTotal: can, mirrors: can, reports: can, modifies: can, weighs: can,
		byHeader: anyText, byCookie: anyText, byQuery: anyText, byPath: anyText, byMethod: exact,
	},
	config: func() editor { return &gatewayConfig{} },
}

const gatewayGroup = "gateway.networking.k8s.io"

// gatewayConfig follows Argo Rollouts' Gateway API plugin.
type gatewayConfig struct {
	Namespace  string        `json:"namespace,omitempty"`
	HTTPRoute  string        `json:"httpRoute,omitempty" object:"HTTPRoute"`
	GRPCRoute  string        `json:"grpcRoute,omitempty" object:"GRPCRoute"`
	TCPRoute   string        `json:"tcpRoute,omitempty" object:"TCPRoute"`
	TLSRoute   string        `json:"tlsRoute,omitempty" object:"TLSRoute"`
	HTTPRoutes []gatewayName `json:"httpRoutes,omitempty" object:"HTTPRoute"`
	GRPCRoutes []gatewayName `json:"grpcRoutes,omitempty" object:"GRPCRoute"`
	TCPRoutes  []gatewayName `json:"tcpRoutes,omitempty" object:"TCPRoute"`
	TLSRoutes  []gatewayName `json:"tlsRoutes,omitempty" object:"TLSRoute"`

	// In Argo Rollouts, these labels keep other tools from changing weights. Here, they have no effect.
	InProgressLabelKey     string `json:"inProgressLabelKey,omitempty"`
	InProgressLabelValue   string `json:"inProgressLabelValue,omitempty"`
	DisableInProgressLabel bool   `json:"disableInProgressLabel,omitempty"`
}

type gatewayName struct {
	Name string `json:"name"`

	// UseHeaderRoutes has no effect, because routes that can match headers always get rules for matched requests.
	UseHeaderRoutes bool `json:"useHeaderRoutes,omitempty"`
}

type gatewayRoute struct{ kind, field, name string }

func (c *gatewayConfig) routes() (all []gatewayRoute) {
	for _, f := range []struct {
		kind, field, name string
		names             []gatewayName
	}{
		{"HTTPRoute", "httpRoute", c.HTTPRoute, c.HTTPRoutes}, {"GRPCRoute", "grpcRoute", c.GRPCRoute, c.GRPCRoutes},
		{"TCPRoute", "tcpRoute", c.TCPRoute, c.TCPRoutes}, {"TLSRoute", "tlsRoute", c.TLSRoute, c.TLSRoutes},
	} {
		if f.name != "" {
			all = append(all, gatewayRoute{f.kind, f.field, f.name})
		}
		for i, named := range f.names {
			all = append(all, gatewayRoute{f.kind, fmt.Sprintf("%ss[%d].name", f.field, i), named.Name})
		}
	}
	return all
}

func (c *gatewayConfig) watched(namespace string) []rollout.Ref {
	return rollout.Mapped(c.routes(), func(r gatewayRoute) rollout.Ref {
		return rollout.Ref{Group: gatewayGroup, Kind: r.kind, Namespace: cmp.Or(c.Namespace, namespace), Name: r.name}
	})
}

func (c *gatewayConfig) overlay(o *Objects, r Route) error {
	routes := c.routes()
	if len(routes) == 0 {
		return misfit("", "names no route").WithFix("give httpRoute: NAME, or httpRoutes, grpcRoutes, tcpRoutes or tlsRoutes")
	}
	for i, ref := range c.watched(r.Namespace) {
		object, ok := o.Edit(ref)
		if !ok {
			return missing(routes[i].field, ref)
		}
		if err := gatewayRules(o, object, ref, r); err != nil {
			return err
		}
	}
	return nil
}

func gatewayRules(o *Objects, object rollout.Object, ref rollout.Ref, r Route) error {
	var added []any
	if ref.Kind != "HTTPRoute" && ref.Kind != "GRPCRoute" && (len(r.Managed) > 0 || r.Headers != nil) {
		return wrong(ref, "", "is a %s, which cannot match requests or change headers, and a step asks for this", ref.Kind).
			WithFix("leave out match, setHeaderRoute, setMirrorRoute and requestHeaderModifier")
	}
	found, rules := false, list(object.Map("spec")["rules"])
	for i, item := range rules {
		rule := mapping(item)
		place := fmt.Sprintf("spec.rules[%d]", i)
		backends := gatewayShares(rule, r)
		if backends.stable < 0 {
			continue
		}
		found = true
		if err := o.Claim(ref, place, r); err != nil {
			return err
		}
		for _, managed := range r.Managed {
			extra, err := gatewayManaged(ref, place, object, rule, managed, r)
			if err != nil {
				return err
			}
			added = append(added, extra...)
		}
		weighed, err := backends.weighed(ref, place+".backendRefs", "backend", "a rule", r)
		if err != nil {
			return err
		}
		rule["backendRefs"] = weighed
	}
	if !found {
		return wrong(ref, "spec.rules", "no rule has the stable Service %s as a backend", r.Stable).
			WithFix("add it to the backendRefs of each rule that is to be split")
	}
	rules = append(added, rules...)
	set(object, rules, "spec", "rules")
	return gatewayLimits(ref, rules, r)
}

func gatewayShares(rule map[string]any, r Route) shares {
	backends := sharesOf(list(rule["backendRefs"]), "name", r, func(b map[string]any) bool {
		kind, group, namespace := text(b["kind"]), text(b["group"]), text(b["namespace"])
		isService := (kind == "" || kind == "Service") && (group == "" || group == "core")
		return isService && (namespace == "" || namespace == r.Namespace)
	})
	backends.headers = r.Headers
	return backends
}

// gatewayFilters adds a step's headers to a backend's filters. Only one RequestHeaderModifier is allowed, so the new
// filter has both the step's headers and the backend's other headers.
func gatewayFilters(filters []any, step *rollout.HeaderModifier) []any {
	encoded, _ := rollout.Plain(step) // cannot fail
	headers := mapping(encoded)
	filters = slices.DeleteFunc(filters, func(filter any) bool {
		own, is := mapping(filter)["requestHeaderModifier"]
		for field, all := range mapping(own) {
			isChanged := func(header any) bool { return changes(step, text(header)+text(mapping(header)["name"])) }
			if kept := slices.DeleteFunc(list(all), isChanged); len(kept) > 0 {
				headers[field] = append(kept, list(headers[field])...)
			}
		}
		return is
	})
	return append(filters, map[string]any{"type": "RequestHeaderModifier", "requestHeaderModifier": headers})
}

// verify reads the conditions of each parent (RouteParentStatus). If Accepted or ResolvedRefs is False, the route is
// rejected. If a condition is outdated, the route is not in force yet.
func (*gatewayConfig) verify(_ rollout.Ref, route rollout.ObservedRoute) Verdict {
	verdict := Verdict{Taken: true}
	for _, parent := range rollout.Object(route.Status).Maps("parents") {
		who := cmp.Or(text(parent["controllerName"]), "its controller")
		for _, condition := range rollout.Object(parent).Maps("conditions") {
			kind := text(condition["type"])
			if kind != "Accepted" && kind != "ResolvedRefs" {
				continue
			}
			switch {
			case isOlder(condition, route):
				verdict = Verdict{Text: "is not yet accepted by " + who}
			case text(condition["status"]) == "False":
				// Traefik writes a reason without a message.
				why := strings.TrimSuffix(text(condition["reason"])+": "+text(condition["message"]), ": ")
				return Verdict{Rejected: true, Text: fmt.Sprintf("is rejected by %s: %s is False, %s", who, kind, why)}
			}
		}
	}
	return verdict
}
