package traffic

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// nginx is ingress-nginx. A release generates a canary Ingress with the same hosts and paths. The canary's annotation
// "canary" (https://kubernetes.github.io/ingress-nginx/user-guide/nginx-configuration/annotations/#canary) splits the
// requests. The source (controller.go, mergeAlternativeBackends; balancer.lua, route_to_alternative_balancer) shows:
//
//   - There is one canary per Service and port, not per path. Other Ingresses' requests to the Service are also split.
//   - Only paths of the stable Ingress can be split, and their copies must have the same pathType.
//   - If another path of the host leads to the canary Service, the split ends. So the overlay adds no such
//     path, and steps cannot match a path.
//   - The order of precedence is: session cookie, header, cookie, weight.
//   - ingress-nginx reads a total weight below 100 as 100.
var nginx = router{
	kind: "nginx", title: "ingress-nginx", since: "0.22 / controller v1",
	features: features{splits: can, anyTotal: can, byHeader: anyText, byCookie: anyText, sticks: can},
	config:   func() editor { return &nginxConfig{} },
}

const ingressClass = "kubernetes.io/ingress.class"

type nginxConfig struct {
	StableIngress   string   `json:"stableIngress,omitempty" object:"Ingress"`   // set either stableIngress or stableIngresses
	StableIngresses []string `json:"stableIngresses,omitempty" object:"Ingress"` //

	// AnnotationPrefix is --annotations-prefix (default nginx.ingress.kubernetes.io).
	AnnotationPrefix string `json:"annotationPrefix,omitempty"`

	// These annotations are for the canary Ingress. The second map has precedence. Keys of the first need no prefix.
	AdditionalIngressAnnotations map[string]string `json:"additionalIngressAnnotations,omitempty"`
	CanaryIngressAnnotations     map[string]string `json:"canaryIngressAnnotations,omitempty"`
}

func (c *nginxConfig) overlay(o *Objects, r Route) error {
	names, err := ingressNames("stableIngress", c.StableIngress, "stableIngresses", c.StableIngresses)
	if err != nil {
		return err
	}
	users, err := nginxUsersOf(r.Managed)
	if err != nil {
		return err
	}
	for _, named := range names {
		ref := ingressRef(r.Namespace, named.name)
		stable, ok := o.Find(ref)
		if !ok {
			return missing(named.field, ref)
		}
		canary, err := c.canary(o, stable, r)
		if err != nil {
			return err
		}
		if !r.Active {
			continue
		}
		annotations, err := c.annotations(stable, users, r)
		if err != nil {
			return err
		}
		set(canary, annotations, "metadata", "annotations")
		if r.keepsUsers() {
			stable, _ := o.Edit(ref)
			c.stick(stable, r)
		}
		at := o.after(ref)
		if r.Sticky != nil && !r.keepsUsers() {
			// The canary Ingress is applied before the stable Ingress loses its affinity, so that users with the cookie
			// stay.
			at--
		}
		if err := o.generate(canary, at, r); err != nil {
			return err
		}
	}
	return nil
}

// canary returns the canary Ingress without annotations. As in Argo Rollouts, it has the stable Ingress's TLS section,
// class, and paths to the stable Service. Other fields have no effect.
func (c *nginxConfig) canary(o *Objects, stable rollout.Object, r Route) (rollout.Object, error) {
	ref := stable.Ref()
	var rules []any
	last := -1
	hosts := map[string]bool{}
	all := ingressPaths(stable)
	for _, p := range all {
		if r.Stable == "" || p.service() != r.Stable {
			continue
		}
		if err := o.Claim(ref, p.place(), r); err != nil {
			return nil, err
		}
		path := copyMap(p.path)
		set(path, r.Canary, "backend", "service", "name")
		if p.rule != last {
			rule := copyMap(mapping(list(stable.Map("spec")["rules"])[p.rule]))
			set(rule, []any{}, "http", "paths")
			rules, last = append(rules, rule), p.rule
		}
		rule := mapping(rules[len(rules)-1])
		set(rule, append(list(mapping(rule["http"])["paths"]), path), "http", "paths")
		hosts[p.host] = true
	}
	if len(rules) == 0 {
		return nil, wrong(ref, "spec.rules", "no path leads to the stable Service %s", r.Stable).
			WithFix("make it the backend of each path that is to be split")
	}
	for _, p := range all {
		if hosts[p.host] && p.service() == r.Canary {
			return nil, wrong(ref, p.place(),
				"leads to the canary Service %s, so ingress-nginx would not split the host's other requests", r.Canary).
				WithFix("remove the path, or let it lead to a separate Service")
		}
	}
	spec := map[string]any{"rules": rules}
	copied := copyMap(stable.Map("spec"))
	if value, ok := copied["tls"]; ok {
		spec["tls"] = value
	}
	// The API server rejects a class annotation together with ingressClassName. ingress-nginx prefers the annotation.
	if value, ok := copied["ingressClassName"]; ok && stable.Annotation(ingressClass) == "" {
		spec["ingressClassName"] = value
	}
	name := suffixed(r.Name+"-"+ref.Name, "canary") // as in Argo Rollouts
	return rollout.Object{
		"apiVersion": stable.APIVersion(), "kind": "Ingress",
		"metadata": map[string]any{"name": name, "namespace": ref.Namespace},
		"spec":     spec,
	}, nil
}

