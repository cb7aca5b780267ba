package routes

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

// TestPinRows has the selectors of Services: "main/side" at each place, by available pods of stable (columns: none,
// some, enough) and of the new version (rows).
func TestPinRows(t *testing.T) {
	places := map[trafficPhase]string{atSteps: "steps", shared: "shared", switched: "switched", promoting: "promoting", leaving: "leaving",
		left: "left"}
	names := map[selector]string{allPods: "all", stablePin: "stable", freshPin: "fresh", newestPin: "newest"}
	cases := map[string]struct {
		reason string
		rows   []pinRow
		want   string
		shares bool
	}{
		"Canary": {reason: "requests follow whatever is ready", rows: canaryRows, want: `
steps     none   all/fresh     all/fresh     stable/newest
steps     some   all/fresh     all/fresh     stable/newest
steps     enough all/fresh     all/fresh     stable/newest
switched  none   all/fresh     all/fresh     all/fresh
switched  some   fresh/fresh   fresh/fresh   fresh/fresh
switched  enough fresh/fresh   fresh/fresh   fresh/fresh
promoting none   all/fresh     all/fresh     all/fresh
promoting some   all/fresh     all/fresh     all/fresh
promoting enough all/fresh     all/fresh     all/fresh
leaving   none   all/stable    all/stable    stable/stable
leaving   some   all/stable    all/stable    stable/stable
leaving   enough all/stable    all/stable    stable/stable
left      none   all/stable    all/stable    stable/stable
left      some   all/stable    all/stable    stable/stable
left      enough all/stable    all/stable    stable/stable
`},
		"BlueGreen": {reason: "the preview stays the preview until its pods go", rows: blueGreenRows, want: `
steps     none   stable/newest stable/newest stable/newest
steps     some   stable/newest stable/newest stable/newest
steps     enough stable/newest stable/newest stable/newest
switched  none   all/fresh     all/fresh     all/fresh
switched  some   fresh/fresh   fresh/fresh   fresh/fresh
switched  enough fresh/fresh   fresh/fresh   fresh/fresh
promoting none   all/fresh     all/fresh     all/fresh
promoting some   all/fresh     all/fresh     all/fresh
promoting enough all/fresh     all/fresh     all/fresh
leaving   none   all/fresh     all/fresh     stable/fresh
leaving   some   all/fresh     all/fresh     stable/fresh
leaving   enough all/fresh     all/fresh     stable/fresh
left      none   all/stable    all/stable    stable/stable
left      some   all/stable    all/stable    stable/stable
left      enough all/stable    all/stable    stable/stable
`},
		"Routed": {reason: "no Service that routers may send to is without endpoints", rows: routedRows, want: `
steps     none   all/all       stable/stable stable/stable
steps     some   all/all       stable/stable stable/stable
steps     enough all/fresh     all/fresh     stable/newest
switched  none   all/all       all/all       all/all
switched  some   fresh/fresh   fresh/fresh   fresh/fresh
switched  enough fresh/fresh   fresh/fresh   fresh/fresh
promoting none   all/all       all/all       all/all
promoting some   all/fresh     all/fresh     all/fresh
promoting enough all/fresh     all/fresh     all/fresh
leaving   none   all/all       all/stable    stable/stable
leaving   some   all/all       all/stable    stable/stable
leaving   enough all/all       all/stable    stable/stable
left      none   all/all       all/stable    stable/stable
left      some   all/all       all/stable    stable/stable
left      enough all/all       all/stable    stable/stable
`},
		"Shared": {reason: "unmatched users reach all pods at a weight", rows: sharedRows, shares: true, want: `
steps     none   all/all       stable/stable stable/stable
steps     some   all/all       stable/stable stable/stable
steps     enough all/fresh     all/fresh     stable/newest
shared    none   all/all       all/all       all/stable
shared    some   all/all       all/all       all/stable
shared    enough all/fresh     all/fresh     all/fresh
switched  none   all/all       all/all       all/all
switched  some   fresh/fresh   fresh/fresh   fresh/fresh
switched  enough fresh/fresh   fresh/fresh   fresh/fresh
promoting none   all/all       all/all       all/all
promoting some   all/fresh     all/fresh     all/fresh
promoting enough all/fresh     all/fresh     all/fresh
leaving   none   all/all       all/stable    stable/stable
leaving   some   all/all       all/stable    stable/stable
leaving   enough all/all       all/stable    stable/stable
left      none   all/all       all/stable    stable/stable
left      some   all/all       all/stable    stable/stable
left      enough all/all       all/stable    stable/stable
`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			used := map[int]bool{}
			var b strings.Builder
			for at := atSteps; at <= left; at++ {
				if at == shared && !tc.shares {
					continue
				}
				for fresh := none; fresh <= enough; fresh++ {
					line := fmt.Sprintf("%-9s %-6s", places[at], []string{"none", "some", "enough"}[fresh])
					for stable := none; stable <= enough; stable++ {
						i := firstFit(tc.rows, at, fresh, stable)
						if i < 0 {
							t.Fatalf("no row for %s", line)
						}
						used[i] = true
						line += fmt.Sprintf(" %-13s", names[tc.rows[i].main]+"/"+names[tc.rows[i].side])
					}
					b.WriteString("\n" + strings.TrimRight(line, " "))
				}
			}
			compare.CheckNamed(t, tc.reason, tc.want, b.String()+"\n")
			if len(used) < len(tc.rows)-3 { // other strategies may cover the canary's own rows
				t.Errorf("%d of %d rows are ever used", len(used), len(tc.rows))
			}
		})
	}
}
