package traffic

import (
	"regexp"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

func gatewayManaged(
	ref rollout.Ref, place string, object rollout.Object, rule map[string]any, managed rollout.ManagedRoute, r Route,
) ([]any, error) {
	match := func(place string, own map[string]any, m rollout.Match) (map[string]any, bool, error) {
		both, ok, err := gatewayMatch(ref, place, own, m)
		return both, ok && !gatewayTaken(object, own, both, r), err
	}
	combined, err := combine(place+".matches", list(rule["matches"]), managed.Matches, match)
	if err != nil || len(combined) == 0 {
		return nil, err
	}
	out, backends := copyMap(rule), gatewayShares(rule, r)
	out["matches"] = combined
	delete(out, "name") // names must be unique
	if managed.Mirror == nil {
		out["backendRefs"] = []any{backends.forCanary(r, 1)}
		return []any{out}, nil
	}
	out["backendRefs"] = gatewayShares(out, r).weights(r)
	to := backends.forCanary(r, 1)
	delete(to, "weight")
	delete(to, "filters")
	mirror := map[string]any{"backendRef": to}
	if *managed.Mirror < 100 {
		mirror["percent"] = int64(*managed.Mirror)
	}
	filter := map[string]any{"type": "RequestMirror", "requestMirror": mirror}
	out["filters"] = append(list(out["filters"]), filter)
	return []any{out}, nil
}

func gatewayTaken(object rollout.Object, own, both map[string]any, r Route) bool {
	path, mine := text(mapping(both["path"])["value"]), text(mapping(own["path"])["value"])
	for _, rule := range object.Maps("spec", "rules") {
		for _, match := range rollout.Object(rule).Maps("matches") {
			other := mapping(match["path"])
			kind, value := text(other["type"]), text(other["value"])
			if len(match) != 1 || len(value) <= len(mine) || gatewayShares(rule, r).stable >= 0 {
				continue
			}
			if path == value || kind != "Exact" && kind != "RegularExpression" && below(path, value) {
				return true
			}
		}
	}
	return false
}

func gatewayMatch(ref rollout.Ref, place string, own map[string]any, m rollout.Match) (map[string]any, bool, error) {
	both := copyMap(own)
	if ref.Kind == "GRPCRoute" && (m.Path != nil || m.Method != nil || len(m.QueryParams) > 0) {
		return nil, false, wrong(ref, place, "belongs to a GRPCRoute, which can only match headers and cookies").
			WithFix("match a header, or use an HTTPRoute")
	}
	if headers, err := gatewayHeaders(ref, place+".headers", list(both["headers"]), m); err != nil {
		return nil, false, err
	} else if len(headers) > 0 {
		both["headers"] = headers
	}
	if params, err := gatewayParams(ref, place+".queryParams", list(both["queryParams"]), m); err != nil {
		return nil, false, err
	} else if len(params) > 0 {
		both["queryParams"] = params
	}
	if m.Method != nil {
		if !slices.Contains(methods, m.Method.Exact) {
			return nil, false, wrong(ref, place+".method",
				"cannot be the step's method %s, which the Gateway API does not support", m.Method.Exact).
				WithFix("use one of %s", strings.Join(methods, ", "))
		}
		if own := text(both["method"]); own != "" && own != m.Method.Exact {
			return nil, false, nil
		}
		both["method"] = m.Method.Exact
	}
	if m.Path == nil {
		return both, true, nil
	}
	path, ok, err := gatewayPath(ref, place, mapping(both["path"]), *m.Path)
	if value := text(path["value"]); len(value) > 1024 {
		return nil, false, wrong(ref, place+".path",
			"cannot be %q: the Gateway API allows up to 1024 characters", rollout.Cut(value, 61)).
			WithFix("match a shorter path")
	}
	both["path"] = path
	return both, ok, err
}

func gatewayHeaders(ref rollout.Ref, place string, headers []any, m rollout.Match) ([]any, error) {
	header := func(h rollout.NamedMatch) any { return gatewayNamed(h.Name, h.StringMatch) }
	headers = append(headers, rollout.Mapped(m.Headers, header)...)
	for _, c := range m.Cookies {
		headers = append(headers, gatewayNamed("Cookie", rollout.StringMatch{Regex: cookiePattern(c)}))
	}
	for _, h := range headers {
		if value := text(mapping(h)["value"]); len(value) > 4096 || !gatewayValue.MatchString(value) {
			return nil, wrong(ref, place, "cannot have the header %s with %q: "+
				"the Gateway API allows up to 4096 characters of ASCII, with single spaces",
				text(mapping(h)["name"]), rollout.Cut(value, 61)).WithFix("match a pattern for it, or something else")
		}
	}
	return gatewayOnce(ref, place, "header", headers, strings.ToLower)
}

func gatewayParams(ref rollout.Ref, place string, params []any, m rollout.Match) ([]any, error) {
	for _, q := range m.QueryParams {
		if !gatewayParam.MatchString(q.Name) {
			return nil, wrong(ref, place, "cannot have the step's parameter %q: "+
				"the Gateway API allows letters, digits and !#$%%&'*+-.^_`|~ in a name", q.Name).WithFix("match something else")
		}
		param := gatewayNamed(q.Name, q.StringMatch)
		if value := text(param["value"]); len(value) > 1024 {
			return nil, wrong(ref, place, "cannot have the parameter %s with %q: "+
				"the Gateway API allows up to 1024 characters", q.Name, rollout.Cut(value, 61)).
				WithFix("match a pattern for it, or something else")
		}
		params = append(params, param)
	}
	return gatewayOnce(ref, place, "parameter", params, strings.Clone)
}

// The CRDs allow only these characters: gatewayValue in header values, gatewayParam in names of query parameters.
var (
	gatewayValue = regexp.MustCompile(`^[!-~]+([\t ]?[!-~]+)*$`)
	gatewayParam = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+\\-.^_\x60|~]{1,256}$")
)

