package traffic

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Unsupported returns why a router does not support a managed route, or "". The first result is the path of the match
// field, or "" for a mirror.
func Unsupported(kind string, route rollout.ManagedRoute) (field, why string) {
	r, ok := find(kind)
	if !ok {
		return "", ""
	}
	if route.Mirror != nil && r.features[mirrors] == 0 {
		return "", fmt.Sprintf("%s cannot copy requests; routers that can: %s", r.name(), able(mirrors, can))
	}
	for i, m := range route.Matches {
		if field, why := r.unsupported(m); why != "" {
			return fmt.Sprintf("[%d].%s", i, field), why
		}
	}
	return "", ""
}

// Lacks returns why a router does not support an optional setting, or "".
func Lacks(kind, setting string) string {
	f := feature(setting)
	if r, ok := find(kind); ok && r.features[f] == 0 {
		return fmt.Sprintf("%s %s: %s", r.name(), optional[f], able(f, can))
	}
	return ""
}

var optional = map[feature]string{
	anyTotal: "takes percentages; routers that take weights of any size",
	sticks:   "cannot keep users on the canary; routers that can",
	weighs:   "cannot send a share of the requests to an experiment; routers that can",
	modifies: "cannot change the headers of the canary's requests; routers that can",
}

func (r router) unsupported(m rollout.Match) (field, why string) {
	for _, part := range parts(m) {
		h := comparisonOf(part.match)
		if r.features[part.feature]&h != 0 {
			continue
		}
		by := ""
		if r.features[part.feature] != 0 {
			by = fmt.Sprintf(" by %s, only by %s", h, r.features[part.feature])
		}
		return part.field, fmt.Sprintf("%s cannot match a %s%s; routers that can match it by %s: %s",
			r.name(), part.feature, by, h, able(part.feature, h))
	}
	return "", ""
}

func able(f feature, h comparison) string {
	var kinds []string
	for _, r := range table {
		if r.features[f]&h != 0 {
			kinds = append(kinds, r.kind)
		}
	}
	return cmp.Or(strings.Join(kinds, ", "), "none")
}

type part struct {
	feature feature
	field   string
	name    string
	match   rollout.StringMatch
}

func parts(m rollout.Match) (all []part) {
	for _, named := range []struct {
		feature feature
		field   string
		list    []rollout.NamedMatch
	}{{byHeader, "headers", m.Headers}, {byCookie, "cookies", m.Cookies}, {byQuery, "queryParams", m.QueryParams}} {
		for i, n := range named.list {
			all = append(all, part{named.feature, fmt.Sprintf("%s[%d]", named.field, i), n.Name, n.StringMatch})
		}
	}
	for _, single := range []struct {
		feature feature
		field   string
		match   *rollout.StringMatch
	}{{byPath, "path", m.Path}, {byMethod, "method", m.Method}, {bySource, "source", m.Source}} {
		if single.match != nil {
			all = append(all, part{single.feature, single.field, single.field, *single.match})
		}
	}
	return all
}

func comparisonOf(m rollout.StringMatch) comparison {
	switch {
	case m.Regex != "":
		return regex
	case m.Prefix != "":
		return prefix
	}
	return exact
}

// pattern returns a pattern for RE2 and PCRE. The caller must anchor the pattern at both ends.
func pattern(m rollout.StringMatch) string {
	switch {
	case m.Regex != "":
		return m.Regex
	case m.Prefix != "":
		return regexp.QuoteMeta(m.Prefix) + ".*"
	}
	return regexp.QuoteMeta(m.Exact)
}

func cookiePattern(c rollout.NamedMatch) string {
	value := group(strings.ReplaceAll(pattern(c.StringMatch), ".*", "[^;]*"))
	return `(.*;\s*)?` + regexp.QuoteMeta(c.Name) + "=" + value + `(;.*)?`
}

func cookieHeaders(cookies []rollout.NamedMatch) []rollout.NamedMatch {
	return rollout.Mapped(cookies, func(c rollout.NamedMatch) rollout.NamedMatch {
		return rollout.NamedMatch{Name: "cookie", StringMatch: rollout.StringMatch{Regex: cookiePattern(c)}}
	})
}

func compares(match map[string]any, field, name string) bool {
	for key := range mapping(match[field]) {
		if key == name || strings.HasSuffix(field, "headers") && strings.EqualFold(key, name) {
			return true
		}
	}
	return false
}

func whole(p string) string { return "^" + group(p) + "$" }

func group(p string) string {
	if strings.Contains(p, "|") {
		return "(?:" + p + ")"
	}
	return p
}

func matches(m rollout.StringMatch, s string) bool {
	switch {
	case m.Regex != "":
		re, err := regexp.Compile("^(?:" + m.Regex + ")$")
		return err == nil && re.MatchString(s)
	case m.Prefix != "":
		return strings.HasPrefix(s, m.Prefix)
	}
	return m.Exact == s
}

func combine(
	place string, own []any, matches []rollout.Match,
	both func(place string, own map[string]any, m rollout.Match) (map[string]any, bool, error),
) (combined []any, err error) {
	if len(own) == 0 {
		own = []any{map[string]any{}} // an empty match matches all requests
	}
	for i, o := range own {
		for _, m := range matches {
			match, possible, err := both(fmt.Sprintf("%s[%d]", place, i), mapping(o), m)
			if err != nil {
				return nil, err
			}
			if possible {
				combined = append(combined, match)
			}
		}
	}
	return combined, nil
}

func numbered(name string, n int) string {
	if n == 0 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, n)
}

// Managed returns the managed routes that exist after the steps, by precedence.
func Managed(steps []rollout.Step, order []string) []rollout.ManagedRoute {
	var routes []rollout.ManagedRoute
	for _, step := range steps {
		if step.Route == nil {
			continue
		}
		routes = slices.DeleteFunc(routes, func(r rollout.ManagedRoute) bool { return r.Name == step.Route.Name })
		if len(step.Route.Matches) > 0 {
			routes = append(routes, *step.Route)
		}
	}
	rank := func(r rollout.ManagedRoute) int { return slices.Index(order, r.Name) } // -1: names not in order come first
	return slices.SortedStableFunc(slices.Values(routes), func(a, b rollout.ManagedRoute) int { return rank(a) - rank(b) })
}
