package traffic

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// The tests below check the combination of a rule's match with a step's match. The combined match must accept a request if, and only if,
// both matches accept the request.

var somePaths = []string{
	"/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/ab/c", "/b", "/b/a", "/a.b", "/axb", "/a/bc",
}

var someTexts = []rollout.StringMatch{
	{Exact: "/"}, {Exact: "/a"}, {Exact: "/a/b"}, {Exact: "/ab"}, {Exact: "/a.b"},
	{Prefix: "/"}, {Prefix: "/a"}, {Prefix: "/a/"}, {Prefix: "/a/b"}, {Prefix: "/b"}, {Prefix: "/ab"},
	{Regex: "/a.*"}, {Regex: "/a|/b"}, {Regex: "/a.b"},
}

// gatewayMatches reports whether a match of the Gateway API matches a path. A PathPrefix compares whole elements. A regular expression from
// the overlay is anchored, so it compares the whole path.
func gatewayMatches(t *testing.T, own map[string]any, path string) bool {
	value := text(own["value"])
	switch text(own["type"]) {
	case "Exact":
		return path == value
	case "RegularExpression":
		re, err := regexp.Compile(value)
		must(t, err)
		return re.MatchString(path)
	default:
		return len(own) == 0 || below(path, value)
	}
}

// byElements reports whether a step's match matches a path by the rules of the Gateway API, where a prefix consists of whole elements.
func byElements(m rollout.StringMatch, path string) bool {
	if m.Prefix != "" {
		return below(path, m.Prefix)
	}
	return matches(m, path)
}

func TestGatewayPathsMatchBoth(t *testing.T) {
	owns := []map[string]any{
		nil, {"value": "/"}, {"type": "Exact", "value": "/a"}, {"type": "Exact", "value": "/a/b"}, {"type": "Exact", "value": "/ab"},
		{"type": "PathPrefix", "value": "/a"}, {"type": "PathPrefix", "value": "/a/b"}, {"type": "PathPrefix", "value": "/"},
		{"type": "RegularExpression", "value": "^/a.b$"},
	}
	compared := 0
	for _, own := range owns {
		for _, m := range someTexts {
			both, possible, err := gatewayPath(rollout.Ref{}, "", own, m)
			if err != nil {
				if m.Regex == "" && text(own["type"]) != "RegularExpression" {
					t.Errorf("%v and %+v: %v", own, m, err)
				}
				continue
			}
			for _, path := range somePaths {
				compared++
				want := gatewayMatches(t, own, path) && byElements(m, path)
				if got := possible && gatewayMatches(t, both, path); got != want {
					t.Errorf("%v and %+v: %v, %v match %s: %v, want %v", own, m, both, possible, path, got, want)
				}
			}
		}
	}
	if compared < 500 {
		t.Errorf("only %d are compared", compared)
	}
}

func IstioMatches(own map[string]any, s string) bool {
	m := rollout.StringMatch{Exact: text(own["exact"]), Prefix: text(own["prefix"]), Regex: text(own["regex"])}
	return m == (rollout.StringMatch{}) || matches(m, s)
}

func TestIstioTextsMatchBoth(t *testing.T) {
	owns := []map[string]any{nil}
	for _, m := range someTexts {
		owns = append(owns, istioText(m))
	}
	compared := 0
	for _, own := range owns {
		for _, m := range someTexts {
			both, possible, err := istioTarget{}.bothTexts("", own, m)
			if err != nil {
				if m.Regex == "" && own["regex"] == nil {
					t.Errorf("%v and %+v: %v", own, m, err)
				}
				continue
			}
			for _, s := range somePaths {
				compared++
				if got, want := possible && IstioMatches(both, s), IstioMatches(own, s) && matches(m, s); got != want {
					t.Errorf("%v and %+v: %v, %v match %s: %v, want %v", own, m, both, possible, s, got, want)
				}
			}
		}
	}
	if compared < 1000 {
		t.Errorf("only %d are compared", compared)
	}
}

// albMatches reports whether a path matches the condition that the AWS Load Balancer Controller makes from an Ingress path.
func albMatches(p albPath, path string) bool {
	switch p.kind {
	case "Exact":
		return path == p.path
	case "Prefix":
		return below(path, p.path)
	default:
		pattern := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(p.path))
		return p.path == "" || regexp.MustCompile("^"+pattern+"$").MatchString(path)
	}
}

func TestALBPathsMatchBoth(t *testing.T) {
	owns := []albPath{
		{"Exact", "/a"}, {"Exact", "/a/b"}, {"Prefix", "/"}, {"Prefix", "/a"}, {"Prefix", "/a/b"},
		{"ImplementationSpecific", ""}, {"ImplementationSpecific", "/*"}, {"ImplementationSpecific", "/a/*"}, {"ImplementationSpecific", "/a"},
	}
	compared := 0
	for _, own := range owns {
		for _, m := range someTexts {
			if m.Regex != "" {
				continue // the features of the router do not include regex
			}
			both, plain := albBoth(own, m)
			if !plain {
				t.Errorf("%v and %+v cannot be combined", own, m)
			}
			for _, path := range somePaths {
				compared++
				got := false
				for _, p := range both {
					got = got || albMatches(p, path)
				}
				if want := albMatches(own, path) && byElements(m, path); got != want {
					t.Errorf("%v and %+v: %v match %s: %v, want %v", own, m, both, path, got, want)
				}
			}
		}
	}
	if _, plain := albBoth(albPath{"ImplementationSpecific", "/a*b"}, rollout.StringMatch{Prefix: "/a"}); plain {
		t.Error("a wildcard inside of a path is taken for a plain one")
	}
	if compared < 900 {
		t.Errorf("only %d are compared", compared)
	}
}

