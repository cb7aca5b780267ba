package render

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// readRoute reads the steps that match requests, nil if this is none.
func (d *document) readRoute(v value) *rollout.ManagedRoute {
	header, mirror, match := v.field("setHeaderRoute"), v.field("setMirrorRoute"), v.field("match")
	var route *rollout.ManagedRoute
	switch {
	case header.object(headerRouteFields):
		route = &rollout.ManagedRoute{Name: header.field("name").text()}
		for _, m := range header.field("match").list() {
			m.object(headerMatchFields)
			value, name := m.field("headerValue"), m.field("headerName")
			value.object(textMatchFields)
			name.token("header")
			route.Matches = append(route.Matches, rollout.Match{Headers: []rollout.NamedMatch{{Name: name.text(), StringMatch: value.textMatch()}}})
		}
		d.isManaged(header.field("name"), route.Name)
	case mirror.object(mirrorRouteFields):
		route = d.readMirror(mirror)
	case match.given() && d.isNative(match):
		route = &rollout.ManagedRoute{Name: rollout.MatchRoute}
		for _, m := range match.list() {
			route.Matches = append(route.Matches, m.match())
		}
	default:
		return nil
	}
	if d.spec.Canary.Traffic == nil {
		v.fail("add trafficRouting with a router", "matches requests, and there is no trafficRouting")
	}
	return route
}

func (d *document) readMirror(v value) *rollout.ManagedRoute {
	share := v.field("percentage").percent()
	if share == nil {
		share = new(100)
	}
	route := &rollout.ManagedRoute{Name: v.field("name").text(), Mirror: share}
	for _, m := range v.field("match").list() {
		m.object(mirrorMatchFields)
		var match rollout.Match
		for _, single := range []struct {
			name string
			into **rollout.StringMatch
		}{{"method", &match.Method}, {"path", &match.Path}} {
			if field := m.field(single.name); field.object(textMatchFields) {
				text := field.textMatch()
				*single.into = &text
			}
		}
		m.checkMatch(match)
		headers, _ := m.field("headers").raw.(map[string]any)
		for _, name := range sortedKeys(headers) {
			field := m.field("headers").field(name)
			field.object(textMatchFields)
			if !httpToken.MatchString(name) {
				field.fail("use a name such as X-Staff", "%q is not the name of a header", name)
			}
			match.Headers = append(match.Headers, rollout.NamedMatch{Name: name, StringMatch: field.textMatch()})
		}
		route.Matches = append(route.Matches, match)
	}
	d.isManaged(v.field("name"), route.Name)
	return route
}

// isManaged refuses a route that managedRoutes does not list: its precedence
// would be unknown.
func (d *document) isManaged(v value, name string) {
	switch t := d.spec.Canary.Traffic; {
	case name == "":
		v.fail("name it", "is missing")
	case t != nil && !slices.Contains(t.ManagedRoutes, name):
		v.fail("add it there: - name: "+name, "%q is not among trafficRouting.managedRoutes", name)
	}
}

// match reads one entry of a step's match: all that it names must match.
func (v value) match() rollout.Match {
	var m rollout.Match
	const all = "name headers, cookies, queryParams, path, method or source"
	if !v.object(matchFields) {
		v.fail(all, "is empty")
	}
	for _, named := range []struct {
		field, what string
		into        *[]rollout.NamedMatch
	}{{"headers", "header", &m.Headers}, {"cookies", "cookie", &m.Cookies}, {"queryParams", "", &m.QueryParams}} {
		for _, n := range v.field(named.field).list() {
			n.object(namedMatchFields)
			switch name := n.field("name"); {
			case named.what != "":
				name.token(named.what)
			case name.text() == "":
				name.fail("name the parameter", "is missing")
			}
			*named.into = append(*named.into, rollout.NamedMatch{Name: n.field("name").text(), StringMatch: n.textMatch()})
		}
	}
	for _, single := range []struct {
		field string
		into  **rollout.StringMatch
	}{{"path", &m.Path}, {"method", &m.Method}, {"source", &m.Source}} {
		if field := v.field(single.field); field.object(textMatchFields) {
			text := field.textMatch()
			*single.into = &text
		}
	}
	if len(m.Headers)+len(m.Cookies)+len(m.QueryParams) == 0 && m.Path == nil && m.Method == nil && m.Source == nil {
		v.fail(all, "matches every request")
	}
	v.checkMatch(m)
	return m
}

// checkMatch refuses texts that no request has.
func (v value) checkMatch(m rollout.Match) {
	if m.Path != nil && m.Path.Regex == "" {
		v.field("path").urlPath(m.Path.Exact + m.Path.Prefix)
	}
	if m.Method != nil && m.Method.Regex == "" && !httpMethod.MatchString(m.Method.Exact+m.Method.Prefix) {
		v.field("method").fail("write it as in GET", "%q is not a method", m.Method.Exact+m.Method.Prefix)
	}
	if m.Source == nil {
		return
	}
	source := v.field("source")
	switch {
	case m.Source.Exact != "":
		if _, err := netip.ParseAddr(m.Source.Exact); err != nil {
			source.field("exact").fail("write an address such as 10.1.2.3; a network is a prefix", "%q is not an address", m.Source.Exact)
		}
	case m.Source.Prefix != "":
		if _, err := netip.ParsePrefix(m.Source.Prefix); err != nil {
			source.field("prefix").fail("write it as in 10.1.0.0/16", "%q is not a network", m.Source.Prefix)
		}
	}
}

// urlPath refuses what no request has for its path: proxies compare it without
// the query, and after they have resolved "//" and "..".
func (v value) urlPath(p string) {
	switch bad := pathForbidden.FindString(p); {
	case !strings.HasPrefix(p, "/"):
		v.fail("paths begin with /", "%q is not a path", p)
	case bad != "":
		v.fail("write the path alone, other characters as in %20", "%q has %q, which the path of a request has not", p, bad)
	}
}

// token returns the name of a header or a cookie (RFC 9110, 5.6.2; RFC 6265, 4.1.1).
func (v value) token(what string) string {
	name := v.text()
	switch {
	case name == "":
		v.fail("name the "+what, "is missing")
	case !httpToken.MatchString(name):
		v.fail("use letters, digits, - and _", "%q is not the name of a %s", name, what)
	}
	return name
}

var (
	httpToken  = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]{1,256}$")
	httpMethod = regexp.MustCompile(`^[A-Z]{1,32}$`)

	// The characters that a path can have (RFC 3986, 3.3), and what the Gateway API
	// refuses besides (HTTPPathMatch).
	pathForbidden = regexp.MustCompile(`[^-A-Za-z0-9/._~!$&'()*+,;=:@%]|%(?:$|.$|[^0-9A-Fa-f].|.[^0-9A-Fa-f])|//|/\.\.?(?:/|$)|%2[fF]`)
)

// textMatch reads exact, prefix or regex.
func (v value) textMatch() rollout.StringMatch {
	m := rollout.StringMatch{Exact: v.field("exact").text(), Prefix: v.field("prefix").text(), Regex: v.field("regex").text()}
	given := slices.DeleteFunc([]string{m.Exact, m.Prefix, m.Regex}, func(s string) bool { return s == "" })
	if len(given) != 1 {
		v.fail("give one of exact, prefix, regex", "has %d of exact, prefix and regex", len(given))
		return m
	}
	if _, err := regexp.Compile(m.Regex); err != nil {
		v.field("regex").fail("use the syntax of RE2", "is not a regular expression: %v", err)
	}
	return m
}
