package traffic

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// albConditions converts m, except the path, to conditions that must all hold
// (https://docs.aws.amazon.com/elasticloadbalancing/latest/application/rule-condition-types.html). Values can have the
// wildcards * and ?. The load balancer ignores case in headers and query parameters.
func albConditions(m rollout.Match) (all []any) {
	add := func(field, config string, values ...any) {
		all = append(all, map[string]any{"field": field, config: map[string]any{"values": values}})
	}
	header := func(name string, values ...any) {
		add("http-header", "httpHeaderConfig", values...)
		mapping(mapping(all[len(all)-1])["httpHeaderConfig"])["httpHeaderName"] = name
	}
	for _, h := range m.Headers {
		header(h.Name, albValue(h.StringMatch))
	}
	for _, c := range m.Cookies {
		// A check of a cookie's start and end would need four values, but a rule may have only two left (limits). So an
		// exact match checks only the end (beta=on matches xbeta=on), and a prefix match checks only the start.
		if c.Prefix != "" {
			header("Cookie", c.Name+"="+c.Prefix+"*", "*; "+c.Name+"="+c.Prefix+"*")
		} else {
			header("Cookie", "*"+c.Name+"="+c.Exact, "*"+c.Name+"="+c.Exact+";*")
		}
	}
	for _, q := range m.QueryParams {
		value := albValue(rollout.StringMatch{Exact: albEscape(q.Exact), Prefix: albEscape(q.Prefix)})
		add("query-string", "queryStringConfig", map[string]any{"key": albEscape(q.Name), "value": value})
	}
	if m.Method != nil {
		add("http-request-method", "httpRequestMethodConfig", m.Method.Exact)
	}
	if m.Source != nil {
		add("source-ip", "sourceIPConfig", albSource(*m.Source))
	}
	return all
}

func albValue(m rollout.StringMatch) string {
	if m.Prefix != "" {
		return m.Prefix + "*"
	}
	return m.Exact
}