func TestApisixSourcesAreInBoth(t *testing.T) {
	owns := [][]any{
		nil, {"10.0.0.0/8"}, {"10.1.2.3"}, {"10.1.0.0/16", "192.168.1.7"}, {"fd00::/8"}, {"10.1.2.3", "10.1.2.0/24", "fd00::1"},
	}
	addresses := []string{"10.1.2.3", "10.1.2.4", "10.1.9.9", "10.9.9.9", "192.168.1.7", "fd00::1", "fe80::1"}
	in := func(networks []any, address string) bool {
		for _, n := range networks {
			network, err := apisixNetwork(text(n))
			must(t, err)
			if network.Contains(netip.MustParseAddr(address)) {
				return true
			}
		}
		return false
	}
	for _, own := range owns {
		for _, step := range []string{"10.1.2.3", "10.1.0.0/16", "10.0.0.0/7", "fd00::/16", "192.168.1.7"} {
			both, err := apisixSources(own, step)
			must(t, err)
			for _, address := range addresses {
				want := (len(own) == 0 || in(own, address)) && in([]any{step}, address)
				if got := in(both, address); got != want {
					t.Errorf("%v and %s: %v has %s: %v, want %v", own, step, both, address, got, want)
				}
			}
		}
	}
	for _, wrong := range []string{"", "10.1", "10.1.2.3/33", "shop"} {
		if _, err := apisixSources(nil, wrong); err == nil {
			t.Errorf("%q is taken for a network", wrong)
		}
	}
}

// TestPatternsAreForTheWholeText checks that the anchored pattern of a StringMatch matches the same texts as the StringMatch.
func TestPatternsAreForTheWholeText(t *testing.T) {
	values := []string{"", "on", "only", "xon", "o.n", "oxn", "a|b", "a", "b", "ab", "(on)", "on;off"}
	for _, m := range []rollout.StringMatch{
		{Exact: "on"}, {Exact: "o.n"}, {Exact: "a|b"}, {Exact: "(on)"}, {Prefix: "on"}, {Prefix: "o."}, {Prefix: "("},
		{Regex: "on"}, {Regex: "a|b"}, {Regex: "o.n"}, {Regex: ".*"},
	} {
		re := regexp.MustCompile(whole(pattern(m)))
		for _, value := range values {
			if got, want := re.MatchString(value), matches(m, value); got != want {
				t.Errorf("%+v is %s, which matches %q: %v, want %v", m, re, value, got, want)
			}
		}
	}
}

// TestCookiePatterns checks that cookiePattern matches a Cookie header if, and only if, the header contains a cookie that matches.
func TestCookiePatterns(t *testing.T) {
	for _, m := range []rollout.StringMatch{{Exact: "on"}, {Prefix: "on"}, {Regex: "on|1"}, {Regex: "o.*"}, {Exact: "a.b"}} {
		cookie := rollout.NamedMatch{Name: "beta", StringMatch: m}
		re := regexp.MustCompile(whole(cookiePattern(cookie)))
		for _, header := range []string{
			"beta=on", "beta=only", "a=1; beta=on", "beta=on; a=1", "a=1; beta=1; c=2", "xbeta=on", "a=beta=on", "beta=", "",
			"beta=a.b", "beta=axb", "beta=off; beta2=on", "beta2=on", "a=1;beta=on",
		} {
			want := false
			for _, pair := range strings.Split(header, ";") {
				name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
				want = want || ok && name == "beta" && matches(m, value)
			}
			if got := re.MatchString(header); got != want {
				t.Errorf("%+v is %s, which matches %q: %v, want %v", m, re, header, got, want)
			}
		}
	}
}

// TestTraefikCopiesWin checks the priorities and the rules of a route's copies. Each copy has a higher priority than its original. If
// another route has precedence over the original but not over the copy, the copy's rule excludes that route's requests.
func TestTraefikCopiesWin(t *testing.T) {
	rule := func(match string, priority int64) any {
		route := map[string]any{"match": match}
		if priority != 0 {
			route["priority"] = priority
		}
		return route
	}
	staff := []rollout.Match{{Headers: []rollout.NamedMatch{{Name: "x", StringMatch: rollout.StringMatch{Exact: "1"}}}}}
	managed := []rollout.ManagedRoute{{Name: "a", Matches: staff}, {Name: "b", Matches: staff}}
	for name, own := range map[string][]any{
		"by length":         {rule("Host(`shop`)", 0), rule("Host(`shop`) && Path(`/api`)", 0)},
		"one letter longer": {rule("Host(`shop`)", 0), rule("Host(`shops`)", 0), rule("Host(`shopss`)", 0)},
		"by priority": {rule("Host(`shop`)", 10), rule("Path(`/api`)", 11), rule("Path(`/b`)", 12), rule("Path(`/c`)", 13),
			rule("Path(`/d`)", 9)},
	} {
		first := traefikPriority(mapping(own[0]))
		last := int64(0)
		for k := range managed {
			match, priority := traefikCopy(own, 0, k, managed)
			if priority <= first || last != 0 && priority >= last {
				t.Errorf("%s: copy %d has the priority %d after %d, its original %d", name, k, priority, last, first)
			}
			last = priority
			for _, other := range own[1:] {
				p, its := traefikPriority(mapping(other)), text(mapping(other)["match"])
				leaves := strings.Contains(match, "!("+its+")")
				if between := p > first && p <= priority; between != leaves {
					t.Errorf("%s: copy %d (%d) leaves requests to %s (%d): %v, want %v", name, k, priority, its, p, leaves, between)
				}
			}
		}
	}
}
