package traffic

import (
	"fmt"
	"regexp"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// nginxUsers get the canary at any weight. A canary Ingress matches one header by value or pattern, and one cookie by
// "always". A Cookie header pattern matches others.
type nginxUsers struct {
	header   string // name, or ""
	exact    string // value, "" with patterns
	patterns []string
	cookie   string
}

// nginxUsersOf returns managed routes' annotations. All lead to the canary, in any order.
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
		return refuse("compares %s together, and ingress-nginx compares one header or one cookie",
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
		return refuse("needs the header %s beside %s, and ingress-nginx compares one header "+
			`(cookies with another value than "always" are in the header Cookie)`, name, u.header).
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
	// The controller searches (PCRE), so anchor it.
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