var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

func gatewayNamed(name string, m rollout.StringMatch) map[string]any {
	if m.Exact != "" {
		return map[string]any{"name": name, "type": "Exact", "value": m.Exact}
	}
	return map[string]any{"name": name, "type": "RegularExpression", "value": whole(pattern(m))}
}

func gatewayOnce(ref rollout.Ref, place, what string, all []any, form func(string) string) ([]any, error) {
	seen := map[string]bool{}
	for _, m := range all {
		name := text(mapping(m)["name"])
		if name != "" && seen[form(name)] {
			return nil, wrong(ref, place, "would compare the %s %s twice, which the Gateway API does not allow", what, name).
				WithFix("match only one")
		}
		seen[form(name)] = true
	}
	return all, nil
}

func gatewayPath(
	ref rollout.Ref, place string, own map[string]any, m rollout.StringMatch,
) (path map[string]any, possible bool, err error) {
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
		return own, m.Prefix == "" && matches(m, value) || m.Prefix != "" && below(value, m.Prefix), nil
	case kind == "RegularExpression" || m.Regex != "":
		return nil, false, wrong(ref, place+".path",
			"%q cannot be combined with the step's match, because one or both are regular expressions", value).
			WithFix("match the path in a separate rule")
	case m.Exact != "":
		return map[string]any{"type": "Exact", "value": m.Exact}, below(m.Exact, value), nil
	case below(m.Prefix, value):
		return map[string]any{"type": "PathPrefix", "value": m.Prefix}, true, nil
	}
	return own, below(value, m.Prefix), nil
}

// below compares whole elements, like PathPrefix: /ab is not below /a.
func below(path, prefix string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

func gatewayLimits(ref rollout.Ref, rules []any, r Route) error {
	if len(r.Managed) == 0 {
		return nil
	}
	refuse := func(n int, what string, limit int) error {
		return wrong(ref, "spec.rules",
			"would have %d %s with the steps' routes, and the Gateway API allows %d", n, what, limit).
			WithFix("use fewer matches in the steps, or move rules to another HTTPRoute")
	}
	if len(rules) > 16 {
		return refuse(len(rules), "rules", 16)
	}
	total := 0
	for _, item := range rules {
		matches := list(mapping(item)["matches"])
		total += len(matches)
		if len(matches) > 64 {
			return refuse(len(matches), "matches in one rule", 64)
		}
		for _, m := range matches {
			for _, field := range []string{"headers", "queryParams"} {
				if n := len(list(mapping(m)[field])); n > 16 {
					return refuse(n, field+" in one match", 16)
				}
			}
		}
	}
	if total > 128 {
		return refuse(total, "matches", 128)
	}
	return nil
}