func (c *nginxConfig) annotations(stable rollout.Object, users map[string]string, r Route) (map[string]any, error) {
	out := map[string]any{}
	if class := stable.Annotation(ingressClass); class != "" {
		out[ingressClass] = class
	}
	for key, value := range c.AdditionalIngressAnnotations {
		if !strings.HasPrefix(key, c.prefix()) {
			key = c.key(key)
		}
		out[key] = value
	}
	for key, value := range c.CanaryIngressAnnotations {
		out[key] = value
	}
	for _, by := range []string{"header", "header-value", "header-pattern", "cookie"} {
		name := "canary-by-" + by
		if _, taken := out[c.key(name)]; taken && len(users) > 0 {
			field := "additionalIngressAnnotations"
			if _, full := c.CanaryIngressAnnotations[c.key(name)]; full {
				field = "canaryIngressAnnotations"
			}
			return nil, misfit(field, "has %s, but the steps' routes also set it", name).
				WithFix("remove it here")
		}
	}
	for name, value := range users {
		out[c.key(name)] = value
	}
	// A weight of 3 of 30 is written as 12 of 120.
	times := 1
	if r.Max > 0 && r.Max < 100 {
		times = (100 + r.Max - 1) / r.Max
	}
	out[c.key("canary")] = "true"
	out[c.key("canary-weight")] = strconv.Itoa(r.Weight * times)
	if r.Max*times != 100 {
		out[c.key("canary-weight-total")] = strconv.Itoa(r.Max * times)
	}
	switch {
	case r.keepsUsers():
		out[c.key("affinity-canary-behavior")] = "sticky"
	case r.Weight == 0 && stable.Annotation(c.key("affinity")) != "":
		// By default, session cookies of the stable Ingress would keep users at a failed canary.
		out[c.key("affinity-canary-behavior")] = "legacy"
	}
	return out, nil
}

// stick turns on session affinity at the stable Ingress. The canary Ingress inherits the affinity. The weight becomes
// the canary's share of new users. The cookie's name contains the pod hash.
func (c *nginxConfig) stick(stable rollout.Object, r Route) {
	if stable.Annotation(c.key("affinity")) != "" {
		return
	}
	annotations := map[string]string{
		"affinity": "cookie", "session-cookie-name": r.cookie(),
		"session-cookie-max-age": strconv.Itoa(int(r.Sticky.MaxAge / time.Second)),
	}
	if nginxAlone(stable, r.Stable) || stable.Annotation(c.key("use-regex")) == "true" {
		annotations["session-cookie-path"] = "/"
	}
	for key, value := range annotations {
		set(stable, value, "metadata", "annotations", c.key(key))
	}
}

// nginxAlone reports whether one cookie with the path / suffices. The stable paths must use one port, and their hosts
// must not lead to another Service, because the other Service's cookie would replace this cookie.
func nginxAlone(stable rollout.Object, service string) bool {
	hosts, ports := map[string]bool{}, map[string]bool{}
	for _, p := range ingressPaths(stable) {
		if p.service() == service {
			port := mapping(p.backend()["port"])
			hosts[p.host], ports[fmt.Sprint(port["number"], port["name"])] = true, true
		}
	}
	isOther := func(p ingressPath) bool { return hosts[p.host] && p.service() != service }
	return len(ports) == 1 && !slices.ContainsFunc(ingressPaths(stable), isOther)
}

func (c *nginxConfig) prefix() string {
	return cmp.Or(c.AnnotationPrefix, "nginx.ingress.kubernetes.io")
}

