package traffic

import (
	"regexp"
	"testing"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// TestNginxPatterns checks that the expressions in annotations match the right values, and have only characters that the controller
// accepts. Go's RE2 can replace nginx's PCRE here, because these expressions mean the same in both.
func TestNginxPatterns(t *testing.T) {
	for _, c := range []struct {
		name, matches string
		yes, no       []string
	}{
		{"prefix", `[{headers: [{name: X-Team, prefix: "a, b"}]}]`, []string{"a, b", "a, bc"}, []string{"a", "xa, b"}},
		{"alternatives", `[{headers: [{name: X-Team, regex: a|b}]}, {headers: [{name: x-team, exact: ü}]}]`,
			[]string{"a", "b", "\u00fc"}, []string{"ab", "c"}},
		{"cookie", `[{cookies: [{name: beta, exact: "on"}]}]`,
			[]string{"beta=on", "a=1; beta=on", "beta=on; a=1"}, []string{"xbeta=on", "beta=only", "a=beta=on"}},
		{"two cookies", `[{cookies: [{name: beta, regex: on|1}]}, {cookies: [{name: beta, prefix: x}]}]`,
			[]string{"a=1; beta=1", "beta=xy; a=1"}, []string{"beta=0", "1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			staff := rollout.ManagedRoute{Name: "staff"}
			must(t, yaml.UnmarshalStrict([]byte(c.matches), &staff.Matches))
			users, err := nginxUsersOf([]rollout.ManagedRoute{staff})
			must(t, err)
			p := users["canary-by-header-pattern"]
			if bad := nginxForbidden.FindString(p); bad != "" {
				t.Errorf("%s has %q", p, bad)
			}
			re := regexp.MustCompile(p)
			for want, texts := range map[bool][]string{true: c.yes, false: c.no} {
				for _, s := range texts {
					if matchesBytes(re, s) != want {
						t.Errorf("%s matches %q: %t, want %t", p, s, !want, want)
					}
				}
			}
		})
	}
}

// matchesBytes reports whether an expression matches a text. Like nginx, it treats each byte as one character.
func matchesBytes(re *regexp.Regexp, s string) bool {
	var runes []rune
	for _, b := range []byte(s) {
		runes = append(runes, rune(b))
	}
	return re.MatchString(string(runes))
}
