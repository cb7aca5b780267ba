package render

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

type routeReader struct {
	*rollout.Reader
	traffic *rollout.Traffic // nil without a router
}

func (r routeReader) read(at string, form *stepForm) (route *rollout.ManagedRoute) {
	switch {
	case form.HeaderRoute != nil:
		route = &rollout.ManagedRoute{Name: form.HeaderRoute.Name}
		for i, m := range form.HeaderRoute.Match {
			r.checkText(fmt.Sprintf("%s.setHeaderRoute.match[%d].headerValue", at, i), m.HeaderValue)
			header := rollout.NamedMatch{Name: m.HeaderName, StringMatch: *m.HeaderValue}
			route.Matches = append(route.Matches, rollout.Match{Headers: []rollout.NamedMatch{header}})
		}
		r.checkManaged(at+".setHeaderRoute.name", route.Name)
	case form.MirrorRoute != nil:
		route = r.mirror(at+".setMirrorRoute", form.MirrorRoute)
	case form.Match != nil:
		route = &rollout.ManagedRoute{Name: rollout.MatchRoute, Matches: append([]rollout.Match(nil), form.Match...)}
		for i, m := range form.Match {
			r.checkMatch(fmt.Sprintf("%s.match[%d]", at, i), m)
		}
	default:
		return nil
	}
	if r.traffic == nil {
		r.Fail(at, "add trafficRouting with a router", "matches requests, and there is no trafficRouting")
	}
	return route
}

func (r routeReader) mirror(at string, form *mirrorRoute) *rollout.ManagedRoute {
	route := &rollout.ManagedRoute{Name: form.Name, Mirror: form.Percentage}
	for i, m := range form.Match {
		field := fmt.Sprintf("%s.match[%d]", at, i)
		match := rollout.Match{Method: m.Method, Path: m.Path}
		for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
			match.Headers = append(match.Headers, rollout.NamedMatch{Name: name, StringMatch: m.Headers[name]})
			r.checkToken(field+".headers["+name+"]", "header", name)
			r.checkText(field+".headers["+name+"]", new(m.Headers[name]))
		}
		r.checkSingle(field, match)
		route.Matches = append(route.Matches, match)
	}
	r.checkManaged(at+".name", route.Name)
	return route
}

// checkManaged refuses a route that managedRoutes does not list, because the list's order sets the precedence.
func (r routeReader) checkManaged(at, name string) {
	if r.traffic != nil && !slices.Contains(r.traffic.ManagedRoutes, name) {
		r.Fail(at, "add it there: - name: "+name, "%q is not among trafficRouting.managedRoutes", name)
	}
}

func (r routeReader) checkMatch(at string, m rollout.Match) {
	for _, named := range []struct {
		field, what string
		all         []rollout.NamedMatch
	}{{"headers", "header", m.Headers}, {"cookies", "cookie", m.Cookies}, {"queryParams", "", m.QueryParams}} {
		for i, n := range named.all {
			field := fmt.Sprintf("%s.%s[%d]", at, named.field, i)
			if r.checkText(field, &n.StringMatch); named.what != "" {
				r.checkToken(field+".name", named.what, n.Name)
			}
		}
	}
	if len(m.Headers)+len(m.Cookies)+len(m.QueryParams) == 0 && m.Path == nil && m.Method == nil && m.Source == nil {
		r.Fail(at, "name headers, cookies, queryParams, path, method or source", "matches every request")
	}
	r.checkSingle(at, m)
}

func (r routeReader) checkSingle(at string, m rollout.Match) {
	for _, single := range []struct {
		field string
		text  *rollout.StringMatch
	}{{"path", m.Path}, {"method", m.Method}, {"source", m.Source}} {
		r.checkText(at+"."+single.field, single.text)
	}
	if m.Path != nil && m.Path.Regex == "" { // proxies remove the query, "//" and ".." before they match
		text := m.Path.Exact + m.Path.Prefix
		switch bad := pathForbidden.FindString(text); {
		case !strings.HasPrefix(text, "/"):
			r.Fail(at+".path", "paths begin with /", "%q is not a path", text)
		case bad != "":
			r.Fail(at+".path", "write only the path, and percent-encode other characters, such as %20",
				"%q contains %q, which no request path contains", text, bad)
		}
	}
	if m.Method != nil && m.Method.Regex == "" && !httpMethod.MatchString(m.Method.Exact+m.Method.Prefix) {
		r.Fail(at+".method", "write it as in GET", "%q is not a method", m.Method.Exact+m.Method.Prefix)
	}
	if m.Source == nil {
		return
	}
	switch {
	case m.Source.Exact != "":
		if _, err := netip.ParseAddr(m.Source.Exact); err != nil {
			r.Fail(at+".source.exact", "write an address such as 10.1.2.3; for a network, use prefix", "%q is not an address",
				m.Source.Exact)
		}
	case m.Source.Prefix != "":
		if _, err := netip.ParsePrefix(m.Source.Prefix); err != nil {
			r.Fail(at+".source.prefix", "write it as in 10.1.0.0/16", "%q is not a network", m.Source.Prefix)
		}
	}
}

// checkToken refuses an invalid name of a header or cookie (RFC 9110, 5.6.2; RFC 6265, 4.1.1).
func (r routeReader) checkToken(at, what, name string) {
	if !rollout.Formats()["header"].Pattern.MatchString(name) {
		r.Fail(at, "use letters, digits, - and _", "%q is not a valid %s name", name, what)
	}
}

func (r routeReader) checkText(at string, m *rollout.StringMatch) {
	if m == nil {
		return
	}
	if _, err := regexp.Compile(m.Regex); err != nil {
		r.Fail(at+".regex", "use the syntax of RE2", "is not a regular expression: %v", err)
	}
}

var (
	httpMethod = regexp.MustCompile(`^[A-Z]{1,32}$`)

	// pathForbidden matches characters that a path cannot have (RFC 3986, 3.3), and sequences that the Gateway API
	// refuses.
	pathForbidden = regexp.MustCompile(`[^-A-Za-z0-9/._~!$&'()*+,;=:@%]|%(?:$|.$|[^0-9A-Fa-f].|.[^0-9A-Fa-f])|` +
		`//|/\.\.?(?:/|$)|%2[fF]`)
)