func (c *nginxConfig) key(name string) string { return c.prefix() + "/" + name }

// nginxUsers selects the requests that the canary gets at any weight. A canary Ingress can match one header by value or
// pattern, and one cookie with the value "always". Other cookies need a pattern for the Cookie header.
type nginxUsers struct {
	header   string // name, or ""
	exact    string // value, "" with patterns
	patterns []string
	cookie   string
}

func nginxUsersOf(routes []rollout.ManagedRoute) (map[string]string, error) {
	if err := carried("nginx", routes); err != nil {
		return nil, err
	}
	var users nginxUsers
	for _, route := range routes {
		for i, m := range route.Matches {
			if err := users.add(route.Name, fmt.Sprintf("matches[%d]", i), m); err != nil {
				return nil, err
			}
		}
	}
	return users.annotations(), nil
}

func (u *nginxUsers) add(route, place string, m rollout.Match) error {
	refuse := func(format string, args ...any) *rollout.InvalidError {
		return misfit("", "the steps' route %s, %s: %s", route, place, fmt.Sprintf(format, args...))
	}
	all := parts(m)
	if len(all) != 1 {
		fields := rollout.Mapped(all, func(p part) string { return p.field })
		return refuse("compares %s together, but ingress-nginx compares only one header or cookie",
			strings.Join(fields, " and ")).WithFix("match only one, or use a router that can match all")
	}
	if r := all[0].match.Regex; r != "" {
		if bad := nginxForbidden.FindString(r); bad != "" {
			return refuse("%s: ingress-nginx takes no pattern with %q", all[0].field, bad).
				WithFix(`write the character as \x%02x, or the pattern without it`, bad[0])
		}
	}
	if len(m.Cookies) > 0 {
		c := m.Cookies[0]
		if nginxPlain.MatchString(c.Name) && c.Exact == "always" && (u.cookie == "" || u.cookie == c.Name) {
			u.cookie = c.Name
			return nil
		}
		return u.addHeader("Cookie", "", cookiePattern(c), refuse)
	}
	h := m.Headers[0]
	if !nginxPlain.MatchString(h.Name) {
		return refuse("ingress-nginx takes no header of the name %q", h.Name).WithFix("match another header")
	}
	exact := ""
	if h.Exact == strings.TrimSpace(h.Exact) && nginxPlain.MatchString(strings.ReplaceAll(h.Exact, " ", "")) {
		exact = h.Exact
	}
	return u.addHeader(h.Name, exact, pattern(h.StringMatch), refuse)
}

func (u *nginxUsers) addHeader(name, exact, value string, refuse func(string, ...any) *rollout.InvalidError) error {
	if u.header != "" && !strings.EqualFold(u.header, name) {
		return refuse("needs the headers %s and %s, but ingress-nginx compares only one "+
			`(a cookie with a value other than "always" counts as the header Cookie)`, name, u.header).
			WithFix("match one header in all steps, or a cookie with the value always")
	}
	if u.header == "" {
		u.header, u.exact = name, exact
	} else {
		u.exact = ""
	}
	u.patterns = append(u.patterns, value)
	return nil
}

func (u *nginxUsers) annotations() map[string]string {
	out := map[string]string{}
	if u.cookie != "" {
		out["canary-by-cookie"] = u.cookie
	}
	if u.header == "" {
		return out
	}
	out["canary-by-header"] = u.header
	if u.exact != "" {
		out["canary-by-header-value"] = u.exact
		return out
	}
	// The controller searches for the pattern (PCRE), so the pattern is anchored.
	all := whole(either(u.patterns))
	out["canary-by-header-pattern"] = nginxForbidden.ReplaceAllStringFunc(all, func(s string) string {
		escaped := ""
		for _, b := range []byte(s) {
			escaped += fmt.Sprintf(`\x%02x`, b)
		}
		return escaped
	})
	return out
}

func either(patterns []string) string {
	if len(patterns) == 1 {
		return patterns[0]
	}
	return "(?:" + strings.Join(patterns, ")|(?:") + ")"
}

// The controller ignores an annotation with a character outside these sets (parser/validators.go, BasicCharsRegex and
// IsValidRegex). Without canary-by-header-value, only the header's value "always" would match.
var (
	nginxPlain     = regexp.MustCompile(`^[-._~a-zA-Z0-9/:]+$`)
	nginxForbidden = regexp.MustCompile(`[^-._~a-zA-Z0-9/:^$\[\](){}*+?|&=\\]`)
)
