package traffic

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// apisixManaged returns nil if no request can match.
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
			if made > 0 { // unique names
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
	for _, field := range []string{"stream", "tcp"} { // only one object may use a port
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
		// Version 2's CRD requires a path's name, without effect; version 1 rejects "".
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
				"could not have the step's %s, which Apache APISIX does not know", m.Method.Exact).
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

// apisixExpr anchors patterns, because RegexMatch searches.
func apisixExpr(subject map[string]any, m rollout.StringMatch) map[string]any {
	if m.Exact != "" {
		return map[string]any{"subject": subject, "op": "Equal", "value": m.Exact}
	}
	return map[string]any{"subject": subject, "op": "RegexMatch", "value": whole(pattern(m))}
}

// apisixSources intersects addresses with a network. Empty means all.
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
