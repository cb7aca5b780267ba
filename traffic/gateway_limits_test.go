package traffic

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestGatewayLimits checks that the overlay accepts the maximum numbers of rules, matches and headers that the Gateway API allows, and
// refuses more. The error contains the number. https://gateway-api.sigs.k8s.io/reference/spec/#httprouterule
func TestGatewayLimits(t *testing.T) {
	rules := func(n, matches, headers int) (all []any) {
		for range n {
			var some []any
			for range matches {
				some = append(some, map[string]any{"headers": make([]any, headers)})
			}
			all = append(all, map[string]any{"matches": some})
		}
		return all
	}
	managed := Route{Managed: []rollout.ManagedRoute{{}}}
	for _, c := range []struct {
		rules   []any
		route   Route
		refused string
	}{
		{rules(16, 8, 16), managed, ""},
		{rules(17, 1, 0), managed, "17 rules with the steps' routes, and the Gateway API allows 16"},
		{rules(2, 64, 1), managed, ""},
		{rules(1, 65, 1), managed, "65 matches in one rule with the steps' routes, and the Gateway API allows 64"},
		{rules(3, 43, 1), managed, "129 matches with the steps' routes, and the Gateway API allows 128"},
		{rules(1, 1, 17), managed, "17 headers in one match with the steps' routes, and the Gateway API allows 16"},
		{rules(16, 1, 0), managed, ""},
		{rules(17, 65, 17), Route{}, ""}, // accepted, because the overlay adds nothing to the user's rules
	} {
		err := gatewayLimits(rollout.Ref{Kind: "HTTPRoute", Name: "web"}, c.rules, c.route)
		if !strings.Contains(fmt.Sprint(err), cmp.Or(c.refused, "<nil>")) {
			t.Errorf("%d rules: %v, want %q", len(c.rules), err, c.refused)
		}
	}
}
