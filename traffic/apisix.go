package traffic

import (
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// apisix is the ingress controller of Apache APISIX. The backends of an
// ApisixRoute's rules get weights, shares of their sum (100 each where none is
// written). Matched users have an ApisixRoute of their own, made for the time of
// a release: a copy of the rules that asks for more (match.exprs), with a higher
// priority, which decides between rules of one path
// (https://apisix.apache.org/docs/ingress-controller/references/apisix_route_v2/).
// 1.5 is the oldest version that serves apisix.apache.org/v2.
var apisix = router{
	kind: "apisix", title: "Apache APISIX", since: "1.5",
	features: features{
		Weight: yes, AnyWeight: yes, Header: anyText, Cookie: anyText, Query: anyText, Path: anyText, Method: exact, Source: exact | prefix, Status: yes,
	},
	config: func() editor { return &apisixConfig{} },
	verify: verifyApisix,
}

const apisixGroup = "apisix.apache.org"

// apisixConfig has the field of Argo Rollouts' trafficRouting.apisix.
type apisixConfig struct {
	Route struct {
		Name  string   `json:"name"`
		Rules []string `json:"rules,omitempty"` // default: the rule named as the route, or else all that have the stable Service
	} `json:"route"`
}

func (c *apisixConfig) names(visit func(kind string, name *string)) {
	visit("ApisixRoute", &c.Route.Name)
}

func (c *apisixConfig) watched(namespace string) []rollout.Ref {
	return []rollout.Ref{{Group: apisixGroup, Kind: "ApisixRoute", Namespace: namespace, Name: c.Route.Name}}
}

func (c *apisixConfig) overlay(o *Objects, r Route) error {
	ref := c.watched(r.Namespace)[0]
	object, ok := o.Edit(ref)
	if !ok {
		return missing("route.name", "ApisixRoute", r.Namespace, c.Route.Name)
	}
	rules := list(object.Map("spec")["http"])
	chosen, err := c.chosen(ref, rules, r)
	if err != nil {
		return err
	}
	after := ref
	for i, managed := range r.Managed {
		made, err := apisixManaged(ref, object, chosen, managed, int64(len(r.Managed)-i), r)
		if err != nil {
			return err
		}
		if made == nil {
			continue
		}
		if err := o.Generate(made, after, r); err != nil {
			return err
		}
		after = made.Ref()
	}
	for _, i := range chosen {
		place := fmt.Sprintf("spec.http[%d]", i)
		if err := o.Claim(ref, place, r); err != nil {
			return err
		}
		if err := apisixWeights(ref, place, mapping(rules[i]), r); err != nil {
			return err
		}
	}
	return nil
}

// chosen are the indices of the rules to split.
func (c *apisixConfig) chosen(ref rollout.Ref, rules []any, r Route) ([]int, error) {
	named := func(name string) int {
		return slices.IndexFunc(rules, func(rule any) bool { return text(mapping(rule)["name"]) == name })
	}
	names := c.Route.Rules
	if len(names) == 0 && named(c.Route.Name) >= 0 {
		names = []string{c.Route.Name}
	}
	var chosen []int
	for _, name := range names {
		i := named(name)
		if i < 0 {
			return nil, wrong(ref, "spec.http", "%s", "has no rule "+name).fix("correct the Rollout's list of rules")
		}
		if apisixBackend(mapping(rules[i]), r.Stable) < 0 {
			return nil, wrong(ref, fmt.Sprintf("spec.http[%d].backends", i), "do not have the stable Service %s", r.Stable).
				fix("add it, or take the rule from the Rollout's list")
		}
		chosen = append(chosen, i)
	}
	if len(names) > 0 {
		return chosen, nil
	}
	for i, rule := range rules {
		if apisixBackend(mapping(rule), r.Stable) >= 0 {
			chosen = append(chosen, i)
		}
	}
	if len(chosen) == 0 {
		return nil, wrong(ref, "spec.http", "no rule has the stable Service %s as a backend", r.Stable).
			fix("add it to the backends of each rule that is to be split")
	}
	return chosen, nil
}

func apisixBackend(rule map[string]any, service string) int {
	return slices.IndexFunc(list(rule["backends"]), func(b any) bool { return service != "" && text(mapping(b)["serviceName"]) == service })
}

func apisixWeights(ref rollout.Ref, place string, rule map[string]any, r Route) error {
	backends := list(rule["backends"])
	stable, canary := apisixBackend(rule, r.Stable), apisixBackend(rule, r.Canary)
	for _, others := range []struct{ field, name string }{{"backends", "serviceName"}, {"upstreams", "name"}} {
		for i, b := range list(rule[others.field]) {
			weight, given := number(mapping(b)["weight"])
			if others.field == "backends" && (i == stable || i == canary) || given && weight == 0 {
				continue
			}
			return wrong(ref, fmt.Sprintf("%s.%s[%d]", place, others.field, i),
				"is a third backend (%s), so that the weights of stable and canary would not add up to all requests", text(mapping(b)[others.name])).
				fix("give it a rule of its own, or weight: 0")
		}
	}
	mapping(backends[stable])["weight"] = int64(r.Rest())
	switch {
	case canary >= 0:
		mapping(backends[canary])["weight"] = int64(r.Weight)
	case r.Weight > 0:
		backends = append(backends, apisixCanary(rule, r, int64(r.Weight)))
	}
	rule["backends"] = backends
	return nil
}

// apisixCanary is the canary's backend: its own if the rule has it, else like
// stable's.
func apisixCanary(rule map[string]any, r Route, weight int64) map[string]any {
	i := apisixBackend(rule, r.Canary)
	if i < 0 {
		i = apisixBackend(rule, r.Stable)
	}
	backend := copyMap(mapping(list(rule["backends"])[i]))
	backend["serviceName"], backend["weight"] = r.Canary, weight
	return backend
}

// verifyApisix reads the one condition that the controller writes: Accepted, and
// ResourcesAvailable before version 2. It tries again what it could not bring to
// APISIX; a wrong spec it refuses.
func verifyApisix(route rollout.ObservedRoute) Verdict {
	for _, c := range list(route.Status["conditions"]) {
		condition := mapping(c)
		kind := text(condition["type"])
		if kind != "Accepted" && kind != "ResourcesAvailable" {
			continue
		}
		seen, _ := number(condition["observedGeneration"])
		reason, message := text(condition["reason"]), text(condition["message"])
		switch {
		case seen != 0 && seen < route.Generation:
			return Verdict{Text: "is not yet seen by the APISIX ingress controller"}
		case text(condition["status"]) != "False":
		case reason == "InvalidSpec":
			return Verdict{Rejected: true, Text: fmt.Sprintf("is rejected by the APISIX ingress controller: %s: %s", reason, message)}
		default:
			return Verdict{Text: fmt.Sprintf("has not reached APISIX: %s: %s", reason, message)}
		}
	}
	return Verdict{Taken: true}
}
