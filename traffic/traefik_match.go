package traffic

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// traefikCopy returns the match and priority for a copy of route own[i] for the managed route k. The highest priority
// wins; the default is the match's length in bytes (Traefik's pkg/muxer/http/mux.go, GetRulePriority). The last copy
// has the original's priority plus 1, and earlier copies more. If another route has precedence over
// the original but not over the copy, the copy's match excludes the other route's requests.
//
//	Host(`shop`)                   own priority    12
//	(Host(`shop`)) && …            two copies  14, 13
//	Host(`shop`) && Path(`/api`)   another route   28: still first
func traefikCopy(own []any, i, k int, managed []rollout.ManagedRoute) (match string, priority int64) {
	route := mapping(own[i])
	first := traefikPriority(route)
	priority = first + int64(len(managed)-k)
	match = fmt.Sprintf("(%s) && %s", text(route["match"]), traefikRule(managed[k].Matches))
	for j, item := range own {
		if p := traefikPriority(mapping(item)); j != i && p > first && p <= priority {
			match += fmt.Sprintf(" && !(%s)", text(mapping(item)["match"]))
		}
	}
	return match, priority
}

func traefikPriority(route map[string]any) int64 {
	if p, ok := number(route["priority"]); ok && p != 0 {
		return p
	}
	return int64(len(text(route["match"])))
}

// traefikRule accepts requests of any match
// (https://doc.traefik.io/traefik/reference/routing-configuration/http/routing/rules-and-priority/).
func traefikRule(matches []rollout.Match) string {
	all := rollout.Mapped(matches, func(m rollout.Match) string {
		return "(" + strings.Join(traefikParts(m), " && ") + ")"
	})
	if len(all) == 1 {
		return all[0]
	}
	return "(" + strings.Join(all, " || ") + ")"
}

// traefikParts anchors patterns, because Traefik does not. PathPrefix compares text.
func traefikParts(m rollout.Match) (all []string) {
	add := func(matcher string, args ...string) {
		for i, arg := range args {
			args[i] = traefikText(arg)
		}
		all = append(all, fmt.Sprintf("%s(%s)", matcher, strings.Join(args, ", ")))
	}
	for _, h := range m.Headers {
		if h.Exact != "" {
			add("Header", h.Name, h.Exact)
		} else {
			add("HeaderRegexp", h.Name, whole(pattern(h.StringMatch)))
		}
	}
	for _, c := range m.Cookies {
		add("HeaderRegexp", "Cookie", whole(cookiePattern(c)))
	}
	for _, q := range m.QueryParams {
		if q.Exact != "" {
			add("Query", q.Name, q.Exact)
		} else {
			add("QueryRegexp", q.Name, whole(pattern(q.StringMatch)))
		}
	}
	if m.Method != nil {
		add("Method", m.Method.Exact)
	}
	if m.Source != nil {
		add("ClientIP", cmp.Or(m.Source.Exact, m.Source.Prefix))
	}
	switch p := m.Path; {
	case p == nil:
	case p.Exact != "":
		add("Path", p.Exact)
	case p.Regex != "":
		add("PathRegexp", whole(p.Regex))
	case strings.Trim(p.Prefix, "/") == "":
		add("PathPrefix", "/")
	default:
		path := strings.TrimSuffix(p.Prefix, "/")
		all = append(all, fmt.Sprintf("(Path(%s) || PathPrefix(%s))", traefikText(path), traefikText(path+"/")))
	}
	return all
}

// traefikText quotes for strconv.Unquote (github.com/vulcand/predicate).
func traefikText(s string) string {
	if strconv.CanBackquote(s) {
		return "`" + s + "`"
	}
	return strconv.Quote(s)
}
