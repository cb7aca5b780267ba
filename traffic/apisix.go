package traffic

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// apisix is the ingress controller of Apache APISIX. A backend's weight (default 100) is a share of the sum. A release
// generates ApisixRoutes for matched requests, with copies of the rules. A copy has more conditions and a higher
// priority. The priority decides between rules with the same path
// (https://apisix.apache.org/docs/ingress-controller/references/apisix_route_v2/). The API version v2 needs controller
// 1.5.
var apisix = router{
	kind: "apisix", title: "Apache APISIX", since: "1.5",
	features: features{
		splits: can, anyTotal: can, reports: can,
		byHeader: anyText, byCookie: anyText, byQuery: anyText, byPath: anyText,
		byMethod: exact, bySource: exact | prefix,
	},
	config: func() editor { return &apisixConfig{} },
}

const apisixGroup = "apisix.apache.org"

type apisixConfig struct {
	Route struct {
		Name string `json:"name" object:"ApisixRoute"`

		// Rules are the names of the rules to split. The default is the rule with the ApisixRoute's name or, if no rule
		// has this name, all rules with the stable Service.
		Rules []string `json:"rules,omitempty"`
	} `json:"route"`
}

func (c *apisixConfig) watched(namespace string) []rollout.Ref {
	return []rollout.Ref{{Group: apisixGroup, Kind: "ApisixRoute", Namespace: namespace, Name: c.Route.Name}}
}

func (c *apisixConfig) overlay(o *Objects, r Route) error {
	ref := c.watched(r.Namespace)[0]
	object, ok := o.Edit(ref)
	if !ok {
		return missing("route.name", ref)
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
		if err := o.generate(made, o.after(after), r); err != nil {
			return err
		}
		after = made.Ref()
	}
	for _, i := range chosen {
		place := fmt.Sprintf("spec.http[%d]", i)
		if err := o.Claim(ref, place, r); err != nil {
			return err
		}
		rule := mapping(rules[i])
		backends, err := apisixShares(rule, r).weighed(ref, place+".backends", "backend", "a rule", r)
		if err != nil {
			return err
		}
		upstreams := shares{entries: list(rule["upstreams"]), name: "name", stable: -1, canary: -1}
		if err := upstreams.alone(ref, place+".upstreams", "backend", "a rule"); err != nil {
			return err
		}
		rule["backends"] = backends
	}
	return nil
}

func (c *apisixConfig) chosen(ref rollout.Ref, rules []any, r Route) (chosen []int, err error) {
	named := func(name string) int {
		return slices.IndexFunc(rules, func(rule any) bool { return text(mapping(rule)["name"]) == name })
	}
	names := c.Route.Rules
	if len(names) == 0 && named(c.Route.Name) >= 0 {
		names = []string{c.Route.Name}
	}
	for _, name := range names {
		i := named(name)
		if i < 0 {
			return nil, wrong(ref, "spec.http", "%s", "has no rule "+name).WithFix("correct the Rollout's list of rules")
		}
		if apisixShares(mapping(rules[i]), r).stable < 0 {
			return nil, wrong(ref, fmt.Sprintf("spec.http[%d].backends", i), "do not have the stable Service %s", r.Stable).
				WithFix("add it, or remove the rule from the Rollout's list")
		}
		chosen = append(chosen, i)
	}
	if len(names) > 0 {
		return chosen, nil
	}
	for i, rule := range rules {
		if apisixShares(mapping(rule), r).stable >= 0 {
			chosen = append(chosen, i)
		}
	}
	if len(chosen) == 0 {
		return nil, wrong(ref, "spec.http", "no rule has the stable Service %s as a backend", r.Stable).
			WithFix("add it to the backends of each rule that is to be split")
	}
	return chosen, nil
}

func apisixShares(rule map[string]any, r Route) shares {
	return sharesOf(list(rule["backends"]), "serviceName", r, nil)
}

// verify reads the condition Accepted (ResourcesAvailable before version 2). Only an invalid spec is a rejection,
// because the controller retries after other errors.
func (*apisixConfig) verify(_ rollout.Ref, route rollout.ObservedRoute) Verdict {
	for _, condition := range rollout.Object(route.Status).Maps("conditions") {
		if kind := text(condition["type"]); kind != "Accepted" && kind != "ResourcesAvailable" {
			continue
		}
		reason, message := text(condition["reason"]), text(condition["message"])
		switch {
		case isOlder(condition, route):
			return Verdict{Text: "is not yet seen by the APISIX ingress controller"}
		case text(condition["status"]) != "False":
		case reason == "InvalidSpec":
			text := fmt.Sprintf("is rejected by the APISIX ingress controller: %s: %s", reason, message)
			return Verdict{Rejected: true, Text: text}
		default:
			return Verdict{Text: fmt.Sprintf("has not reached APISIX: %s: %s", reason, message)}
		}
	}
	return Verdict{Taken: true}
}