// albEscape escapes a text for a query string, the only condition with escapes (ELBv2 QueryStringConditionConfig).
func albEscape(s string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`).Replace(s)
}

// albSource returns a network, because conditions refuse single addresses.
func albSource(m rollout.StringMatch) string {
	s := cmp.Or(m.Prefix, m.Exact)
	switch {
	case strings.Contains(s, "/"):
		return s
	case strings.Contains(s, ":"):
		return s + "/128"
	}
	return s + "/32"
}

func (c *albConfig) paths(
	object rollout.Object, r Route, m rollout.Match, name string, conditions []any, added map[[2]int][]any,
) error {
	refuse := func(p ingressPath, format string, args ...any) *rollout.InvalidError {
		return wrong(object.Ref(), p.place(), format+" (the steps' route "+name+")", args...)
	}
	for _, part := range parts(m) {
		if value := part.match.Exact + part.match.Prefix; part.feature != byQuery && strings.ContainsAny(value, "*?") {
			return misfit("",
				"the steps' route %s, %s: %q has the character * or ?, which an ALB always reads as a wildcard",
				name, part.field, value).WithFix("match a prefix that ends before this character")
		}
	}
	all := ingressPaths(object)
	for _, p := range all {
		if p.service() != c.action(r) {
			continue
		}
		found := []albPath{{p.kind(), p.text()}}
		if m.Path != nil {
			var plain bool
			if found, plain = albBoth(found[0], *m.Path); !plain {
				return refuse(p, "%q has wildcards, and cannot be combined with a step's path", p.text()).
					WithFix("give the path the pathType Prefix or Exact")
			}
			if slices.ContainsFunc(conditions, func(c any) bool { return text(mapping(c)["field"]) == "path-pattern" }) {
				return refuse(p, "has conditions on the path, so requests with "+
					"either this path or the step's path would match").WithFix("match another part of the request")
			}
			found = slices.DeleteFunc(found, func(f albPath) bool { return f.taken(p, all) })
		}
		for _, f := range found {
			if too := f.limits(p, conditions); too != "" {
				return refuse(p, "%s", too).WithFix("match fewer values in one step")
			}
			copied := copyMap(p.path)
			delete(copied, "pathType")
			for key, value := range map[string]string{"path": f.path, "pathType": f.kind} {
				if value != "" {
					copied[key] = value
				}
			}
			set(copied, map[string]any{"name": name, "port": map[string]any{"name": "use-annotation"}}, "backend", "service")
			at := [2]int{p.rule, p.index}
			added[at] = append(added[at], copied)
		}
	}
	return nil
}

// albPath is a path of the kind Exact, Prefix (by whole elements), or another kind, which can have wildcards.
type albPath struct{ kind, path string }

// albBoth returns paths for requests that match both an Ingress path and m. If the Ingress path has wildcards besides a
// final /*, albBoth returns false.
func albBoth(own albPath, m rollout.StringMatch) ([]albPath, bool) {
	switch own.kind {
	case "Exact":
		if own.path == m.Exact || m.Prefix != "" && below(own.path, m.Prefix) {
			return []albPath{own}, true
		}
		return nil, true
	case "Prefix":
		switch {
		case m.Exact != "" && below(m.Exact, own.path):
			return []albPath{{"Exact", m.Exact}}, true
		case m.Prefix != "" && below(m.Prefix, own.path):
			return []albPath{{"Prefix", m.Prefix}}, true
		case m.Prefix != "" && below(own.path, m.Prefix):
			return []albPath{own}, true
		}
		return nil, true
	}
	// The result has own's kind, because the controller sorts by kind.
	front, all := strings.CutSuffix(own.path, "/*")
	if strings.ContainsAny(front, "*?") {
		return nil, false
	}
	within := func(path string) bool { return all && strings.HasPrefix(path, front+"/") }
	prefix := strings.TrimSuffix(m.Prefix, "/")
	switch {
	case own.path == "" || m.Exact != "" && within(m.Exact) || m.Prefix != "" && within(m.Prefix) && prefix != front:
		if m.Exact != "" {
			return []albPath{{own.kind, m.Exact}}, true
		}
		if prefix == "" {
			return []albPath{own}, true
		}
		return []albPath{{own.kind, prefix}, {own.kind, prefix + "/*"}}, true
	case own.path == m.Exact || m.Prefix != "" && below(front, m.Prefix):
		return []albPath{own}, true
	}
	return nil, true
}

// taken reports whether another path of the Ingress would get the requests of f, a narrower copy of the original path
// (own).
func (f albPath) taken(own ingressPath, all []ingressPath) bool {
	for _, p := range all {
		if p.rule != own.rule || p.index == own.index {
			continue
		}
		switch {
		case p.kind() == "Exact" && f.kind == "Exact" && p.text() == f.path && own.kind() != "Exact":
			return true
		case p.kind() == "Prefix" && own.kind() == "Prefix" && len(p.text()) > len(own.text()) && below(f.path, p.text()):
			return true
		}
	}
	return false
}

// limits refuses a rule with more than 5 wildcards or more than 5 values. Host and path are values too
// (https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-limits.html).
func (f albPath) limits(p ingressPath, conditions []any) string {
	var values []string
	if p.host != "" {
		values = append(values, p.host)
	}
	switch {
	case f.kind == "Prefix" && f.path != "/":
		values = append(values, f.path, f.path+"/*")
	case f.kind == "Prefix":
		values = append(values, "/*")
	case f.path != "":
		values = append(values, f.path)
	}
	for _, c := range conditions {
		for key, config := range mapping(c) {
			if key == "field" {
				continue
			}
			for _, v := range list(mapping(config)["values"]) {
				values = append(values, text(v)+text(mapping(v)["key"])+text(mapping(v)["value"]))
			}
		}
	}
	wildcards := 0
	for _, v := range values {
		wildcards += strings.Count(v, "*") + strings.Count(v, "?") - strings.Count(v, `\*`) - strings.Count(v, `\?`)
	}
	switch {
	case len(values) > 5:
		return fmt.Sprintf("would be a rule with %d values (host, path and conditions), and a load balancer takes 5",
			len(values))
	case wildcards > 5:
		return fmt.Sprintf("would be a rule with %d wildcards, and a load balancer takes 5", wildcards)
	}
	return ""
}
