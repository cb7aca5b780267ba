package traffic

import (
	"regexp"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestNginxPatterns checks what the annotations' expressions match, which PCRE and RE2 read alike, and that the
// controller accepts them.
func TestNginxPatterns(t *testing.T) {
	header := func(name string, m rollout.StringMatch) rollout.Match {
		return rollout.Match{Headers: []rollout.NamedMatch{{Name: name, StringMatch: m}}}
	}
	cookie := func(name string, m rollout.StringMatch) rollout.Match {
		return rollout.Match{Cookies: []rollout.NamedMatch{{Name: name, StringMatch: m}}}
	}
	for _, c := range []struct {
		name    string
		matches []rollout.Match
		yes, no []string
	}{
		{"prefix", []rollout.Match{header("X-Team", rollout.StringMatch{Prefix: "a, b"})}, []string{"a, b", "a, bc"}, []string{"a", "xa, b"}},
		{"alternatives", []rollout.Match{header("X-Team", rollout.StringMatch{Regex: "a|b"}), header("x-team", rollout.StringMatch{Exact: "ü"})},
			[]string{"a", "b", "\u00fc"}, []string{"ab", "c"}},
		{"cookie", []rollout.Match{cookie("beta", rollout.StringMatch{Exact: "on"})}, []string{"beta=on", "a=1; beta=on", "beta=on; a=1"},
			[]string{"xbeta=on", "beta=only", "a=beta=on"}},
		{"two cookies", []rollout.Match{cookie("beta", rollout.StringMatch{Regex: "on|1"}), cookie("beta", rollout.StringMatch{Prefix: "x"})},
			[]string{"a=1; beta=1", "beta=xy; a=1"}, []string{"beta=0", "1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			users, err := nginxUsersOf([]rollout.ManagedRoute{{Name: "staff", Matches: c.matches}})
			must(t, err)
			p := users["canary-by-header-pattern"]
			if bad := nginxForbidden.FindString(p); bad != "" {
				t.Errorf("%s has %q", p, bad)
			}
			re := regexp.MustCompile(p)
			for _, s := range c.yes {
				if !matchesBytes(re, s) {
					t.Errorf("%s does not match %q", p, s)
				}
			}
			for _, s := range c.no {
				if matchesBytes(re, s) {
					t.Errorf("%s matches %q", p, s)
				}
			}
		})
	}
}

// matchesBytes matches each byte as one character, like nginx does.
func matchesBytes(re *regexp.Regexp, s string) bool {
	var runes []rune
	for _, b := range []byte(s) {
		runes = append(runes, rune(b))
	}
	return re.MatchString(string(runes))
}