func apisixManaged(
	ref rollout.Ref, object rollout.Object, chosen []int, managed rollout.ManagedRoute, priority int64, r Route,
) (rollout.Object, error) {
	var rules []any
	for _, i := range chosen {
		rule, made := mapping(list(object.Map("spec")["http"])[i]), 0
		for _, m := range managed.Matches {
			match, ok, err := apisixMatch(ref, fmt.Sprintf("spec.http[%d].match", i), mapping(rule["match"]), m)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			own, _ := number(rule["priority"])
			out := copyMap(rule)
			out["match"], out["priority"] = match, own+priority
			out["backends"] = []any{apisixShares(rule, r).forCanary(r, r.Max)}
			if made > 0 { // names must be unique
				out["name"] = fmt.Sprintf("%s-%d", text(rule["name"]), made)
			}
			made++
			rules = append(rules, out)
		}
	}
	if len(rules) == 0 {
		return nil, nil
	}
	out := object.Copy()
	for _, field := range []string{"stream", "tcp"} { // only one object can use a port
		delete(out.Map("spec"), field)
	}
	delete(out, "status")
	set(out, suffixed(r.Name, managed.Name), "metadata", "name")
	set(out, rules, "spec", "http")
	return out, nil
}

var apisixScopes = map[feature]string{byHeader: "Header", byCookie: "Cookie", byQuery: "Query", byPath: "Path"}

func apisixMatch(ref rollout.Ref, place string, own map[string]any, m rollout.Match) (map[string]any, bool, error) {
	both := copyMap(own)
	exprs := list(both["exprs"])
	for _, p := range parts(m) {
		// The scope Path also gets a name: version 2 of the CRD requires it, and version 1 permits it.
		if scope := apisixScopes[p.feature]; scope != "" {
			exprs = append(exprs, apisixExpr(map[string]any{"scope": scope, "name": p.name}, p.match))
		}
	}
	if len(exprs) > 0 {
		both["exprs"] = exprs
	}
	if m.Method != nil {
		if !slices.Contains(methods, m.Method.Exact) {
			return nil, false, wrong(ref, place+".methods",
				"cannot have the step's method %s, which Apache APISIX does not know", m.Method.Exact).
				WithFix("%s", "use one of "+strings.Join(methods, ", "))
		}
		if has := list(own["methods"]); len(has) > 0 && !slices.Contains(has, any(m.Method.Exact)) {
			return nil, false, nil
		}
		both["methods"] = []any{m.Method.Exact}
	}
	if m.Source == nil {
		return both, true, nil
	}
	sources, err := apisixSources(list(own["remoteAddrs"]), m.Source.Exact+m.Source.Prefix)
	if err != nil {
		return nil, false, wrong(ref, place+".remoteAddrs", "%s", err.Error()).
			WithFix("give addresses such as 10.1.2.3 or 10.1.0.0/16")
	}
	both["remoteAddrs"] = sources
	return both, len(sources) > 0, nil
}

// apisixExpr anchors patterns at both ends, because RegexMatch also matches parts of a text.
func apisixExpr(subject map[string]any, m rollout.StringMatch) map[string]any {
	if m.Exact != "" {
		return map[string]any{"subject": subject, "op": "Equal", "value": m.Exact}
	}
	return map[string]any{"subject": subject, "op": "RegexMatch", "value": whole(pattern(m))}
}

// apisixSources intersects a rule's own addresses with a network. A rule without addresses allows all.
func apisixSources(own []any, network string) (both []any, err error) {
	want, err := apisixNetwork(network)
	if err != nil {
		return nil, err
	}
	if len(own) == 0 {
		return []any{network}, nil
	}
	for _, o := range own {
		has, err := apisixNetwork(text(o))
		switch {
		case err != nil:
			return nil, err
		case !has.Overlaps(want):
		case has.Bits() >= want.Bits():
			both = append(both, o)
		default:
			both = append(both, network)
		}
	}
	return both, nil
}

func apisixNetwork(s string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	network, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a network", s)
	}
	return network, nil
}
