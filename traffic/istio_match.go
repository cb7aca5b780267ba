package traffic

import (
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

func (t istioTarget) matched(place string, route map[string]any, made map[string]int) (routes []any, err error) {
	managed := t.Managed
	if t.sticks() {
		marked := rollout.NamedMatch{Name: t.Sticky.Cookie, StringMatch: rollout.StringMatch{Exact: t.CanaryPods}}
		stays := rollout.Match{Cookies: []rollout.NamedMatch{marked}}
		route := rollout.ManagedRoute{Name: t.Name + "-sticky", Matches: []rollout.Match{stays}}
		managed = append([]rollout.ManagedRoute{route}, managed...)
	}
	for _, m := range managed {
		combined, err := combine(place+".match", list(route["match"]), m.Matches, t.both)
		if err != nil {
			return nil, err
		}
		if len(combined) == 0 {
			continue
		}
		out, err := t.managed(place, route, m)
		if err != nil {
			return nil, err
		}
		out["name"], out["match"] = numbered(m.Name, made[m.Name]), combined
		made[m.Name]++
		routes = append(routes, out)
	}
	return routes, nil
}

// managed copies a route for the canary. A copy for a mirror keeps the weights, and mirrors to the canary
// (HTTPRoute.mirror, mirrorPercentage.value in percent).
func (t istioTarget) managed(place string, route map[string]any, m rollout.ManagedRoute) (map[string]any, error) {
	out, canary := copyMap(route), t.destination(route, t.canary)
	if m.Mirror == nil {
		canary["weight"] = int64(t.Max)
		out["route"] = []any{canary}
		t.modify(canary)
		return out, nil
	}
	for _, field := range []string{"mirror", "mirrors"} {
		if route[field] != nil {
			return nil, wrong(t.ref, place+"."+field, "mirrors requests already, and the step's route %s "+
				"would mirror the same requests", m.Name).WithFix("remove one of the two")
		}
	}
	if err := t.weights("http", place, out); err != nil {
		return nil, err
	}
	out["mirror"] = canary["destination"]
	out["mirrorPercentage"] = map[string]any{"value": int64(*m.Mirror)}
	return out, nil
}

func (t istioTarget) both(place string, own map[string]any, m rollout.Match) (map[string]any, bool, error) {
	// own is an HTTPMatchRequest. If no request matches both own and m, the result is false.
	out := copyMap(own)
	for _, named := range []struct {
		field string
		lower bool // Istio requires lower-case header names
		list  []rollout.NamedMatch
	}{{"headers", true, m.Headers}, {"headers", true, cookieHeaders(m.Cookies)}, {"queryParams", false, m.QueryParams}} {
		for _, n := range named.list {
			if named.lower {
				n.Name = strings.ToLower(n.Name)
			}
			if compares(out, named.field, n.Name) {
				return nil, false, wrong(t.ref, place+"."+named.field,
					"would compare %s twice, which Istio does not allow", n.Name).WithFix("match only one")
			}
			match := istioText(n.StringMatch)
			if n.Prefix != "" && named.field == "queryParams" { // Istio's docs: "prefix is not supported"
				match = map[string]any{"regex": pattern(n.StringMatch)}
			}
			set(out, match, named.field, n.Name)
		}
	}
	for _, single := range []struct {
		field string
		match *rollout.StringMatch
	}{{"uri", m.Path}, {"method", m.Method}} {
		if single.match == nil {
			continue
		}
		match, ok, err := t.bothTexts(place+"."+single.field, mapping(own[single.field]), *single.match)
		if err != nil || !ok {
			return nil, false, err
		}
		out[single.field] = match
	}
	return out, true, nil
}

// istioText returns a StringMatch. A regex is RE2, and must match the whole text. A prefix may end within a path
// element.
func istioText(m rollout.StringMatch) map[string]any {
	switch comparisonOf(m) {
	case regex:
		return map[string]any{"regex": m.Regex}
	case prefix:
		return map[string]any{"prefix": m.Prefix}
	}
	return map[string]any{"exact": m.Exact}
}

func (t istioTarget) bothTexts(place string, own map[string]any, m rollout.StringMatch) (map[string]any, bool, error) {
	has := rollout.StringMatch{Exact: text(own["exact"]), Prefix: text(own["prefix"]), Regex: text(own["regex"])}
	switch {
	case has == (rollout.StringMatch{}):
		return istioText(m), true, nil
	case has.Exact != "":
		return own, matches(m, has.Exact), nil
	case m.Exact != "":
		return istioText(m), matches(has, m.Exact), nil
	case has == m:
		return own, true, nil
	case has.Regex != "" || m.Regex != "":
		return nil, false, wrong(t.ref, place,
			"%q cannot be combined with the step's match, because one or both are regular expressions", has.Prefix+has.Regex).
			WithFix("match it in a separate route")
	case strings.HasPrefix(m.Prefix, has.Prefix):
		return istioText(m), true, nil
	}
	return own, strings.HasPrefix(has.Prefix, m.Prefix), nil
}
